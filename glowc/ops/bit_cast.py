"""BitCast: the same bytes read as another element kind of the same size (attr `to`). Source: ONNX BitCast-26."""

from __future__ import annotations

from dataclasses import replace

from glowc.graph.attrs import Int
from glowc.graph.graph import Node
from glowc.graph.types import NARROW, TensorType
from glowc.ops.base import LowerCtx, MaybeTypes, OpDef, OpError, Types
from glowc.ops.cast import KINDS
from glowc.ops.derived import derived
from glowc.ops.strided import emit_copy, present, whole


def infer(node: Node, in_types: MaybeTypes) -> Types:
    """The input's shape in the new kind."""
    (x,) = present(in_types[:1])
    kind = KINDS.get(node.int_("to"))
    fits = kind is not None and kind.bits == x.dtype.bits and x.dtype in KINDS.values()
    if kind is None or not fits or kind in NARROW or x.dtype in NARROW:
        raise OpError(f"the bits of {x} as ONNX element type {node.int_('to')}")
    return (TensorType(x.shape, kind, None, x.layout),)


def lower(node: Node, ctx: LowerCtx) -> None:
    """One contiguous copy, which becomes a view."""
    x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
    emit_copy(ctx, replace(x, type=replace(x.type, dtype=y.type.dtype)), y, whole(x.type.shape))


OP = OpDef("BitCast", infer, derived, lower, attrs={"to": Int()}, max_version=28, doc="bytes of another kind")
