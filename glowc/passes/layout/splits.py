"""split-groups: a convolution in groups becomes one convolution per group.

split-heads: one projection to query, key and value, taken apart after a Transpose, becomes three projections.

split_outputs, by --slice: a fully connected layer of one row becomes several, each of some outputs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np

from glowc.graph.graph import Graph, GraphEditor, Node
from glowc.graph.types import TensorType
from glowc.passes.axes import perm_of
from glowc.passes.base import PassCtx, RewritePass

_MOST_GROUPS = 32
_LEAST_WINDOW = 8
_BLOCK = 16  # outputs that every kernel takes together, or a multiple of what it takes


class SplitGroups(RewritePass):
    """Slice of the channels -> Conv of a group -> Concat: the fast kernels know one group, and ten instructions less
    per multiplication outweigh the copies. The copies need RAM: a group's input and the outputs a second time.
    Depthwise layers have kernels of their own; windows of fewer than 8 inputs and more than 32 groups stay as they are.
    """

    name: ClassVar[str] = "split-groups"
    ops: ClassVar[tuple[str, ...]] = ("Conv",)

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Split one layer whose weights and bias are constants in the kernels' layout."""
        groups = node.int_("group")
        constants = [name for name in node.inputs[1:] if name]
        if groups == 1 or groups > _MOST_GROUPS or not node.is_nhwc or "shift_div" in node.attrs:
            return False
        if any(name not in editor.consts for name in constants):
            return False
        window = editor.types[node.inputs[1]].shape[1:]
        if window[-1] == 1 or int(np.prod(window)) < _LEAST_WINDOW:
            return False
        parts = [self._group(node, editor, at, groups) for at in range(groups)]
        editor.remove(node)
        editor.add_node("Concat", tuple(parts), node.outputs, {"axis": 3}, origin=node.origin)
        return True

    def _group(self, node: Node, editor: GraphEditor, at: int, groups: int) -> str:
        """Add the convolution of one group and return its output."""
        x, out = node.inputs[0], node.outputs[0]
        axis = 1 if node.int_("planar") else 3
        own = _group_part(editor.types[x], axis, groups)
        begin = at * own.shape[axis]
        source = editor.add_value(f"{out}.in{at}", own)
        cut = {"starts": (begin,), "ends": (begin + own.shape[axis],), "axes": (axis,), "steps": (1,)}
        editor.add_node("Slice", (x,), (source,), cut, origin=node.origin)
        constants = (_rows(editor, name, at, groups) if name else "" for name in node.inputs[1:])
        y = editor.add_value(f"{out}.group{at}", _group_part(editor.types[out], 3, groups))
        attrs = {key: value for key, value in node.attrs.items() if key != "group"}
        editor.add_node("Conv", (source, *constants), (y,), attrs, origin=node.origin)
        return y


def _group_part(type_: TensorType, axis: int, groups: int) -> TensorType:
    shape = tuple(n // groups if i == axis else n for i, n in enumerate(type_.shape))
    return replace(type_, shape=shape)


def _rows(editor: GraphEditor, name: str, at: int, groups: int) -> str:
    """Add a group's rows of a constant [O, ...] and return their name."""
    array, type_ = editor.consts[name], editor.types[name]
    count = array.shape[0] // groups
    rows = slice(at * count, (at + 1) * count)
    quant = type_.quant
    if quant is not None and quant.axis == 0 and len(quant.scale) > 1:
        quant = replace(quant, scale=quant.scale[rows], zero_point=quant.zero_point[rows])
    return editor.add_const(
        f"{name}.group{at}", array[rows].copy(), replace(_group_part(type_, 0, groups), quant=quant)
    )


class SplitHeads(RewritePass):
    """FullyConnected -> Reshape [.., parts, heads, size] -> Transpose (parts first) -> Gather of each part, as vision
    transformers write it: each part gets its rows of the weights, so that its heads lie side by side and the
    Transpose that is left can become strides of a MatMul. The multiplications are the same.
    """

    name: ClassVar[str] = "split-heads"
    ops: ClassVar[tuple[str, ...]] = ("Transpose",)

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Split the layer in front of one Transpose."""
        reshape = editor.producer(node.inputs[0])
        if reshape is None or reshape.op != "Reshape" or editor.sole_user(reshape.outputs[0]) is None:
            return False
        found = _layer(editor, reshape.inputs[0])
        if found is None:
            return False
        layer, add = found
        shape, rows = editor.types[reshape.outputs[0]].shape, editor.types[layer.outputs[0]].shape
        perm = perm_of(node, len(shape))
        axis = perm[0]
        picks = [(user, _index(user, node.outputs[0], editor)) for user in editor.users(node.outputs[0])]
        if node.outputs[0] in editor.outputs or axis == 0 or not picks or any(index is None for _, index in picks):
            return False
        parts = shape[axis]
        if shape[:axis] != rows[:-1] and int(np.prod(shape[:axis])) != int(np.prod(rows[:-1])):
            return False
        if int(np.prod(shape[axis:])) != rows[-1] or any(name not in editor.consts for name in layer.inputs[1:]):
            return False
        for user, index in picks:
            _project(user, (index or 0) % parts, parts, (layer, add), editor, (shape, perm))
        return True


def _layer(editor: GraphEditor, value: str) -> tuple[Node, Node | None] | None:
    """Return the FullyConnected after `value` and the Add of a constant in between, each with one reader."""
    node = editor.producer(value)
    if node is None or editor.sole_user(value) is None:
        return None
    if node.op == "FullyConnected":
        return node, None
    if node.op != "Add" or editor.types[value].shape[-1:] == (1,):
        return None
    for index in (0, 1):
        term = editor.consts.get(node.inputs[1 - index])
        before = editor.producer(node.inputs[index])
        if term is None or before is None or before.op != "FullyConnected":
            continue
        vector = term.size in (1, editor.types[value].shape[-1]) and term.size == (term.shape[-1] if term.ndim else 1)
        if vector and editor.sole_user(node.inputs[index]) is not None:
            return before, node
    return None


def _index(user: Node, value: str, editor: GraphEditor) -> int | None:
    """Return which part a Gather takes; None when the reader is something else."""
    if user.op != "Gather" or user.inputs[0] != value or user.int_("axis") != 0:
        return None
    index = editor.consts.get(user.inputs[1])
    return int(index) if index is not None and index.ndim == 0 else None


def _project(
    user: Node, index: int, parts: int, layers: tuple[Node, Node | None], editor: GraphEditor,
    split: tuple[tuple[int, ...], tuple[int, ...]],
) -> None:  # fmt: skip
    """Let one part be computed by its own layer, reshaped and transposed."""
    (layer, add), (shape, perm), out = layers, split, user.outputs[0]
    axis, full = perm[0], editor.types[layer.outputs[0]].shape[-1]
    rows = slice(index * full // parts, (index + 1) * full // parts)
    value = _part(layer, layer.inputs[0], rows, editor, (*layer.origin, *user.origin))
    if add is not None:
        value = _part(add, value, rows, editor, add.origin)
    whole = editor.types[value]
    heads = editor.add_value(f"{out}.heads", replace(whole, shape=(*shape[:axis], *shape[axis + 1 :]), layout=""))
    editor.add_node("Reshape", (value,), (heads,), {"shape": editor.types[heads].shape}, origin=user.origin)
    left = tuple(a - (a > axis) for a in perm[1:])
    editor.update(user, op="Transpose", inputs=(heads,), attrs={"perm": left})


def split_outputs(graph: Graph, parts: Mapping[str, int]) -> Graph:
    """Return the graph whose fully connected layers of one row are so many, by name: each computes some outputs.

    The parts write beside each other, so nothing is copied. Layers that have no more outputs stay as they are.
    """
    editor = GraphEditor(graph)
    for node in [node for node in graph.nodes if node.name in parts and _is_row(graph, node)]:
        out = node.outputs[0]
        outputs = graph.types[out].shape[-1]
        step = max(1, outputs // parts[node.name] // _BLOCK) * _BLOCK
        spans = [slice(first, min(first + step, outputs)) for first in range(0, outputs, step)]
        made = tuple(_part(node, node.inputs[0], span, editor, node.origin or (node.name,)) for span in spans)
        editor.remove(node)
        axis = len(graph.types[out].shape) - 1
        editor.add_node("Concat", made, (out,), {"axis": axis}, origin=node.origin or (node.name,))
    return editor.finish()


def _is_row(graph: Graph, node: Node) -> bool:
    """Say whether a node is a fully connected layer of one row, with constants that its parts can share out."""
    return (
        node.op == "FullyConnected"
        and math.prod(graph.types[node.outputs[0]].shape[:-1]) == 1
        and all(name in graph.consts for name in node.inputs[1:] if name)
    )


def _part(node: Node, data: str, rows: slice, editor: GraphEditor, origin: tuple[str, ...]) -> str:
    """Add a copy of a layer that computes columns `rows` only, from `data`; return its result."""
    axis = 0 if node.op == "FullyConnected" else -1
    inputs = [_cut(name, axis, rows, editor) if name in editor.consts else data if name else "" for name in node.inputs]
    type_ = editor.types[node.outputs[0]]
    out = editor.add_value(
        f"{node.outputs[0]}.{rows.start}", replace(type_, shape=(*type_.shape[:-1], rows.stop - rows.start))
    )
    editor.add_node(node.op, inputs, (out,), node.attrs, origin=origin)
    return out


def _cut(name: str, axis: int, rows: slice, editor: GraphEditor) -> str:
    array, type_ = editor.consts[name], editor.types[name]
    if array.size == 1:
        return name
    cut = np.ascontiguousarray(array[rows] if axis == 0 else array[..., rows])
    return editor.add_const(f"{name}.{rows.start}", cut, _sliced(replace(type_, shape=cut.shape), rows))


def _sliced(type_: TensorType, rows: slice) -> TensorType:
    quant = type_.quant
    if quant is not None and quant.axis is not None:
        quant = replace(quant, scale=quant.scale[rows], zero_point=quant.zero_point[rows])
    return replace(type_, quant=quant)
