"""fuse-activation: Relu and Clip become the clamp (`act_min`, `act_max`) of the operator in front of them."""

from __future__ import annotations

import math
from typing import ClassVar

from glowc.graph.attrs import AttrValue
from glowc.graph.graph import GraphEditor, Node
from glowc.ops.base import clamp_of
from glowc.passes.base import PassCtx, RewritePass
from glowc.passes.classes import CLAMPS, clamps
from glowc.passes.operands import clamp_bounds


class FuseActivation(RewritePass):
    """Value-exact: on float the clamp is the same comparison. Rounding to codes is monotone, so on integers
    it is a clamp of codes, as long as the value in between has the output's own quantisation.
    """

    name: ClassVar[str] = "fuse-activation"
    ops: ClassVar[tuple[str, ...]] = ("Relu", "Clip")

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Fuse `node` into the producer of its input."""
        value, bounds = node.inputs[0], clamp_bounds(node)
        source = editor.producer(value)
        if bounds is None or source is None or editor.sole_user(value) is None:
            return False
        if not _same_codes(editor, value, node.outputs[0]):
            return False
        if source.op == "MaxPool":
            return _swap_with_pool(source, node, editor)
        if source.op not in CLAMPS and not clamps(source.op):
            return False
        if source.op in CLAMPS:
            return _merge_clamps(source, node, bounds, editor)
        old = clamp_of(source)
        attrs = {**source.attrs, **_attrs(_clamp_of_clamp(old, bounds), "act_min", "act_max")}
        _replace(source, node, editor, source.op, source.inputs, attrs)
        return True


def _swap_with_pool(pool: Node, node: Node, editor: GraphEditor) -> bool:
    """Put the clamp in front of a MaxPool, with which it commutes, when it can be fused there."""
    value, out = pool.inputs[0], node.outputs[0]
    source = editor.producer(value)
    if source is None or not clamps(source.op) or editor.sole_user(value) is None:
        return False
    if any(pool.outputs[1:]) or not _same_codes(editor, value, pool.outputs[0]):
        return False
    clamped = editor.add_value(f"{value}.clamped", editor.types[value])
    editor.update(node, inputs=(value,), outputs=(clamped,))
    editor.update(pool, inputs=(clamped,), outputs=(out,))
    return True


def _same_codes(editor: GraphEditor, a: str, b: str) -> bool:
    left, right = editor.types[a], editor.types[b]
    if left.dtype != right.dtype or left.quant != right.quant:
        return False
    return left.quantized or left.dtype.is_float


def _clamp_of_clamp(inner: tuple[float, float], outer: tuple[float, float]) -> tuple[float, float]:
    low, high = (min(max(bound, outer[0]), outer[1]) for bound in inner)
    return low, high


def _attrs(bounds: tuple[float, float], low: str, high: str) -> dict[str, AttrValue]:
    pairs = {low: bounds[0], high: bounds[1]}
    return {key: value for key, value in pairs.items() if math.isfinite(value)}


def _merge_clamps(source: Node, node: Node, bounds: tuple[float, float], editor: GraphEditor) -> bool:
    inner = clamp_bounds(source)
    if inner is None or not _same_codes(editor, source.inputs[0], source.outputs[0]):
        return False
    total = _clamp_of_clamp(inner, bounds)
    op = "Relu" if total == (0.0, math.inf) else "Clip"
    attrs = {} if op == "Relu" else _attrs(total, "min", "max")
    _replace(source, node, editor, op, source.inputs[:1], attrs)
    return True


def _replace(
    source: Node,
    node: Node,
    editor: GraphEditor,
    op: str,
    inputs: tuple[str, ...],
    attrs: dict[str, AttrValue],
) -> None:
    """Let `source` compute what `node` computed."""
    editor.remove(node)
    origin = (*source.origin, *node.origin)
    editor.update(source, op=op, inputs=inputs, outputs=node.outputs, attrs=attrs, origin=origin)
