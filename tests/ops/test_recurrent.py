"""LSTM, GRU, RNN: reference and lowered program against onnxruntime and onnx.reference, errors, kernel cases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from glowc.board import load_cpu
from glowc.errors import ModelError
from glowc.frontend import import_model
from glowc.graph.graph import Graph, Node
from glowc.graph.types import DType, TensorType, type_of
from glowc.kernels.common.recurrent import LayerPlan
from glowc.kernels.verify import verify_program
from glowc.lower.lowering import lower_graph
from glowc.ops.base import OpError
from glowc.ops.interp import run_graph
from glowc.ops.recurrent import folded_bias, infer
from glowc.ops.recurrent_cell import ACTIVATIONS
from glowc.ops.recurrent_kernels import scratch_elements
from glowc.ops.recurrent_spec import cell_of, shape_of
from glowc.program.interp import run_program
from glowc.program.ir import Program
from glowc.program.kernel import get_kernel
from tests.conftest import require_module
from tests.kernels.case import Case, make_case
from tests.kernels.params import cell_params
from tests.ops.recurrent_models import OPS, Layer, by_onnxruntime, feeds_of, layer, model_of

# Sums in another order, and onnxruntime's approximations of exp and tanh, over few steps.
RTOL, ATOL = 1e-5, 2e-6
CAMEL = {
    "leakyrelu": "LeakyRelu", "thresholdedrelu": "ThresholdedRelu", "scaledtanh": "ScaledTanh",
    "hardsigmoid": "HardSigmoid",
}  # fmt: skip
DEFAULTS = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}


def graph_of(one: Layer, **options: object) -> Graph:
    return import_model(model_of(one, **options), name="net")  # type: ignore[arg-type]


def lowered(graph: Graph) -> Program:
    program = lower_graph(graph, load_cpu("cortex-m4"))
    verify_program(program)
    return program


def check(one: Layer, want: dict[str, np.ndarray], **options: object) -> None:
    """Compare the reference and the lowered program with `want`."""
    graph, feeds = graph_of(one, **options), feeds_of(one)
    inputs = {name: feeds[name] for name in graph.inputs}
    for what, got in (("reference", run_graph(graph, inputs)), ("program", run_program(lowered(graph), inputs))):
        assert got.keys() == want.keys()
        for name, array in want.items():
            np.testing.assert_allclose(got[name], array, rtol=RTOL, atol=ATOL, err_msg=f"{what} {name} of {one.attrs}")


def check_with_onnxruntime(one: Layer, **options: object) -> None:
    require_module("onnxruntime")
    check(one, by_onnxruntime(model_of(one, **options), feeds_of(one)), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("lens", [None, (5, 2, 0), (3, 5, 1)])
def test_directions_lengths_and_states_equal_onnxruntime(op: str, direction: str, lens: tuple[int, ...] | None) -> None:
    for initial, bias in product((False, True), repeat=2):
        one = layer(op, batch=3, lens=lens, initial=initial, bias=bias, direction=direction)
        check_with_onnxruntime(one)
        check_with_onnxruntime(one, const=range(1, 8))


@pytest.mark.parametrize("clip", [None, 0.3])
@pytest.mark.parametrize(
    ("op", "switches"),
    [
        ("RNN", {}), ("GRU", {"linear_before_reset": 0}), ("GRU", {"linear_before_reset": 1}),
        ("LSTM", {"peephole": True}), ("LSTM", {"input_forget": 1}), ("LSTM", {"input_forget": 1, "peephole": True}),
    ],
)  # fmt: skip
def test_clip_and_switches_equal_onnxruntime(op: str, switches: dict[str, object], clip: float | None) -> None:
    bounds = {} if clip is None else {"clip": clip}
    for direction in ("forward", "bidirectional"):
        check_with_onnxruntime(layer(op, initial=True, direction=direction, **switches, **bounds))  # type: ignore[arg-type]


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_equal_onnxruntime(op: str, name: str) -> None:
    entry = ACTIVATIONS[name]
    for place in range(len(DEFAULTS[op])):
        names = list(DEFAULTS[op])
        names[place] = CAMEL.get(name, name.capitalize())
        attrs: dict[str, object] = {"activations": names}
        attrs |= {"activation_alpha": [0.3]} if entry.alpha else {}
        attrs |= {"activation_beta": [0.6]} if entry.beta else {}
        # Few steps: a gate that is not bounded makes the state grow.
        check_with_onnxruntime(layer(op, seq=2, **attrs))  # type: ignore[arg-type]
        if entry.has_parameters and None not in (*entry.alpha, *entry.beta):
            check_with_onnxruntime(layer(op, seq=2, activations=names))


@pytest.mark.parametrize(("op", "fast"), [
    ("LSTM", ("sigmoid", "tanh", "tanh")), ("GRU", ("sigmoid", "tanh", "")), ("RNN", ("tanh", "", "")),
])  # fmt: skip
def test_usual_activations_are_of_four_cells_at_a_time(op: str, fast: tuple[str, ...]) -> None:
    plans = [i.plan for i in lowered(graph_of(layer(op))).instrs if i.kernel == f"{op.lower()}_f32"]
    assert plans == [LayerPlan(rows="glow_fpu_four", fast=fast)]
    few = [i.variant for i in lowered(graph_of(layer(op, hidden=3))).instrs if i.kernel == f"{op.lower()}_f32"]
    assert few == ["ref"]


def test_directions_with_different_activations_consume_alpha_in_order() -> None:
    names = ["LeakyRelu", "Tanh", "HardSigmoid", "Elu"]
    attrs = {"activation_alpha": [0.3, 0.4, 0.7], "activation_beta": [0.45]}
    check_with_onnxruntime(layer("GRU", seq=2, direction="bidirectional", activations=names, **attrs))


@pytest.mark.parametrize("op", OPS)
def test_batch_first_is_the_transposed_layer(op: str) -> None:
    one = layer(op, lens=(4, 2), initial=True, direction="bidirectional")
    want = run_graph(graph_of(one), {n: feeds_of(one)[n] for n in graph_of(one).inputs})
    swap = (0, 5, 6)
    inputs = tuple(
        np.ascontiguousarray(a.transpose(1, 0, 2)) if i in swap and a is not None else a
        for i, a in enumerate(one.inputs)
    )
    turned = {n: a.transpose(2, 0, 1, 3) if n == "y" else a.transpose(1, 0, 2) for n, a in want.items()}
    check(replace(one, inputs=inputs, attrs={**one.attrs, "layout": 1}), turned)


@pytest.mark.parametrize("op", OPS)
def test_layers_equal_onnx_reference(op: str) -> None:
    for batch_first in (False, True):
        one = layer(op, initial=True, batch_first=batch_first)
        model = model_of(one)
        names = [o.name for o in model.graph.output]
        wanted = {n: a for n, a in feeds_of(one).items() if n in {i.name for i in model.graph.input}}
        got = ReferenceEvaluator(model).run(None, wanted)
        want = dict(zip(names, map(np.asarray, got), strict=True))
        if op == "LSTM" and batch_first:
            want.pop("y_c"), model.graph.output.pop()  # onnx.reference leaves its axes as they are
            check(one, want, outputs=["y", "y_h"])
        else:
            check(one, want)


@pytest.mark.parametrize("op", OPS)
def test_any_subset_of_outputs(op: str) -> None:
    one = layer(op, direction="bidirectional")
    full = graph_of(one)
    want = run_graph(full, {"x": feeds_of(one)["x"]})
    for kept in product((False, True), repeat=one.outputs):
        names = [n if keep else "" for n, keep in zip(["y", "y_h", "y_c"], kept, strict=False)]
        if any(kept):
            check(one, {n: want[n] for n in names if n}, outputs=names)


def test_output_of_all_steps_that_nobody_reads_takes_no_memory() -> None:
    one = layer("GRU", seq=50)
    graph = graph_of(one)
    node = graph.nodes[0]
    program = lowered(replace(graph, outputs=("y_h",), nodes=(node,)))
    assert sum(b.size_bytes for b in program.buffers.values() if b.name == "y") == 0
    assert program.instrs[-1].params["has_y"] == 0


def test_lengths_at_run_time_are_kept_inside_the_input() -> None:
    one = layer("LSTM", lens=(9, -1))
    graph = graph_of(one)
    got = run_program(lowered(graph), {n: feeds_of(one)[n] for n in graph.inputs})
    inputs = list(one.inputs)
    inputs[4] = np.asarray([5, 0], np.int32)
    want = run_graph(graph, {n: feeds_of(replace(one, inputs=tuple(inputs)))[n] for n in graph.inputs})
    for name, array in want.items():
        np.testing.assert_array_equal(got[name], array)


def test_double_precision() -> None:
    for op in OPS:
        one = layer(op, dtype="float64", clip=0.5, initial=True)
        graph = graph_of(one)
        inputs = {n: feeds_of(one)[n] for n in graph.inputs}
        want, got = run_graph(graph, inputs), run_program(lowered(graph), inputs)
        for name, array in want.items():
            np.testing.assert_allclose(got[name], array, rtol=1e-14)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"activations": ["Gauss", "Tanh"]}, "activation 'Gauss'"),
        ({"activations": ["Affine", "Tanh"]}, "without activation_alpha"),
        ({"activations": ["Elu", "Tanh"], "activation_alpha": [1.0, 2.0]}, "more values"),
        ({"activations": ["Sigmoid"]}, "needs 2 for each of 1 directions"),
        ({"direction": "both"}, "direction 'both'"),
        ({"clip": -1.0}, "clip -1.0"),
        ({"hidden_size": 5}, "W is"),
    ],
)
def test_attributes_that_make_no_sense_are_errors(change: dict[str, object], message: str) -> None:
    one = layer("GRU")
    with pytest.raises(ModelError, match=message):
        graph_of(replace(one, attrs={**one.attrs, **change}))


@pytest.mark.parametrize(("index", "name"), [(1, "W"), (2, "R"), (3, "B"), (4, "sequence_lens"), (5, "initial_h")])
def test_shapes_that_do_not_fit_are_errors(index: int, name: str) -> None:
    one = layer("GRU", lens=(1, 2), initial=True)
    types: list[TensorType | None] = [None if a is None else type_of(a) for a in one.inputs]
    types[index] = TensorType((7,) * types[index].rank, types[index].dtype)  # type: ignore[union-attr]
    node = Node("n", "GRU", tuple("abcdef"), ("y",), dict(one.attrs))  # type: ignore[arg-type]
    with pytest.raises(OpError, match=f"{name} is|recurrence weights"):
        infer(node, tuple(types))


@pytest.mark.parametrize("op", OPS)
def test_weights_at_run_time(op: str) -> None:
    switches: dict[str, dict[str, object]] = {"GRU": {"linear_before_reset": 1}, "LSTM": {"peephole": True}}
    for attrs in ({}, switches.get(op, {})):
        check_with_onnxruntime(layer(op, direction="bidirectional", **attrs), const=())  # type: ignore[arg-type]


def kernel_cases() -> Iterator[Case]:
    """Cover switches, strides, lengths, directions and every activation, on few numbers."""
    variants: list[dict[str, object]] = [
        {}, {"direction": "reverse", "lens": (3, 0)}, {"direction": "bidirectional", "lens": (1, 3), "clip": 0.4},
        {"direction": "bidirectional", "batch_first": True, "lens": (9, -2)}, {"batch": 1, "hidden": 1, "in_k": 1},
    ]  # fmt: skip
    switches: dict[str, list[dict[str, object]]] = {
        "LSTM": [{"peephole": True}, {"input_forget": 1}, {"input_forget": 1, "peephole": True, "clip": 0.2}],
        "GRU": [{"linear_before_reset": 1}, {"linear_before_reset": 1, "clip": 0.3, "lens": (2, 3)}],
        "RNN": [],
    }
    for op in OPS:
        for dtype in ("float32", "float64"):
            for attrs in (*variants, *switches[op]):
                yield kernel_case(layer(op, seq=3, dtype=dtype, **attrs))  # type: ignore[arg-type]
        yield kernel_case(layer(op, direction="bidirectional"), has_y=False)
        yield kernel_case(layer(op, direction="bidirectional"), raw_bias=True)
    yield kernel_case(layer("GRU", linear_before_reset=1, direction="bidirectional"), raw_bias=True)
    for dtype, name in product(("float32", "float64"), ACTIVATIONS):
        names = [CAMEL.get(name, name.capitalize()), "Tanh"]
        entry = ACTIVATIONS[name]
        alpha = {"activation_alpha": [-0.3]} if entry.alpha else {}
        beta = {"activation_beta": [0.6]} if entry.beta else {}
        attrs = {"activations": names, "direction": "bidirectional", "dtype": dtype, **alpha, **beta}
        yield kernel_case(layer("RNN", seq=2, **attrs))  # type: ignore[arg-type]


def kernel_case(one: Layer, *, has_y: bool = True, raw_bias: bool = False) -> Case:
    attrs = {"batch_first" if key == "layout" else key: value for key, value in one.attrs.items()}
    attrs = {key: tuple(value) if isinstance(value, list) else value for key, value in attrs.items()}
    node = Node("n", one.op, (), (), attrs)  # type: ignore[arg-type]
    shape = shape_of(node, tuple(None if a is None else type_of(a) for a in one.inputs))
    cell = cell_of(node)
    x, w, r, b, lens, *_ = (*one.inputs, *([None] * 8))
    assert x is not None
    assert w is not None
    assert r is not None
    dtype = type_of(x).dtype
    peephole = one.inputs[7] if len(one.inputs) > 7 else None
    rng = np.random.default_rng(1)
    states = {role: rng.standard_normal(shape.state).astype(x.dtype) for role in ("h", "c")}
    arrays = {
        "in": x, "w": w, "r": r, "lens": np.zeros(1, np.int32) if lens is None else lens, **states,
        "bias": b if raw_bias and b is not None else folded_bias(cell, shape, b, x.dtype),
        "peephole": np.zeros(1, x.dtype) if peephole is None else peephole,
    }  # fmt: skip
    roles = {role for role, _ in get_kernel(f"{cell.kind}_{dtype.value}").roles}
    params = cell_params(
        cell, shape, dtype, has_lens=lens is not None, has_y=has_y, clears=shape.batch_first,
        has_peephole=peephole is not None, raw_bias=raw_bias,
    )  # fmt: skip
    close = (2e-5, 1e-5) if dtype is DType.F32 else (1e-12, 1e-12)
    return make_case(
        f"{cell.kind}_{dtype.value}", {k: a for k, a in arrays.items() if k in roles}, params,
        out={"y": (shape.y if has_y else (1,), dtype), "scratch": ((scratch_elements(cell, shape.hidden),), dtype)},
        rtol=close[0], atol=close[1], why="order of sums, and libm's last places",
    )  # fmt: skip
