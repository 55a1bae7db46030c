"""fuse-layer-norm: the mean, the variance and the division that exporters write become LayerNormalization."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from glowc.graph.attrs import AttrValue
from glowc.graph.graph import GraphEditor, Node
from glowc.ops.reduce import axes_of
from glowc.passes.base import PassCtx, RewritePass
from glowc.passes.fuse.chains import inner, is_clamped, number, shared, with_number


class FuseLayerNorm(RewritePass):
    """d = x - mean(x); d / sqrt(mean(d^2) + epsilon), or its product with the reciprocal, over the last axes. Without
    the mean it is RMSNormalization. A Mul and an Add of constants after it become its scale and bias.
    """

    name: ClassVar[str] = "fuse-layer-norm"
    ops: ClassVar[tuple[str, ...]] = ("Div", "Mul", "Add", "LayerNormalization", "RMSNormalization")

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Rewrite the chain that ends in `node`."""
        if not editor.types[node.outputs[0]].dtype.is_float or is_clamped(node):
            return False
        if node.op in ("Div", "Mul") and _fuse_chain(node, editor):
            return True
        return node.op in ("Mul", "Add") and _take_constant(node, editor)


def _fuse_chain(node: Node, editor: GraphEditor) -> bool:
    found = _apart_and_root(node, editor)
    if found is None:
        return False
    apart, root = found
    add = inner(editor, root, "Add")
    sum_ = with_number(editor, add) if add is not None else None
    mean = inner(editor, sum_[0], "ReduceMean") if sum_ is not None else None
    if sum_ is None or mean is None or not _is_square(editor, mean.inputs[0], apart):
        return False
    x_type = editor.types[apart]
    axis = _first_axis(mean, x_type.rank)
    if axis is None or editor.types[node.outputs[0]].shape != x_type.shape:
        return False
    x, centre = _centred(editor, apart, axis)
    scale = editor.add_const(f"{node.outputs[0]}.scale", np.ones(x_type.shape[axis:], x_type.dtype.numpy))
    attrs: dict[str, AttrValue] = {"axis": axis, "epsilon": sum_[1]}
    op = "LayerNormalization" if centre else "RMSNormalization"
    editor.update(node, op=op, inputs=(x, scale), attrs=attrs)
    return True


def _apart_and_root(node: Node, editor: GraphEditor) -> tuple[str, str] | None:
    """Return d and the value under the root of d / sqrt(..) or d * (1 / sqrt(..))."""
    if node.op == "Div":
        sqrt = inner(editor, node.inputs[1], "Sqrt")
        return (node.inputs[0], sqrt.inputs[0]) if sqrt is not None else None
    for index in (0, 1):
        inverse = inner(editor, node.inputs[1 - index], "Reciprocal", "Div")
        if inverse is None or (inverse.op == "Div" and number(editor, inverse.inputs[0]) != 1.0):
            continue
        sqrt = inner(editor, inverse.inputs[-1], "Sqrt")
        if sqrt is not None:
            return node.inputs[index], sqrt.inputs[0]
    return None


def _is_square(editor: GraphEditor, value: str, apart: str) -> bool:
    node = inner(editor, value, "Pow", "Mul")
    if node is None:
        return False
    if node.op == "Mul":
        return node.inputs == (apart, apart)
    return node.inputs[0] == apart and number(editor, node.inputs[1]) == 2.0


def _first_axis(mean: Node, rank: int) -> int | None:
    """Return the first of the axes of a mean when they are the last ones of the tensor and stay."""
    axes = axes_of(mean, rank)
    if not axes or axes != list(range(axes[0], rank)) or not mean.int_("keepdims"):
        return None
    return axes[0]


def _centred(editor: GraphEditor, apart: str, axis: int) -> tuple[str, bool]:
    """Return x and True when `apart` is x - mean(x) over the axes from `axis` on, else `apart` itself."""
    sub = shared(editor, apart, "Sub")
    if sub is not None:
        mean = shared(editor, sub.inputs[1], "ReduceMean")
        if mean is not None and mean.inputs[0] == sub.inputs[0]:
            rank = editor.types[sub.inputs[0]].rank
            if _first_axis(mean, rank) == axis and editor.types[sub.inputs[0]].shape == editor.types[apart].shape:
                return sub.inputs[0], True
    return apart, False


def _take_constant(node: Node, editor: GraphEditor) -> bool:
    """Let a normalisation that has scale one take the constant of a Mul, or one without bias that of an Add."""
    for index in (0, 1):
        norm = inner(editor, node.inputs[index], "LayerNormalization", "RMSNormalization")
        array = editor.consts.get(node.inputs[1 - index])
        if norm is None or array is None or any(norm.outputs[1:]) or len(norm.inputs) != 2:
            continue
        type_ = editor.types[norm.outputs[0]]
        row = type_.shape[norm.int_("axis") % type_.rank :]
        shape = array.shape if array.ndim <= len(row) else array.shape[array.ndim - len(row) :]
        if array.size != int(np.prod(shape)) or editor.types[node.outputs[0]].shape != type_.shape:
            continue
        if any(have not in (1, want) for have, want in zip(shape[::-1], row[::-1], strict=False)):
            continue
        part = np.broadcast_to(array.reshape(shape), row).astype(type_.dtype.numpy)
        scale = editor.consts.get(norm.inputs[1])
        if node.op == "Mul" and (scale is None or np.any(scale != 1)):
            continue
        if node.op == "Add" and norm.op != "LayerNormalization":
            continue
        name = editor.add_const(f"{node.outputs[0]}.row", np.ascontiguousarray(part))
        inputs = (norm.inputs[0], name) if node.op == "Mul" else (*norm.inputs, name)
        editor.remove(node)
        editor.update(norm, inputs=inputs, outputs=node.outputs, origin=(*norm.origin, *node.origin))
        return True
    return False
