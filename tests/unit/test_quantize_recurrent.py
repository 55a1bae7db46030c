"""LSTM and GRU in the quantiser: their weights by rows, their results as codes, what keeps them float."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model
from glowc.frontend import import_model
from glowc.ops.interp import run_graph
from glowc.passes.pipeline import run_pipeline
from glowc.quant import Activations, QuantizeOptions, quantize_model
from glowc.quant.emit import edge_params
from glowc.quant.load import load_float
from glowc.quant.simulate import relative_error
from glowc.quant.tune import outputs_of
from tests.conftest import require_module
from tests.e2e.models import model_path
from tests.unit.quantize_nets import model as float_model

STEPS, INPUTS, HIDDEN, CLASSES = 6, 5, 8, 3
GATES = {"LSTM": 4, "GRU": 3}
ATTRS: dict[str, dict[str, object]] = {
    "LSTM": {}, "GRU": {"linear_before_reset": 1, "direction": "bidirectional"},
}  # fmt: skip


def recurrent_net(
    op: str, outputs: tuple[str, ...] = ("all", "last"), read: str = "last", **attrs: object
) -> onnx.ModelProto:
    """Return LSTM or GRU -> Reshape -> Gemm."""
    rng = np.random.default_rng(3)
    dirs, rows = 2 if attrs.get("direction") == "bidirectional" else 1, GATES[op] * HIDDEN
    shapes = {"W": (dirs, rows, INPUTS), "R": (dirs, rows, HIDDEN), "B": (dirs, 2 * rows), "k": (HIDDEN, CLASSES)}
    consts = {name: rng.uniform(-0.5, 0.5, shape).astype(np.float32) for name, shape in shapes.items()}
    consts["flat"] = np.array([-1, HIDDEN])
    nodes = [
        helper.make_node(op, ["x", "W", "R", "B"], list(outputs), name="layer", hidden_size=HIDDEN, **attrs),
        helper.make_node("Reshape", [read, "flat"], ["rows"], name="flatten"),
        helper.make_node("MatMul", ["rows", "k"], ["y"], name="classes"),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (STEPS, 1, INPUTS))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, (dirs * (1 if read == "last" else STEPS), CLASSES))
    held = [numpy_helper.from_array(a, n) for n, a in consts.items()]
    graph = helper.make_graph(nodes, "net", [x], [y], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def samples() -> list[dict[str, np.ndarray]]:
    rng = np.random.default_rng(8)
    return [{"x": rng.normal(0, 1, (STEPS, 1, INPUTS)).astype(np.float32)} for _ in range(8)]


@pytest.mark.parametrize(("outputs", "read"), [(("all", "last"), "last"), (("", "last"), "last"), (("all",), "all")])
@pytest.mark.parametrize("op", GATES)
def test_layer_is_on_codes_with_a_scale_per_row(op: str, outputs: tuple[str, ...], read: str) -> None:
    require_module("onnxruntime")
    net = recurrent_net(op, outputs, read, **ATTRS[op])
    done = quantize_model(net, samples())
    onnx.checker.check_model(done.model, full_check=True)
    assert not done.floats
    consts = {i.name: numpy_helper.to_array(i) for i in done.model.graph.initializer}
    assert [consts[f"{n}_scale"].shape for n in "WR"] == [(GATES[op] * HIDDEN,)] * 2
    assert [consts[f"{n}_codes"].dtype for n in "WR"] == [np.int8] * 2
    inputs = load_float(net).inputs
    exact, got = (outputs_of(model, inputs, samples()) for model in (net, done.model))
    assert relative_error(got, exact) < 0.02
    assert done.error == pytest.approx(relative_error(got, exact), abs=0.005)
    graph = run_pipeline(import_model(done.model))
    assert f"Coded{op}" in {n.op for n in graph.nodes}
    assert not [n for n in graph.types.values() if n.dtype.is_float and n.shape[:1] + n.shape[2:] == (STEPS, 1, HIDDEN)]


@pytest.mark.parametrize(
    ("op", "attrs", "reason"),
    [("LSTM", {"clip": 2.0}, "a clip"), ("LSTM", {"activations": ["Relu", "Tanh", "Tanh"]}, "activations"),
     ("GRU", {"clip": 2.0}, "a clip"), ("GRU", {"activations": ["Sigmoid", "Relu"]}, "activations")],
)  # fmt: skip
def test_other_kinds_stay_float_with_the_cause(op: str, attrs: dict[str, object], reason: str) -> None:
    done = quantize_model(recurrent_net(op, **attrs), samples())
    assert [f.name for f in done.floats if reason in f.reason] == ["layer"]


@pytest.mark.parametrize("op", GATES)
def test_int16_leaves_it_float(op: str) -> None:
    done = quantize_model(recurrent_net(op), samples(), QuantizeOptions(activations=Activations.INT16))
    assert f"{op} has no int16 form here" in {f.reason for f in done.floats}


@pytest.mark.shared
def test_keyword_model_of_a_gru_has_the_classes_of_float() -> None:
    require_module("onnxruntime")
    folder = model_path("torch_gru_kws_fp32").parent
    x, exact = (np.load(folder / f"{name}.npz")[key] for name, key in (("inputs", "input"), ("golden", "output")))
    done = quantize_model(folder / "model.onnx", [{"input": sample} for sample in x])
    assert not done.floats
    graph, edges = run_pipeline(import_model(done.model)), edge_params(done.model)
    got = [run_graph(graph, {"input": edges["input"].codes(sample)})["output"].argmax() for sample in x]
    assert got == exact.reshape(len(x), -1).argmax(axis=1).tolist()


@pytest.mark.parametrize("op", GATES)
def test_recurrent_layers_count_as_layers(op: str) -> None:
    assert quantize_model(recurrent_net(op), samples()).layers == 2


@pytest.mark.parametrize("op", GATES)
def test_a_float_layer_of_few_cells_is_not_estimated_at_less_than_its_int8_form(tmp_path: Path, op: str) -> None:
    net, found = recurrent_net(op, **ATTRS[op]), []
    for model in (net, quantize_model(net, samples()).model):
        (tmp_path / "net.onnx").write_bytes(model.SerializeToString())
        done = compile_model(tmp_path / "net.onnx", load_board("mps2-an386"), CompileOptions())
        found.append(done.report["insns_estimate"])
    assert found[0] > found[1]


@pytest.mark.parametrize(("cells", "variant"), [(3, "ref"), (4, "fpu")])
def test_a_float_layer_of_four_cells_is_multiplied_by_the_fpu(tmp_path: Path, cells: int, variant: str) -> None:
    rng = np.random.default_rng(3)
    consts = {n: rng.uniform(-1, 1, (1, 4 * cells, k)).astype(np.float32) for n, k in (("W", 1), ("R", cells))}
    node = helper.make_node("LSTM", ["x", "W", "R"], ["y"], hidden_size=cells)
    net = float_model([node], consts, {"x": [3, 1, 1]}, {"y": [3, 1, 1, cells]})
    (tmp_path / "net.onnx").write_bytes(net.SerializeToString())
    done = compile_model(tmp_path / "net.onnx", load_board("mps2-an386"), CompileOptions())
    assert f"lstm_f32__{variant}" in {layer["kernel"] for layer in done.report["layers"]}
