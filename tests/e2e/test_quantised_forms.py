"""Quantised forms beyond plain QDQ, as whole models on machines: integers in floats, dynamic, weight-only, odd QDQ."""

from __future__ import annotations

import numpy as np
import pytest

from glowc.ops.interp import run_graph
from tests.conftest import SHARED_MODELS
from tests.e2e.models import assert_same_bytes, compiled, model_path, outputs_on, sample

MACHINES = ("host", "mps2-an386", "linux-aarch64")
DEEPLOY = ("deeploy_mlperf_ic", "deeploy_mlperf_kws")
TF2ONNX = (
    "mlperf_ic_resnet8_tf2onnx",
    "mlperf_kws_dscnn_tf2onnx",
    "mlperf_ad_autoencoder_tf2onnx",
    "tflm_hello_world_tf2onnx",
)
EXACT = (*TF2ONNX, "emx_micro_kws_m_static_qdq")
pytestmark = pytest.mark.shared


def on_machines(names: tuple[str, ...]) -> list[object]:
    """Return (model, board) pairs; QEMU boards carry their mark."""
    return [
        pytest.param(name, board, marks=[] if board == "host" else [pytest.mark.qemu])
        for name in names
        for board in MACHINES
    ]


def golden_of(name: str) -> dict[str, np.ndarray]:
    """Return the plain golden arrays: what the float reference or the shipped outputs say."""
    with np.load(SHARED_MODELS / name / "golden.npz") as data:
        return {key: data[key] for key in data.files if "__" not in key}


def inputs_of(name: str) -> dict[str, np.ndarray]:
    model_path(name)
    with np.load(SHARED_MODELS / name / "inputs.npz") as data:
        return dict(data)


@pytest.mark.parametrize(("name", "board"), on_machines(DEEPLOY))
def test_integers_in_floats_are_exact(name: str, board: str) -> None:
    inputs = inputs_of(name)
    assert_same_bytes(outputs_on(compiled(name, board), inputs), golden_of(name))


@pytest.mark.parametrize("name", DEEPLOY)
def test_integers_in_floats_run_as_integers(name: str) -> None:
    inputs, golden = inputs_of(name), golden_of(name)
    result = compiled(name, "host")
    kernels = {i.kernel for i in result.program.instrs}
    assert kernels <= {
        "conv_s16rs", "conv_s8rs", "dwconv_s8rs", "fc_s8rs", "add_s8rs", "lut_s8", "max_pool_s8", "quantize",
        "dequantize", "alloc", "dealloc",
    }  # fmt: skip
    first = {key: array[0] for key, array in inputs.items()}
    wanted = {key: array[0] for key, array in golden.items()}
    assert_same_bytes(run_graph(result.imported, first), wanted)
    assert_same_bytes(run_graph(result.graph, first), wanted)


@pytest.mark.parametrize(("name", "board"), on_machines(EXACT))
def test_odd_qdq_models_give_the_bytes_of_onnxruntime(name: str, board: str) -> None:
    case = sample(name)
    assert_same_bytes(outputs_on(compiled(name, board), case.inputs), case.golden)


@pytest.mark.parametrize("board", ["host", pytest.param("linux-aarch64", marks=pytest.mark.qemu)])
def test_dynamic_quantisation_agrees_in_argmax_and_within_a_thousandth(board: str) -> None:
    name = "torch_tinybert_dyn"
    inputs, golden = inputs_of(name), golden_of(name)
    result = compiled(name, board)
    for key, got in outputs_on(result, inputs).items():
        wanted = golden[key]
        assert np.array_equal(got.argmax(-1), wanted.argmax(-1))
        assert np.abs(got - wanted).max() <= 1e-3 * np.abs(wanted).max()
    kernels = [i.kernel for i in result.program.instrs]
    assert kernels.count("fc_dynamic") == 14
    assert "matmul_integer" not in kernels
    assert "cast" not in kernels


def test_weight_only_model_keeps_its_bytes_of_flash() -> None:
    name = "mlperf_kws_dscnn_fp32"
    inputs, golden = inputs_of(name), golden_of(name)
    result = compiled(name, "host")
    assert {"conv_f32w8"} <= {i.kernel for i in result.program.instrs}
    assert int(str(result.report["weights_bytes"])) < 34_000  # 90,416 as floats
    for key, got in outputs_on(result, inputs).items():
        np.testing.assert_allclose(got, golden[key], rtol=1e-5, atol=1e-6)
