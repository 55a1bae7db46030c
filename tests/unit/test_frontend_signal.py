"""DFT and STFT of ONNX give what onnxruntime gives, as fast transforms where the length allows."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from glowc.board import load_cpu
from glowc.frontend import import_model
from glowc.lower.lowering import lower_graph
from glowc.ops.interp import run_graph
from tests.conftest import require_module

RNG = np.random.default_rng(4)


def _model(op: str, x: np.ndarray, consts: dict[str, np.ndarray], inputs: list[str], **attrs: Any) -> onnx.ModelProto:
    graph = helper.make_graph(
        [helper.make_node(op, inputs, ["y"], **attrs)], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_empty_tensor_value_info("y")],
        [onnx.numpy_helper.from_array(array, name) for name, array in consts.items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def _check(model: onnx.ModelProto, x: np.ndarray, wanted: str) -> None:
    """Compare with onnxruntime; `wanted` is an operator that the graph must have.

    onnxruntime's own transform of lengths that are no power of two is up to 1e-4 of the largest magnitude off.
    """
    ort = require_module("onnxruntime")
    (want,) = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x})
    graph = import_model(model)
    assert wanted in {node.op for node in graph.nodes}
    (got,) = run_graph(graph, {"x": x}).values()
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=2e-4 * np.abs(want).max())
    lower_graph(graph, load_cpu("cortex-m4"))


def _dft(shape: tuple[int, ...], axis: int, length: int | None = None, **attrs: int) -> tuple[Any, np.ndarray]:
    x = RNG.normal(size=shape).astype(np.float32)
    consts = {"axis": np.array(axis, np.int64)}
    if length is not None:
        consts["length"] = np.array(length, np.int64)
    return _model("DFT", x, consts, ["x", "length" if length is not None else "", "axis"], **attrs), x


@pytest.mark.parametrize("length", [16, 18, 30, 32, 50, 64, 400, 512])
@pytest.mark.parametrize("onesided", [0, 1])
def test_real_lines_of_even_length_are_a_real_transform(length: int, onesided: int) -> None:
    _check(*_dft((2, length, 1), 1, onesided=onesided), "SignalRfft")


@pytest.mark.parametrize("length", [16, 30, 400, 512])
def test_transforms_are_as_near_as_floats_can_be(length: int) -> None:
    model, x = _dft((2, length, 1), 1, onesided=1)
    (got,) = run_graph(import_model(model), {"x": x}).values()
    want = np.fft.rfft(x[..., 0].astype(np.float64), axis=1)
    assert np.abs(got[..., 0] + 1j * got[..., 1] - want).max() < 1e-6 * np.abs(want).max()


@pytest.mark.parametrize("length", [16, 25, 27, 45, 64])
@pytest.mark.parametrize("inverse", [0, 1])
def test_complex_lines_are_a_complex_transform(length: int, inverse: int) -> None:
    _check(*_dft((2, length, 3, 2), 1, inverse=inverse), "Fft")


@pytest.mark.parametrize(
    ("shape", "axis", "length"), [((1, 20, 1), 1, 32), ((1, 40, 1), 1, 32), ((3, 5, 24, 1), -2, 30)]
)
def test_lines_are_cut_or_filled_up_to_the_length(shape: tuple[int, ...], axis: int, length: int) -> None:
    _check(*_dft(shape, axis, length, onesided=1), "SignalRfft")


def test_other_axes_and_lengths() -> None:
    _check(*_dft((32, 3, 1), 0, onesided=1), "SignalRfft")
    _check(*_dft((2, 22, 1), 1, onesided=1), "MatMul")
    _check(*_dft((2, 8, 1), 1, onesided=1), "MatMul")
    _check(*_dft((2, 40, 2), 1, 48), "Fft")


def test_spectrum_of_real_samples_comes_back() -> None:
    x = RNG.normal(size=(2, 17, 2)).astype(np.float32)
    model = _model("DFT", x, {"axis": np.array(1, np.int64)}, ["x", "", "axis"], inverse=1, onesided=1)
    graph = import_model(model)
    assert "SignalIrfft" in {node.op for node in graph.nodes}
    (got,) = run_graph(graph, {"x": x}).values()
    np.testing.assert_allclose(got[..., 0], np.fft.irfft(x[..., 0] + 1j * x[..., 1], axis=1), atol=1e-5)


@pytest.mark.parametrize(
    ("length", "step", "size", "windowed", "onesided"),
    [
        (160, 40, 64, True, 1),
        (160, 16, 32, False, 1),
        (100, 25, 50, True, 0),
        (64, 64, 64, True, 1),
        (90, 7, 22, True, 1),
    ],
)
def test_short_time_spectra(length: int, step: int, size: int, windowed: bool, onesided: int) -> None:
    x = RNG.normal(size=(2, length, 1)).astype(np.float32)
    consts = {"step": np.array(step, np.int64), "size": np.array(size, np.int64)}
    if windowed:
        consts["window"] = np.hanning(size).astype(np.float32)
    inputs = ["x", "step", "window" if windowed else "", "size"]
    wanted = "MatMul" if size == 22 else "SignalRfft"
    _check(_model("STFT", x, consts, inputs, onesided=onesided), x, wanted)
