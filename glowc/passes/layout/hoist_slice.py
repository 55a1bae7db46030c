"""hoist-slice: rows are selected before they are computed, not after.

The head of an encoder reads one row of its last block (the class token); all that the block computes row by row is
then needed for that row only: its queries, its line of the attention, the layers after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import prod
from typing import ClassVar

import numpy as np

from glowc.graph.graph import GraphEditor, Node
from glowc.ops.matmul import operand_perm
from glowc.ops.movement import slice_ranges
from glowc.passes.axes import perm_of
from glowc.passes.base import PassCtx, RewritePass
from glowc.passes.classes import NARY, UNARY

Axes = Mapping[int, int]
"""By operand: the axis along which its rows are those of the result; operands that are not among them are whole."""


class HoistSlice(RewritePass):
    """A Slice of at most half of an axis, or a Gather of one index, in front of what computes along that axis."""

    name: ClassVar[str] = "hoist-slice"
    ops: ClassVar[tuple[str, ...]] = ("Gather", "Slice")

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Let the operator before `node` compute what is selected of it."""
        chosen = _chosen(node, editor)
        if chosen is None:
            return False
        if _merged(node, chosen, editor):
            return True
        maker = editor.producer(node.inputs[0])
        if maker is None or editor.sole_user(node.inputs[0]) is None:
            return False
        axis, rows = chosen
        axes = _operand_axes(maker, axis, editor)
        if axes is None or 2 * len(rows) > editor.types[node.inputs[0]].shape[axis]:
            return False
        out, whole = node.outputs[0], editor.types[node.inputs[0]]
        shape = _replaced(whole.shape, axis, len(rows))
        inputs = [_selected(name, axes.get(i), rows, node, editor) for i, name in enumerate(maker.inputs)]
        attrs = {**maker.attrs, "shape": shape} if maker.op == "Reshape" else maker.attrs
        result = out if node.op == "Slice" else editor.add_value(f"{out}.row", replace(whole, shape=shape))
        editor.remove(node)
        editor.update(maker, inputs=tuple(inputs), outputs=(result,), attrs=attrs)
        if node.op == "Slice":
            editor.types[out] = replace(whole, shape=shape)
        else:
            editor.add_node("Reshape", (result,), (out,), {"shape": editor.types[out].shape}, origin=node.origin)
        return True


def _merged(node: Node, chosen: tuple[int, range], editor: GraphEditor) -> bool:
    """Let readers of another Slice of the same rows read this one."""
    for other in editor.users(node.inputs[0]) if node.op == "Slice" else ():
        same = other.op == "Slice" and other.name != node.name and _chosen(other, editor) == chosen
        if same and other.outputs[0] not in editor.outputs:
            editor.remove(other)
            editor.replace_uses(other.outputs[0], node.outputs[0])
            return True
    return False


def _chosen(node: Node, editor: GraphEditor) -> tuple[int, range] | None:
    """Return the axis of which rows are selected, and which; None where it is not one axis, or not a range."""
    shape = editor.types[node.inputs[0]].shape
    if node.op == "Gather":
        index = editor.consts.get(node.inputs[1])
        axis = node.int_("axis") % max(len(shape), 1)
        if index is None or index.ndim or not -shape[axis] <= int(index) < shape[axis]:
            return None
        at = int(index) % shape[axis]
        return axis, range(at, at + 1)
    ranges = slice_ranges(node, shape)
    cut = [axis for axis, rows in enumerate(ranges) if rows != range(shape[axis])]
    if len(cut) != 1 or ranges[cut[0]].step < 1 or not ranges[cut[0]]:
        return None
    return cut[0], ranges[cut[0]]


def _replaced(shape: tuple[int, ...], axis: int, length: int) -> tuple[int, ...]:
    return (*shape[:axis], length, *shape[axis + 1 :])


def _selected(name: str, axis: int | None, rows: range, node: Node, editor: GraphEditor) -> str:
    """Return the rows of an operand: a new constant, or the result of a new Slice."""
    if axis is None:
        return name
    type_ = editor.types[name]
    type_ = replace(type_, shape=_replaced(type_.shape, axis, len(rows)))
    if name in editor.consts:
        return editor.add_const(f"{name}.rows", np.take(editor.consts[name], rows, axis), type_)
    out = editor.add_value(f"{name}.rows", type_)
    cut = {"starts": (rows.start,), "ends": (rows.stop,), "axes": (axis,), "steps": (rows.step,)}
    editor.add_node("Slice", (name,), (out,), cut, origin=node.origin)
    return out


def _operand_axes(maker: Node, axis: int, editor: GraphEditor) -> Axes | None:
    """Return the axes of the operands along which an operator computes its result's `axis` row by row, None where it
    does not."""
    known = _AXES.get(maker.op)
    if known is None or any(maker.outputs[1:]):
        return None
    axes = known(maker, axis, editor)
    quants = [editor.types[name].quant for name in (*(maker.inputs[i] for i in axes or ()), maker.outputs[0])]
    return None if any(q is not None and q.per_axis for q in quants) else axes


def _same(node: Node, axis: int, editor: GraphEditor) -> Axes | None:
    return {0: axis}


def _broadcast(node: Node, axis: int, editor: GraphEditor) -> Axes | None:
    """Of an elementwise operator: operands of length 1 along the axis are read by every row."""
    shape, axes = editor.types[node.outputs[0]].shape, {}
    for i, name in enumerate(node.inputs):
        own = editor.types[name].shape if name else ()
        at = axis - len(shape) + len(own)
        if at >= 0 and own[at] == shape[axis]:
            axes[i] = at
    return axes


def _not_along(node: Node, axis: int, editor: GraphEditor) -> Axes | None:
    """Of a Softmax: its lines along another axis."""
    rank = editor.types[node.inputs[0]].rank
    return {0: axis} if node.int_("axis") % rank != axis else None


def _before(node: Node, axis: int, editor: GraphEditor) -> Axes | None:
    """Of a normalisation over the axes from attribute `axis` on."""
    rank = editor.types[node.inputs[0]].rank
    return {0: axis} if axis < node.int_("axis") % rank else None


def _fully_connected(node: Node, axis: int, editor: GraphEditor) -> Axes | None:
    rows, out = editor.types[node.inputs[0]].shape, editor.types[node.outputs[0]].shape
    return {0: axis} if rows[:-1] == out[:-1] and axis < len(out) - 1 else None


def _matmul(node: Node, axis: int, editor: GraphEditor) -> Axes | None:
    """Rows are those of the first operand, columns those of the second, leading axes those of both."""
    ranks = [editor.types[name].rank for name in node.inputs]
    rank = editor.types[node.outputs[0]].rank
    if len(ranks) != 2 or min(ranks) < 2:
        return None
    at, axes = operand_perm(node, "perm_y", rank)[axis] - rank, {}
    for i, key in enumerate(("perm_a", "perm_b")):
        if at == (-1, -2)[i] or at + ranks[i] < 0:
            continue
        own = operand_perm(node, key, ranks[i])[at]
        if editor.types[node.inputs[i]].shape[own] == editor.types[node.outputs[0]].shape[axis]:
            axes[i] = own
    return axes


def _reshape(node: Node, axis: int, editor: GraphEditor) -> Axes | None:
    """An axis that is as long before, with as many elements in front of it."""
    before, after = editor.types[node.inputs[0]].shape, editor.types[node.outputs[0]].shape
    found = [i for i, n in enumerate(before) if n == after[axis] and prod(before[:i]) == prod(after[:axis])]
    return {0: found[0]} if found else None


def _transpose(node: Node, axis: int, editor: GraphEditor) -> Axes | None:
    return {0: perm_of(node, editor.types[node.inputs[0]].rank)[axis]}


def _concat(node: Node, axis: int, editor: GraphEditor) -> Axes | None:
    rank = editor.types[node.outputs[0]].rank
    return dict.fromkeys(range(len(node.inputs)), axis) if node.int_("axis") % rank != axis else None


_AXES: Mapping[str, Callable[[Node, int, GraphEditor], Axes | None]] = {
    **dict.fromkeys(UNARY, _same), **dict.fromkeys(NARY, _broadcast), "Softmax": _not_along, "LogSoftmax": _not_along,
    "LayerNormalization": _before, "RMSNormalization": _before, "FullyConnected": _fully_connected, "MatMul": _matmul,
    "Reshape": _reshape, "Transpose": _transpose, "Concat": _concat,
}  # fmt: skip
