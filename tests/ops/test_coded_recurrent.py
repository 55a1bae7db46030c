"""CodedLSTM and CodedGRU: the fold of layers between QDQ pairs, their distance from onnxruntime; kernel cases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from glowc.board import load_board
from glowc.frontend import import_model
from glowc.graph.graph import Graph
from glowc.graph.types import DType
from glowc.ops.coded_recurrent import GATES, gate_tables
from glowc.ops.interp import run_graph
from glowc.passes.pipeline import run_pipeline
from glowc.select.candidates import Candidates
from glowc.select.choose import select_variants
from tests.conftest import require_module
from tests.kernels.case import Case, make_case

STEPS, BATCH, INPUTS, HIDDEN = 7, 2, 5, 6
CODED = {"LSTM": "CodedLSTM", "GRU": "CodedGRU"}
KINDS = [("LSTM", {}), ("GRU", {"linear_before_reset": 1}), ("GRU", {"linear_before_reset": 0})]
KIND_NAMES = ["lstm", "gru", "gru-resets-first"]


def qdq_model(
    op: str = "LSTM", *, batch: int = BATCH, reads: Sequence[str] = ("y",), per_row: bool = True,
    sizes: tuple[int, int] = (INPUTS, HIDDEN), **attrs: object,
) -> onnx.ModelProto:  # fmt: skip
    """Return DQ(x), DQ(W), DQ(R) -> LSTM or GRU -> Q of what is read: y, or the last state."""
    rng = np.random.default_rng(4)
    inputs, hidden = sizes
    gates, dirs = GATES[op.lower()] * hidden, 2 if attrs.get("direction") == "bidirectional" else 1
    rows = gates if per_row else 1
    consts: dict[str, np.ndarray] = {
        "sx": np.float32(0.03), "zx": np.int8(-7), "sy": np.float32(1 / 120), "zy": np.int8(5),
        "w": rng.integers(-127, 128, (dirs, gates, inputs)).astype(np.int8),
        "r": rng.integers(-127, 128, (dirs, gates, hidden)).astype(np.int8),
        "sw": rng.uniform(0.003, 0.006, rows).astype(np.float32),
        "sr": rng.uniform(0.003, 0.006, rows).astype(np.float32),
        "zw": np.zeros(rows, np.int8), "b": rng.uniform(-0.5, 0.5, (dirs, 2 * gates)).astype(np.float32),
    }  # fmt: skip
    if not per_row:
        consts |= {name: consts[name].reshape(()) for name in ("sw", "sr", "zw")}
    axis = {"axis": 1} if per_row else {}
    nodes = [
        helper.make_node("DequantizeLinear", ["xq", "sx", "zx"], ["x"]),
        helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["W"], **axis),
        helper.make_node("DequantizeLinear", ["r", "sr", "zw"], ["R"], **axis),
        helper.make_node(op, ["x", "W", "R", "b"], ["y", "h"], hidden_size=hidden, **attrs),
        *(helper.make_node("QuantizeLinear", [name, "sy", "zy"], [f"{name}q"]) for name in reads),
    ]
    shapes = {"y": (STEPS, dirs, batch, hidden), "h": (dirs, batch, hidden)}
    held = [numpy_helper.from_array(np.asarray(a), n) for n, a in consts.items()]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("xq", TensorProto.INT8, (STEPS, batch, inputs))],
        [helper.make_tensor_value_info(f"{name}q", TensorProto.INT8, shapes[name]) for name in reads], held,
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def compiled(model: onnx.ModelProto) -> Graph:
    return run_pipeline(import_model(model))


def x_codes(batch: int = BATCH) -> np.ndarray:
    return np.random.default_rng(5).integers(-128, 128, (STEPS, batch, INPUTS)).astype(np.int8)


@pytest.mark.parametrize("reads", [("y",), ("h",), ("y", "h")])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(("op", "attrs"), KINDS, ids=KIND_NAMES)
def test_layer_is_at_most_two_steps_from_onnxruntime(
    op: str, attrs: dict[str, object], direction: str, reads: Sequence[str]
) -> None:
    ort = require_module("onnxruntime")
    model = qdq_model(op, reads=reads, per_row=direction != "reverse", direction=direction, **attrs)
    graph = compiled(model)
    assert CODED[op] in {n.op for n in graph.nodes}
    got = run_graph(graph, {"xq": x_codes()})
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for name, want in zip((f"{name}q" for name in reads), session.run(None, {"xq": x_codes()}), strict=True):
        assert np.abs(got[name].astype(np.int64) - want).max() <= 2  # the state is rounded before each step
        assert want.std() > 15


@pytest.mark.parametrize(
    ("op", "attrs"),
    [("LSTM", {"clip": 3.0}), ("LSTM", {"input_forget": 1}), ("GRU", {"clip": 3.0}),
     ("LSTM", {"activations": ["HardSigmoid", "Tanh", "Tanh"]}), ("GRU", {"activations": ["HardSigmoid", "Tanh"]})],
)  # fmt: skip
def test_other_kinds_stay_float(op: str, attrs: dict[str, object]) -> None:
    assert CODED[op] not in {n.op for n in compiled(qdq_model(op, **attrs)).nodes}


def test_activations_that_are_usual_may_be_said() -> None:
    model = qdq_model("GRU", activations=["Sigmoid", "Tanh"] * 2, direction="bidirectional")
    assert "CodedGRU" in {n.op for n in compiled(model).nodes}


@pytest.mark.parametrize("op", CODED)
def test_state_that_is_read_as_float_keeps_the_layer_float(op: str) -> None:
    model = qdq_model(op)
    model.graph.output.append(helper.make_tensor_value_info("h", TensorProto.FLOAT, (1, BATCH, HIDDEN)))
    assert CODED[op] not in {n.op for n in compiled(model).nodes}


@pytest.mark.parametrize("board", ["mps2-an386", "mps3-an547", "linux-aarch64"])
@pytest.mark.parametrize(("op", "attrs"), KINDS, ids=KIND_NAMES)
def test_odd_sizes_have_fast_kernels(op: str, attrs: dict[str, object], board: str) -> None:
    """Constants that fill pairs of inputs and of cells are within their bound."""
    graph = compiled(qdq_model(op, sizes=(13, 33), **attrs))
    selection = select_variants(Candidates(graph, load_board(board).cpu), "balanced")
    kernel = f"{op.lower()}_s8"
    assert {i.variant for i in selection.lower(lambda _: False).instrs if i.kernel == kernel} != {"ref"}


def kernel_cases() -> Iterator[Case]:
    """Sizes around units and beyond what is printed at once, batches, biases beyond what a sum of two gates holds,
    saturated gates, cells and states.
    """
    rng = np.random.default_rng(6)
    for cell, before in (("lstm", None), ("gru", 1), ("gru", 0)):
        for sizes in ((1, 1, 1, 1), (4, 2, 5, 7), (2, 1, 40, 33), (5, 3, 17, 4), (2, 1, 163, 12), (2, 1, 3, 160)):
            yield layer_case(rng, (cell, before), sizes, 2000, -127)
        for size, least in ((2000, -127), (1 << 24, -127), (100, -128)):
            yield layer_case(rng, (cell, before), (3, 1, 8, 16), size, least)
        yield layer_case(rng, (cell, before), (12, 1, 6, 5), 1000, -127, gain=9.0)
        for dirs, reverse in ((1, 1), (2, 0)):
            yield layer_case(rng, (cell, before), (3, 2, 16, 24), 1000, -127, dirs=dirs, reverse=reverse)
            yield layer_case(rng, (cell, before), (2, 1, 70, 9), 1000, -127, dirs=dirs, reverse=reverse)
        for beyond in (0, 1):  # the largest sum of a gate with its bias: 2^23 - 1, 2^23
            case = layer_case(rng, (cell, before), (2, 1, 9, 5), 100, -127, gain=1e-3)
            case.arrays["in"][:] = -128
            case.arrays["weights"][0, 3] = -127
            case.arrays["bias"][0, 0, 3] = 2**23 - 1 - 9 * 127 * 128 + beyond
            yield make_case(case.instr.kernel, {k: a for k, a in case.arrays.items() if k != "out"}, case.instr.params,
                            out={"out": (case.instr.operand("out").type.shape, DType.S8)})  # fmt: skip


def layer_case(
    rng: np.random.Generator, kind: tuple[str, int | None], sizes: tuple[int, int, int, int], size: int, least: int, *,
    gain: float = 0.02, dirs: int = 1, reverse: int = 0,
) -> Case:  # fmt: skip
    (cell, before), (steps, batch, in_k, hidden) = kind, sizes
    rows = GATES[cell] * hidden
    arrays = {
        "in": rng.integers(-128, 128, (steps, batch, in_k)).astype(np.int8),
        "weights": rng.integers(least, 128, (dirs, rows, in_k)).astype(np.int8),
        "recurrent": rng.integers(least, 128, (dirs, rows, hidden)).astype(np.int8),
        "bias": rng.integers(-size, size, (dirs, 2, rows)).astype(np.int32),
        "scale": rng.uniform(0.5 * gain, 2 * gain, (dirs, 2, rows)).astype(np.float32), "table": gate_tables(),
    }  # fmt: skip
    arrays["weights"][:, 0] = least
    params: dict[str, int | float | str] = {
        "steps": steps, "batch": batch, "in_k": in_k, "hidden": hidden, "dirs": dirs, "reverse": reverse, "out_zp": -3,
        "out_factor": 1.2e-7 if cell == "lstm" else 0.0039, "cell": cell,
    }  # fmt: skip
    if before is not None:
        params["linear_before_reset"] = before
    return make_case(f"{cell}_s8", arrays, params, out={"out": ((steps, dirs, batch, hidden), DType.S8)})
