"""Where: y = a where the condition holds, else b; numpy broadcasting of all three.

Any element kind; a and b quantised otherwise than the output are requantised first. Source: ONNX Where-16.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowc.graph.graph import Node
from glowc.graph.types import DType, TensorType
from glowc.ops.base import LowerCtx, MaybeTypes, OpDef, OpError, Ref, Types
from glowc.ops.derived import derived
from glowc.ops.params import Pairs, PerAxis, padded_dims, padded_steps
from glowc.ops.quantize import emit_requantize
from glowc.ops.strided import broadcast_shape, broadcast_strides, collapse, present
from glowc.program.kernel import Arrays, KernelDef


@dataclass(frozen=True, slots=True)
class WhereParams(Pairs):
    """Of `where_b<N>`: the steps of the condition besides."""

    c: PerAxis


def infer(_: Node, in_types: MaybeTypes) -> Types:
    """Broadcast shape, the kind of the two choices."""
    types = present(in_types)
    if len(types) != 3 or types[0].dtype != DType.BOOL or types[1].dtype != types[2].dtype:
        raise OpError("needs a bool condition and two tensors of one kind: " + ", ".join(map(str, types)))
    return (TensorType(broadcast_shape(types), types[1].dtype),)


def lower(node: Node, ctx: LowerCtx) -> None:
    """One `where_b<N>`."""
    y = ctx.write(node.outputs[0])
    a, b = (_same_codes(ctx, ctx.read(name), y, node.name) for name in node.inputs[1:])
    emit_where(ctx, ctx.read(node.inputs[0]), a, b, y)


def emit_where(ctx: LowerCtx, pick: Ref, a: Ref, b: Ref, y: Ref) -> None:
    """Emit `where_b<N>`: y = a where pick holds, else b; all three broadcast to y."""
    out = y.type.shape
    dims, (c, sa, sb) = collapse(out, *(broadcast_strides(r.type.shape, out) for r in (pick, a, b)))
    params = WhereParams(len(dims), padded_dims(dims), padded_steps(sa), padded_steps(sb), padded_steps(c))
    ctx.emit(f"where_b{y.type.dtype.bytes}", {"pick": pick, "a": a, "b": b, "out": y}, params)


def _same_codes(ctx: LowerCtx, x: Ref, y: Ref, name: str) -> Ref:
    if x.type.quant is None or x.type.quant == y.type.quant:
        return x
    return emit_requantize(ctx, x, y.type, f"{name}_choice")


def _interpret(arrays: Arrays, p: WhereParams) -> None:
    y = np.where(p.view(arrays["pick"], p.c), p.view(arrays["a"], p.a), p.view(arrays["b"], p.b))
    arrays["out"].reshape(-1)[: y.size] = y.reshape(-1)


KERNELS = tuple(
    KernelDef(f"where_b{n}", ("in pick:bool", "in a", "in b", "out out"), WhereParams, _interpret,
              template="where", kind=f"b{n}", doc="choice between two tensors")
    for n in (1, 2, 4, 8)
)  # fmt: skip

OP = OpDef("Where", infer, derived, lower, max_version=16, int8=True, doc="choice between two tensors")
