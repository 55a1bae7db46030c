"""`--activations int16`: what the file says, how near to float it is, that every layer stays in integers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model
from glowc.quant import Activations, QuantizeOptions, quantize_model
from glowc.quant.emit import edge_params
from glowc.quant.engine import prepare_interpreter, prepare_onnxruntime
from glowc.quant.load import load_float
from glowc.quant.narrow import raised
from glowc.quant.scheme import params_of
from glowc.quant.simulate import relative_error
from glowc.quant.tune import outputs_of
from glowc.quant.weights import least_scales16, nearest
from tests.conftest import require_module
from tests.unit.cli_calls import Glowc
from tests.unit.quantize_nets import conv_net, images

SIXTEEN = QuantizeOptions(activations=Activations.INT16)


def test_file_is_valid_symmetric_and_nearer_to_float_than_int8() -> None:
    require_module("onnxruntime")
    inputs = load_float(conv_net()).inputs
    exact = outputs_of(conv_net(), inputs, images())
    done, other = quantize_model(conv_net(), images(), SIXTEEN), quantize_model(conv_net(), images())
    onnx.checker.check_model(done.model, full_check=True)
    assert done.model.opset_import[0].version == 21
    edges = edge_params(done.model)
    assert {(p.zero_point, p.bits) for p in edges.values()} == {(0, 16)}
    error = relative_error(outputs_of(done.model, inputs, images()), exact)
    assert error < relative_error(outputs_of(other.model, inputs, images()), exact) / 1.5


def test_every_layer_is_on_integers_and_as_onnxruntime_within_a_step(tmp_path: Path) -> None:
    require_module("onnxruntime")
    model = quantize_model(conv_net(), images(), SIXTEEN).model
    file = tmp_path / "net.onnx"
    file.write_bytes(model.SerializeToString())
    graph = compile_model(file, load_board("host"), CompileOptions()).graph
    assert not [name for node in graph.nodes for name in node.outputs if graph.types[name].dtype.is_float]
    known = edge_params(model)["x"]
    codes = [{"x": known.codes(sample["x"])} for sample in images()]
    for sample in codes:
        got, want = (run(model)(sample)[0].astype(np.int64) for run in (prepare_interpreter, prepare_onnxruntime))
        assert np.abs(got - want).max() <= 1


def test_sums_of_equal_weights_stay_within_int32() -> None:
    """3,000 weights of the largest code times the largest input would be 1.2 * 2^33."""
    weights = np.ones((2, 3000), np.float32)
    weights[1] = 0
    weights[1, 0] = 1
    bias = np.array([3.0, 0.5], np.float32)
    least = least_scales16(weights, 0, bias, 1e-3)
    codes = nearest(weights, 0, least).codes.astype(np.int64)
    sums = 32768 * np.abs(codes).sum(axis=1) + np.abs(bias / (1e-3 * np.maximum(least, 1 / 127)))
    assert (sums < 2**31).all()
    assert codes[0, 0] == 21  # no coarser than it must be
    assert codes[1, 0] == 127


@pytest.mark.parametrize(("low", "high"), [(-1.0, 3.0), (0.0, 5.0), (-2.0, 0.0), (0.0, 0.0)])
def test_sixteen_bits_are_symmetric(low: float, high: float) -> None:
    params = params_of(low, high, bits=16)
    assert params.zero_point == 0
    assert params.low <= low
    assert params.high >= high * (1 - 1e-6)


def test_older_operators_become_those_of_opset_21() -> None:
    net = raised(conv_net(), 21, "it")
    onnx.checker.check_model(net, full_check=True)
    assert (net.opset_import[0].version, net.ir_version) == (21, 10)
    assert raised(net, 21, "it") is net


def test_command_writes_int16(glowc: Glowc, tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(conv_net().SerializeToString())
    np.savez(tmp_path / "in.npz", x=np.stack([s["x"] for s in images()]))
    common = ("quantize", tmp_path / "net.onnx", "--data", tmp_path / "in.npz", "-o", "q.onnx", "--activations")
    done = glowc(*common, "int16")
    assert done.status == 0
    assert "layers on int16" in done.out
    done = glowc(*common, "int4")
    assert (done.status, "no activations 'int4'" in done.err) == (1, True)
    done = glowc(*common, "int16", "--io-type", "int8")
    assert (done.status, "--io-type int8 with --activations int16" in done.err) == (1, True)
