"""What becomes of Transposes: other layouts, other places, other operators.

layout-nhwc: spatial operators compute on [N,H,W,C]; Transposes around them keep the graph as it was. hoist-transpose:
one after an operator that widens its elements moves in front of it. planar-input: a Conv reads [N,C,H,W] itself instead
of a transposed copy. transpose-to-reshape: one that moves only axes of length one is a Reshape. fold-transpose: one
around a MatMul becomes strides of its operand or its result. transpose-weights: one that a FullyConnected flattens goes
into the order of its weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from glowc.graph.attrs import AttrValue
from glowc.graph.graph import GraphEditor, Node
from glowc.ops.base import OpError
from glowc.ops.matmul import matmul_params, operand_perm
from glowc.passes.axes import (
    TO_NCHW,
    TO_NHWC,
    Perm,
    add_transpose,
    compose,
    inverse,
    moves_only_units,
    perm_of,
    permuted,
)
from glowc.passes.base import PassCtx, RewritePass
from glowc.passes.classes import UNARY

_WEIGHTED = ("Conv", "ConvInteger", "ConvTranspose")
_PER_AXIS_ATTRS = ("scales", "sizes", "roi_begin", "roi_end")


class LayoutNhwc(RewritePass):
    """Conv weights become [O,kH,kW,I/group] constants ([I,kH,kW,O/group] for ConvTranspose).

    Operators whose definition has no attribute `layout` are left alone.
    """

    name: ClassVar[str] = "layout-nhwc"
    ops: ClassVar[tuple[str, ...]] = (
        "Conv", "ConvInteger", "ConvTranspose", "MaxPool", "AveragePool", "LpPool", "Resize", "DepthToSpace",
        "SpaceToDepth", "InstanceNormalization",
    )  # fmt: skip

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Convert one operator."""
        outs = [out for out in node.outputs if out]
        if node.is_nhwc or not ctx.has_attr(node.op, "layout") or len(outs) != 1:
            return False
        if editor.types[node.inputs[0]].rank != 4 or editor.types[outs[0]].rank != 4:
            return False
        inputs = list(node.inputs)
        inputs[0] = add_transpose(editor, inputs[0], TO_NHWC, node.origin)
        editor.types[inputs[0]] = replace(editor.types[inputs[0]], layout="nhwc")
        if node.op in _WEIGHTED:
            inputs[1] = add_transpose(editor, inputs[1], TO_NHWC, node.origin)
            editor.types[inputs[1]] = replace(editor.types[inputs[1]], layout="")
        inner = editor.add_value(f"{outs[0]}.nhwc", permuted(editor.types[outs[0]], TO_NHWC))
        editor.update(node, inputs=tuple(inputs), outputs=(inner,), attrs=_attrs(node))
        editor.add_node("Transpose", (inner,), (outs[0],), {"perm": TO_NCHW}, origin=node.origin)
        return True


def _attrs(node: Node) -> dict[str, AttrValue]:
    attrs = {**node.attrs, "layout": "nhwc"}
    for key in _PER_AXIS_ATTRS:
        value = attrs.get(key)
        if isinstance(value, tuple) and len(value) == 4:
            attrs[key] = tuple(value[axis] for axis in TO_NHWC)  # type: ignore[assignment]
    return attrs


class HoistTranspose(RewritePass):
    """Typically a DequantizeLinear at the end: moving one byte per element is cheaper than moving four."""

    name: ClassVar[str] = "hoist-transpose"
    ops: ClassVar[tuple[str, ...]] = ("Transpose",)

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Swap a Transpose with the widening operator in front of it."""
        value, out = node.inputs[0], node.outputs[0]
        source = editor.producer(value)
        if source is None or source.op not in UNARY or editor.sole_user(value) is None:
            return False
        before = editor.types[source.inputs[0]]
        if before.size_bytes >= editor.types[value].size_bytes:
            return False
        perm = perm_of(node, before.rank)
        moved = add_transpose(editor, source.inputs[0], perm, node.origin)
        editor.remove(node)
        editor.update(source, inputs=(moved, *source.inputs[1:]), outputs=(out,))
        return True


class PlanarInput(RewritePass):
    """Only where no other operator needs the transposed copy: the copy would stay and nothing be saved."""

    name: ClassVar[str] = "planar-input"
    ops: ClassVar[tuple[str, ...]] = ("Transpose",)

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Let the readers of a Transpose read its planar input."""
        out = node.outputs[0]
        if perm_of(node, editor.types[out].rank) != TO_NHWC or out in editor.outputs:
            return False
        readers = editor.users(out)
        if not readers or not all(_can_read_planar(reader, out, ctx) for reader in readers):
            return False
        for reader in readers:
            inputs = (node.inputs[0], *reader.inputs[1:])
            editor.update(reader, inputs=inputs, attrs={**reader.attrs, "planar": 1})
        editor.remove(node)
        return True


def _can_read_planar(reader: Node, value: str, ctx: PassCtx) -> bool:
    is_input = reader.inputs[0] == value and value not in reader.inputs[1:]
    return reader.op == "Conv" and reader.is_nhwc and is_input and ctx.has_attr("Conv", "planar")


class TransposeToReshape(RewritePass):
    """No element changes its place, so nothing has to be copied."""

    name: ClassVar[str] = "transpose-to-reshape"
    ops: ClassVar[tuple[str, ...]] = ("Transpose",)

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Rewrite one Transpose."""
        source = editor.types[node.inputs[0]]
        if not moves_only_units(source.shape, perm_of(node, source.rank)):
            return False
        if source.quant is not None and source.quant.per_axis:
            return False
        editor.update(node, op="Reshape", attrs={"shape": editor.types[node.outputs[0]].shape})
        return True


_OPERANDS = ("perm_a", "perm_b")


class FoldTranspose(RewritePass):
    """The heads of an attention are read where the projection wrote them, and the result is written where the
    next projection reads it. A Transpose that also has other readers stays, because its copy exists anyway.
    """

    name: ClassVar[str] = "fold-transpose"
    ops: ClassVar[tuple[str, ...]] = ("MatMul",)

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Fold one Transpose in front of, or after, a MatMul."""
        if not all(ctx.has_attr("MatMul", key) for key in (*_OPERANDS, "perm_y")):
            return False
        if any(editor.types[name].rank < 2 for name in node.inputs[:2]):
            return False
        return any(_fold_operand(node, editor, index) for index in (0, 1)) or _fold_result(node, editor)


def _fold_operand(node: Node, editor: GraphEditor, index: int) -> bool:
    value = node.inputs[index]
    source = editor.producer(value)
    if source is None or source.op != "Transpose" or value in editor.outputs:
        return False
    if any(user.op != "MatMul" for user in editor.users(value)):
        return False
    perm = perm_of(source, editor.types[value].rank)
    key = _OPERANDS[index]
    total = compose(perm, operand_perm(node, key, len(perm)))
    inputs = tuple(source.inputs[0] if i == index else name for i, name in enumerate(node.inputs))
    return _update(node, editor, replace(node, inputs=inputs, attrs=_with(node, key, total)))


def _fold_result(node: Node, editor: GraphEditor) -> bool:
    user = editor.sole_user(node.outputs[0])
    if user is None or user.op != "Transpose":
        return False
    perm = perm_of(user, editor.types[node.outputs[0]].rank)
    total = compose(operand_perm(node, "perm_y", len(perm)), perm)
    new = replace(node, outputs=user.outputs, attrs=_with(node, "perm_y", total), origin=(*node.origin, *user.origin))
    if not _fits(new, editor):
        return False
    editor.remove(user)
    return _update(node, editor, new)


def _with(node: Node, key: str, perm: tuple[int, ...]) -> dict[str, AttrValue]:
    attrs = {k: v for k, v in node.attrs.items() if k != key}
    return attrs if perm == tuple(range(len(perm))) else {**attrs, key: perm}


def _fits(node: Node, editor: GraphEditor) -> bool:
    """Say whether the kernels have enough batch axes for these strides."""
    try:
        matmul_params(node, editor.types[node.inputs[0]].shape, editor.types[node.inputs[1]].shape)
    except OpError:
        return False
    return True


def _update(node: Node, editor: GraphEditor, new: Node) -> bool:
    if not _fits(new, editor):
        return False
    editor.replace_node(node, new)
    return True


_WEIGHTS = {"FullyConnected": 1, "FullyConnectedDynamic": 3}
"""Where each layer has its weights [outputs, K] among its inputs."""


class TransposeWeights(RewritePass):
    """Transpose -> Reshape to [.., K] -> FullyConnected: the columns of W move instead of the activations."""

    name: ClassVar[str] = "transpose-weights"
    ops: ClassVar[tuple[str, ...]] = tuple(_WEIGHTS)

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Rewrite one FullyConnected."""
        reshape, at = editor.producer(node.inputs[0]), _WEIGHTS[node.op]
        weights = editor.consts.get(node.inputs[at])
        if reshape is None or reshape.op != "Reshape" or weights is None:
            return False
        transpose = editor.producer(reshape.inputs[0])
        if transpose is None or transpose.op != "Transpose":
            return False
        shape, flat = editor.types[transpose.outputs[0]].shape, editor.types[reshape.outputs[0]]
        perm = perm_of(transpose, len(shape))
        lead = _leading_axes(shape, flat.shape, perm)
        if lead is None:
            return False
        moved = np.ascontiguousarray(_moved_columns(weights, shape, perm, lead))
        w = editor.add_const(f"{node.inputs[at]}.t", moved, editor.types[node.inputs[at]])
        x = editor.add_value(f"{reshape.outputs[0]}.t", replace(flat, layout=""))
        editor.add_node("Reshape", (transpose.inputs[0],), (x,), {"shape": flat.shape}, origin=reshape.origin)
        editor.update(node, inputs=(x, *node.inputs[1:at], w, *node.inputs[at + 1 :]))
        return True


def _leading_axes(shape: Sequence[int], flat: Sequence[int], perm: Perm) -> int | None:
    """Return how many axes of `shape` are rows of the FullyConnected; None when the Transpose mixes them."""
    for lead in range(len(shape) + 1):
        fits = math.prod(shape[lead:]) == flat[-1] and math.prod(shape[:lead]) == math.prod(flat[:-1])
        if fits and perm[:lead] == tuple(range(lead)):
            return lead
    return None


def _moved_columns(weights: np.ndarray, shape: Sequence[int], perm: Perm, lead: int) -> np.ndarray:
    cube = weights.reshape(weights.shape[0], *shape[lead:])
    order = [axis - lead + 1 for axis in inverse(perm)[lead:]]
    return cube.transpose(0, *order).reshape(weights.shape)
