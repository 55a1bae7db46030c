"""Frames: x[..., n] -> y[..., f, size], frames that begin `step` samples apart, as far as they are whole (internal)."""

from __future__ import annotations

import math

from glowc.graph.attrs import Int
from glowc.graph.graph import Node
from glowc.graph.types import TensorType
from glowc.ops.base import LowerCtx, MaybeTypes, OpDef, OpError, Types
from glowc.ops.derived import derived
from glowc.ops.strided import Walk, dense_strides, emit_copy, present


def infer(node: Node, in_types: MaybeTypes) -> Types:
    """One more axis."""
    (x,) = present(in_types[:1])
    size, step = node.int_("size"), node.int_("step")
    if x.rank < 1 or step < 1 or not 1 <= size <= x.shape[-1]:
        raise OpError(f"frames of {size} every {step} of {x}")
    return (TensorType((*x.shape[:-1], (x.shape[-1] - size) // step + 1, size), x.dtype),)


def lower(node: Node, ctx: LowerCtx) -> None:
    """One copy whose input steps overlap."""
    x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
    outer = math.prod(x.type.shape[:-1])
    shape = (outer, *y.type.shape[-2:])
    emit_copy(ctx, x, y, Walk(shape, (x.type.shape[-1], node.int_("step"), 1), dense_strides(shape)))


OP = OpDef("Frames", infer, derived, lower, {"size": Int(), "step": Int()}, doc="frames of samples (internal)")
