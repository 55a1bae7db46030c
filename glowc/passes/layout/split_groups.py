"""split-groups: a convolution in groups becomes one convolution per group."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from glowc.graph.graph import GraphEditor, Node
from glowc.graph.types import TensorType
from glowc.passes.base import PassCtx, RewritePass

_MOST_GROUPS = 32
_LEAST_WINDOW = 8


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
        own = _part(editor.types[x], axis, groups)
        begin = at * own.shape[axis]
        source = editor.add_value(f"{out}.in{at}", own)
        cut = {"starts": (begin,), "ends": (begin + own.shape[axis],), "axes": (axis,), "steps": (1,)}
        editor.add_node("Slice", (x,), (source,), cut, origin=node.origin)
        constants = (_rows(editor, name, at, groups) if name else "" for name in node.inputs[1:])
        y = editor.add_value(f"{out}.group{at}", _part(editor.types[out], 3, groups))
        attrs = {key: value for key, value in node.attrs.items() if key != "group"}
        editor.add_node("Conv", (source, *constants), (y,), attrs, origin=node.origin)
        return y


def _part(type_: TensorType, axis: int, groups: int) -> TensorType:
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
    return editor.add_const(f"{name}.group{at}", array[rows].copy(), replace(_part(type_, 0, groups), quant=quant))
