"""An LSTM in the quantiser: its weights by rows, its results as codes, what keeps it float."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from glowc.frontend import import_model
from glowc.passes.pipeline import run_pipeline
from glowc.quant import Activations, QuantizeOptions, quantize_model
from glowc.quant.engine import Engine
from glowc.quant.quantizer import load_float
from glowc.quant.simulate import relative_error
from glowc.quant.tune import outputs_of
from tests.conftest import require_module

STEPS, INPUTS, HIDDEN, CLASSES = 6, 5, 8, 3


def lstm_net(outputs: tuple[str, ...] = ("all", "last"), read: str = "last", **attrs: object) -> onnx.ModelProto:
    """Return LSTM -> Reshape -> Gemm."""
    rng = np.random.default_rng(3)
    shapes = {"W": (1, 4 * HIDDEN, INPUTS), "R": (1, 4 * HIDDEN, HIDDEN), "B": (1, 8 * HIDDEN), "k": (HIDDEN, CLASSES)}
    consts = {name: rng.uniform(-0.5, 0.5, shape).astype(np.float32) for name, shape in shapes.items()}
    consts["flat"] = np.array([-1, HIDDEN])
    nodes = [
        helper.make_node("LSTM", ["x", "W", "R", "B"], list(outputs), name="lstm", hidden_size=HIDDEN, **attrs),
        helper.make_node("Reshape", [read, "flat"], ["rows"], name="flatten"),
        helper.make_node("MatMul", ["rows", "k"], ["y"], name="classes"),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (STEPS, 1, INPUTS))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, (1 if read == "last" else STEPS, CLASSES))
    held = [numpy_helper.from_array(a, n) for n, a in consts.items()]
    graph = helper.make_graph(nodes, "net", [x], [y], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def samples() -> list[dict[str, np.ndarray]]:
    rng = np.random.default_rng(8)
    return [{"x": rng.normal(0, 1, (STEPS, 1, INPUTS)).astype(np.float32)} for _ in range(8)]


@pytest.mark.parametrize(("outputs", "read"), [(("all", "last"), "last"), (("", "last"), "last"), (("all",), "all")])
def test_layer_is_on_codes_with_a_scale_per_row(outputs: tuple[str, ...], read: str) -> None:
    require_module("onnxruntime")
    net = lstm_net(outputs, read)
    done = quantize_model(net, samples())
    onnx.checker.check_model(done.model, full_check=True)
    assert not done.floats
    consts = {i.name: numpy_helper.to_array(i) for i in done.model.graph.initializer}
    assert [consts[f"{n}_scale"].shape for n in "WR"] == [(4 * HIDDEN,)] * 2
    assert [consts[f"{n}_codes"].dtype for n in "WR"] == [np.int8] * 2
    inputs = load_float(net, Engine()).inputs
    exact, got = (outputs_of(model, inputs, samples()) for model in (net, done.model))
    assert relative_error(got, exact) < 0.02
    assert done.error == pytest.approx(relative_error(got, exact), abs=0.005)
    graph = run_pipeline(import_model(done.model))
    assert "CodedLSTM" in {n.op for n in graph.nodes}
    assert not [n for n in graph.types.values() if n.dtype.is_float and n.shape == (STEPS, 1, 1, HIDDEN)]


@pytest.mark.parametrize(
    ("attrs", "reason"),
    [({"direction": "reverse"}, "forward in time"), ({"clip": 2.0}, "a clip"),
     ({"activations": ["Relu", "Tanh", "Tanh"]}, "activations")],
)  # fmt: skip
def test_other_kinds_stay_float_with_the_cause(attrs: dict[str, object], reason: str) -> None:
    done = quantize_model(lstm_net(**attrs), samples())
    assert [f.name for f in done.floats if reason in f.reason] == ["lstm"]


def test_int16_leaves_it_float() -> None:
    done = quantize_model(lstm_net(), samples(), QuantizeOptions(activations=Activations.INT16))
    assert "LSTM has no int16 form here" in {f.reason for f in done.floats}
