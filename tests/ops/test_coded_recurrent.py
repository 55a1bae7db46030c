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


def stateful_model(op: str, steps: int, **attrs: object) -> onnx.ModelProto:
    """Return the layer with initial states as codes, which gives those after the last step: of x, `startN`, `endN`."""
    model = qdq_model(op, reads=("y",), **attrs)
    graph, shape = model.graph, (1, BATCH, HIDDEN)
    graph.input[0].type.tensor_type.shape.dim[0].dim_value = steps
    graph.output[0].type.tensor_type.shape.dim[0].dim_value = steps
    units = {"LSTM": ("sy", "zy", "su", "zu"), "GRU": ("su", "zu")}[op]
    unit = {"LSTM": 2.0**-11, "GRU": 2.0**-15}[op]
    consts = {"su": np.float32(unit), "zu": np.int16(0)}
    graph.initializer.extend([numpy_helper.from_array(np.asarray(a), name) for name, a in consts.items()])
    layer = next(n for n in graph.node if n.op_type == op)
    layer.output[:] = ["y", "h", "c"][: 1 + len(units) // 2]
    layer.input.append("")
    nodes = [*graph.node]
    for index, pair in enumerate(zip(units[::2], units[1::2], strict=True)):
        layer.input.append(f"start{index}_real")
        nodes.insert(0, helper.make_node("DequantizeLinear", [f"start{index}", *pair], [f"start{index}_real"]))
        nodes.append(helper.make_node("QuantizeLinear", [layer.output[1 + index], *pair], [f"end{index}"]))
        kind = TensorProto.INT8 if pair[0] == "sy" else TensorProto.INT16
        graph.input.append(helper.make_tensor_value_info(f"start{index}", kind, shape))
        graph.output.append(helper.make_tensor_value_info(f"end{index}", kind, shape))
    del graph.node[:]
    graph.node.extend(nodes)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize(("op", "attrs"), KINDS, ids=KIND_NAMES)
def test_steps_one_by_one_give_the_codes_of_the_sequence(op: str, attrs: dict[str, object]) -> None:
    whole, single = (compiled(stateful_model(op, steps, **attrs)) for steps in (STEPS, 1))
    assert all(CODED[op] in {n.op for n in graph.nodes} for graph in (whole, single))
    rng, x = np.random.default_rng(8), x_codes()
    starts = {name: np.zeros(whole.types[name].shape, whole.types[name].dtype.numpy) for name in whole.inputs[1:]}
    starts = {name: rng.integers(-90, 90, a.shape).astype(a.dtype) for name, a in starts.items()}
    want, found = run_graph(whole, {"xq": x, **starts}), []
    for step in range(STEPS):
        done = run_graph(single, {"xq": x[step : step + 1], **starts})
        found.append(done["yq"])
        starts = {name: done[name.replace("start", "end")] for name in starts}
    np.testing.assert_array_equal(np.concatenate(found), want["yq"])
    assert all((starts[name] == want[name.replace("start", "end")]).all() for name in starts)


@pytest.mark.parametrize(("op", "attrs"), KINDS, ids=KIND_NAMES)
def test_layer_with_initial_states_is_near_onnxruntime(op: str, attrs: dict[str, object]) -> None:
    ort = require_module("onnxruntime")
    model = stateful_model(op, STEPS, **attrs)
    graph, rng = compiled(model), np.random.default_rng(8)
    feed = {"xq": x_codes()}
    for name in graph.inputs[1:]:
        kind = graph.types[name]
        most = 100 if kind.dtype is DType.S8 else 1 << 13
        feed[name] = rng.integers(-most, most, kind.shape).astype(kind.dtype.numpy)
    got = run_graph(graph, feed)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for name, want in zip([o.name for o in model.graph.output], session.run(None, feed), strict=True):
        unit = 1 if want.dtype == np.int8 else {"LSTM": 2048, "GRU": 32768}[op] // 128
        assert np.abs(got[name].astype(np.int64) - want).max() <= 2 * unit


def test_states_of_other_codes_keep_the_layer_float() -> None:
    model = stateful_model("GRU", STEPS)
    next(i for i in model.graph.initializer if i.name == "su").CopyFrom(numpy_helper.from_array(np.float32(0.01), "su"))
    assert "CodedGRU" not in {n.op for n in compiled(model).nodes}


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
    for dirs, starts in ((2, 0), (1, 1)):  # more weights than a data cache keeps
        yield layer_case(rng, ("lstm", None), (6, 1, 70, 53), 2000, -127, dirs=dirs, starts=starts)
    yield layer_case(rng, ("lstm", None), (3, 1, 300, 20), 2000, -127)
    for cell, before in (("lstm", None), ("gru", 1), ("gru", 0)):
        for sizes in ((1, 1, 1, 1), (4, 2, 5, 7), (2, 1, 40, 33), (5, 3, 17, 4), (2, 1, 163, 12), (2, 1, 3, 160)):
            yield layer_case(rng, (cell, before), sizes, 2000, -127)
        for size, least in ((2000, -127), (1 << 24, -127), (100, -128)):
            yield layer_case(rng, (cell, before), (3, 1, 8, 16), size, least)
        yield layer_case(rng, (cell, before), (12, 1, 6, 5), 1000, -127, gain=9.0)
        for dirs, reverse in ((1, 1), (2, 0)):
            yield layer_case(rng, (cell, before), (3, 2, 16, 24), 1000, -127, dirs=dirs, reverse=reverse)
            yield layer_case(rng, (cell, before), (2, 1, 70, 9), 1000, -127, dirs=dirs, reverse=reverse)
        for sizes, dirs in (((1, 1, 7, 5), 1), ((3, 2, 16, 24), 2), ((2, 2, 9, 33), 1)):
            yield layer_case(rng, (cell, before), sizes, 1000, -127, dirs=dirs, starts=1)
        for beyond in (0, 1):  # the largest sum of a gate with its bias: 2^23 - 1, 2^23
            case = layer_case(rng, (cell, before), (2, 1, 9, 5), 100, -127, gain=1e-3)
            case.arrays["in"][:] = -128
            case.arrays["weights"][0, 3] = -127
            case.arrays["bias"][0, 0, 3] = 2**23 - 1 - 9 * 127 * 128 + beyond
            yield make_case(case.instr.kernel, {k: a for k, a in case.arrays.items() if k != "out"}, case.instr.params,
                            out={"out": (case.instr.operand("out").type.shape, DType.S8)})  # fmt: skip


def layer_case(
    rng: np.random.Generator, kind: tuple[str, int | None], sizes: tuple[int, int, int, int], size: int, least: int, *,
    gain: float = 0.02, dirs: int = 1, reverse: int = 0, starts: int = 0,
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
        "out_factor": 1.2e-7 if cell == "lstm" else 0.0039, "cell": cell, "starts": starts,
    }  # fmt: skip
    if before is not None:
        params["linear_before_reset"] = before
    out = {"out": ((steps, dirs, batch, hidden), DType.S8)}
    if not starts:
        return make_case(f"{cell}_s8", arrays, params, out=out)
    shape = (dirs, batch, hidden)
    codes = {"start_codes": rng.integers(-128, 128, shape).astype(np.int8)} if cell == "lstm" else {}
    arrays |= {**codes, "start_cells": rng.integers(-(1 << 15), 1 << 15, shape).astype(np.int16)}
    return make_case(f"{cell}_state_s8", arrays, params, out={**out, "last_cells": (shape, DType.S16)})
