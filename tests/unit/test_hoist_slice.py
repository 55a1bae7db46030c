"""hoist-slice: what is selected of an operator's result is computed alone, and is the same."""

from __future__ import annotations

import numpy as np
import pytest
from passes_text import after, check, check_same, graph_of, ops

from glowc.graph.graph import Graph
from glowc.graph.types import DType
from glowc.ops.interp import run_graph
from glowc.passes.layout.hoist_slice import HoistSlice

ROW = "%y : {type} = Slice(%v) {{axes=[{axis}], ends=[{end}], starts=[{start}], steps=[{step}]}}"


def _feeds(graph: Graph) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(8)
    found = {}
    for name in graph.inputs:
        kind = graph.types[name]
        codes = rng.integers(-100, 100, kind.shape)
        found[name] = (codes / 64 if kind.dtype is DType.F32 else codes).astype(kind.dtype.numpy)
    return found


def _moved(body: str) -> Graph:
    """Return the graph after the pass, with the same outputs as before it."""
    before, moved = graph_of(body), after(HoistSlice(), body)
    feeds = _feeds(before)
    for name, wanted in run_graph(before, feeds).items():
        np.testing.assert_array_equal(run_graph(moved, feeds)[name], wanted)
    return moved


MOVED = {
    "unary": ("%v : f32[1,6,4] = Tanh(%x)", "f32[1,1,4]", 1),
    "sum of two": ("%v : f32[1,6,4] = Add(%x, %z)", "f32[1,1,4]", 1),
    "bias": ("const %b : f32[4] = [1, 2, 3, 4]\n%v : f32[1,6,4] = Mul(%x, %b)", "f32[1,1,4]", 1),
    "table": ("const %b : f32[6,1] = [[1], [2], [3], [4], [5], [6]]\n%v : f32[1,6,4] = Mul(%x, %b)", "f32[1,1,4]", 1),
    "softmax": ("%v : f32[1,6,4] = Softmax(%x) {axis=-1}", "f32[1,1,4]", 1),
    "codes": ('%v : s8[1,6,4] q(0.5, 3) = QuantizeLinear(%x) {dtype="s8"}', "s8[1,1,4] q(0.5, 3)", 1),
    "reshape": ("%v : f32[6,2,2] = Reshape(%x) {shape=[6, 2, 2]}", "f32[1,2,2]", 0),
    "transpose": ("%v : f32[6,1,4] = Transpose(%x) {perm=[1, 0, 2]}", "f32[1,1,4]", 0),
    "concat": ("%v : f32[1,6,8] = Concat(%x, %z) {axis=2}", "f32[1,1,8]", 1),
    "rows of a product": ("%v : f32[1,6,6] = MatMul(%x, %z) {perm_b=[0, 2, 1]}", "f32[1,1,6]", 1),
    "columns of a product": ("%v : f32[1,6,6] = MatMul(%x, %z) {perm_b=[0, 2, 1]}", "f32[1,6,1]", 2),
    "rows of a transposed product": (
        "%v : f32[6,1,6] = MatMul(%x, %z) {perm_b=[0, 2, 1], perm_y=[2, 0, 1]}", "f32[1,1,6]", 0
    ),
    "normalisation": (
        "const %g : f32[4] = [1, 2, 3, 4]\n%v : f32[1,6,4] = LayerNormalization(%x, %g) {axis=-1}", "f32[1,1,4]", 1
    ),
    "layer": (
        "const %w : f32[2,4] = [[1, 2, 3, 4], [5, 6, 7, 8]]\nconst %b : f32[2] = [1, 2]\n"
        "%v : f32[1,6,2] = FullyConnected(%x, %w, %b)", "f32[1,1,2]", 1
    ),
}  # fmt: skip


@pytest.mark.parametrize(("maker", "result", "axis"), MOVED.values(), ids=MOVED)
def test_rows_are_selected_first(maker: str, result: str, axis: int) -> None:
    selected = ROW.format(type=result, axis=axis, start=4, end=5, step=1)
    moved = _moved(f"input %x : f32[1,6,4]\ninput %z : f32[1,6,4]\n{maker}\n{selected}\noutput %y")
    assert ops(moved)[-1] != "Slice"
    assert all(moved.types[node.outputs[0]].elements <= 8 for node in moved.nodes)


WHOLE = {
    "softmax": ("%v : f32[1,6,4] = Softmax(%x) {axis=1}", 1),
    "columns of a layer": (
        "const %w : f32[4,4] = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]\n"
        "const %b : f32[4] = [1, 2, 3, 4]\n%v : f32[1,6,4] = FullyConnected(%x, %w, %b)", 2
    ),
    "normalized axis": ("const %g : f32[4] = [1, 2, 3, 4]\n%v : f32[1,6,4] = LayerNormalization(%x, %g) {axis=-1}", 2),
    "joined axis": ("%v : f32[1,6,8] = Concat(%x, %x) {axis=2}", 2),
}  # fmt: skip


@pytest.mark.parametrize(("maker", "axis"), WHOLE.values(), ids=WHOLE)
def test_rows_that_need_each_other_stay(maker: str, axis: int) -> None:
    result = "f32[1,1,4]" if axis == 1 else "f32[1,6,1]"
    selected = ROW.format(type=result, axis=axis, start=1, end=2, step=1)
    check_same(HoistSlice(), f"input %x : f32[1,6,4]\n{maker}\n{selected}\noutput %y")


def test_more_than_half_stays_after_its_operator() -> None:
    body = "input %x : f32[6]\n%v : f32[6] = Tanh(%x)\n{}\noutput %y"
    check_same(HoistSlice(), body.format(ROW.format(type="f32[4]", axis=0, start=0, end=4, step=1)))
    assert ops(_moved(body.format(ROW.format(type="f32[3]", axis=0, start=0, end=6, step=2)))) == ["Slice", "Tanh"]


def test_a_value_that_others_read_is_computed_whole() -> None:
    selected = ROW.format(type="f32[1]", axis=0, start=0, end=1, step=1)
    check_same(
        HoistSlice(),
        f"input %x : f32[6]\n%v : f32[6] = Tanh(%x)\n{selected}\n%z : f32[6] = Exp(%v)\noutput %y\noutput %z",
    )
    check_same(HoistSlice(), f"input %x : f32[6]\n%v : f32[6] = Tanh(%x)\n{selected}\noutput %y\noutput %v")


def test_gather_of_one_row_loses_its_axis_at_the_end() -> None:
    check(
        HoistSlice(),
        """
        input %x : f32[1,6,4]
        const %at : s64[] = -1
        %v : f32[1,6,4] = Tanh(%x)
        %y : f32[1,4] = Gather(%v, %at) {axis=1}
        output %y
        """,
        """
        input %x : f32[1,6,4]
        %x.rows : f32[1,1,4] = Slice(%x) {axes=[1], ends=[6], starts=[5], steps=[1]}
        %y.row : f32[1,1,4] = Tanh(%x.rows)
        %y : f32[1,4] = Reshape(%y.row) {shape=[1, 4]}
        output %y
        """,
    )


def test_several_rows_or_computed_ones_are_gathered_afterwards() -> None:
    body = "input %x : f32[6,4]\ninput %i : s64[]\nconst %two : s64[2] = [0, 3]\n%v : f32[6,4] = Tanh(%x)\n"
    check_same(HoistSlice(), f"{body}%y : f32[4] = Gather(%v, %i) {{axis=0}}\noutput %y")
    check_same(HoistSlice(), f"{body}%y : f32[2,4] = Gather(%v, %two) {{axis=0}}\noutput %y")


def test_a_block_with_a_shortcut_is_computed_for_one_row() -> None:
    """The shortcut and the layer beside it select the same row: one Slice of what both read."""
    moved = _moved(
        """
        input %x : f32[6,2]
        const %w : f32[2,2] = [[1, 2], [3, 4]]
        const %b : f32[2] = [1, 2]
        %t : f32[6,2] = Tanh(%x)
        %l : f32[6,2] = FullyConnected(%t, %w, %b)
        %v : f32[6,2] = Add(%t, %l)
        %y : f32[1,2] = Slice(%v) {axes=[0], ends=[1], starts=[0], steps=[1]}
        output %y
        """
    )
    assert ops(moved) == ["Slice", "Tanh", "FullyConnected", "Add"]
    assert {moved.types[node.outputs[0]].shape for node in moved.nodes} == {(1, 2)}


def test_two_results_with_the_same_rows_both_stay() -> None:
    body = "input %x : f32[6]\n%t : f32[6] = Tanh(%x)\n"
    cut = "Slice(%t) {axes=[0], ends=[1], starts=[0], steps=[1]}"
    moved = _moved(f"{body}%y : f32[1] = {cut}\n%z : f32[1] = {cut}\noutput %y\noutput %z")
    assert moved.outputs == ("y", "z")


def test_slices_of_several_axes_stay_apart() -> None:
    body = "input %x : f32[4,4]\n%t : f32[4,4] = Tanh(%x)\n"
    cuts = [f"Slice(%t) {{axes=[0, 1], ends=[{n}, 1], starts=[{n - 1}, 0], steps=[1, 1]}}" for n in (1, 2)]
    lines = "".join(f"%s{i} : f32[1,1] = {cut}\n%y{i} : f32[1,1] = Exp(%s{i})\n" for i, cut in enumerate(cuts))
    assert ops(_moved(f"{body}{lines}output %y0\noutput %y1")).count("Slice") == 2
