"""OneHot: out[outer, depth, inner] = values[1] where the index along `axis` is named, else values[0].

A negative index counts from `depth`; one out of range names nothing. Source: ONNX OneHot-28.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowc.graph.attrs import Int
from glowc.graph.graph import Node
from glowc.graph.types import DType
from glowc.ops.base import LowerCtx, MaybeTypes, OpDef, OpError, Ref, Types
from glowc.ops.derived import derived
from glowc.ops.params import around
from glowc.ops.strided import axis_of, present
from glowc.program.kernel import Arrays, KernelDef
from glowc.program.params import Params


@dataclass(frozen=True, slots=True)
class OneHotParams(Params):
    """Of `one_hot_b<N>`: the result is [outer, depth, inner]."""

    outer: int
    depth: int
    inner: int


def infer(node: Node, in_types: MaybeTypes) -> Types:
    """The shape of the indices with `depth` put in at `axis`; the kind of the values."""
    indices, values = present(in_types[:2])
    axis, depth = axis_of(node.int_("axis"), indices.rank + 1), node.int_("depth")
    if values.shape != (2,) or depth < 1 or indices.dtype == DType.BOOL:
        raise OpError(f"depth {depth}, indices {indices}, values {values}")
    return (values.with_shape([*indices.shape[:axis], depth, *indices.shape[axis:]]),)


def one_hot(indices: np.ndarray, values: np.ndarray, depth: int) -> np.ndarray:
    """Return [outer, depth, inner] of indices [outer, inner]."""
    plain = indices.astype(np.int64)
    hit = np.where(plain < 0, plain + depth, plain)[:, None] == np.arange(depth)[None, :, None]
    return np.asarray(np.where(hit, values[1], values[0]).astype(values.dtype))


def lower(node: Node, ctx: LowerCtx) -> None:
    """One `one_hot_b<N>`."""
    indices, values, y = ctx.read(node.inputs[0]), ctx.read(node.inputs[1]), ctx.write(node.outputs[0])
    emit_one_hot(ctx, indices, values, y, around(y.type.shape, axis_of(node.int_("axis"), y.type.rank)))


def emit_one_hot(ctx: LowerCtx, indices: Ref, values: Ref, y: Ref, dims: tuple[int, int, int]) -> None:
    """Emit `one_hot_b<N>` for [outer, depth, inner]."""
    operands = {"indices": indices, "values": values, "out": y}
    ctx.emit(f"one_hot_b{y.type.dtype.bytes}", operands, OneHotParams(*dims))


def _interpret(arrays: Arrays, p: OneHotParams) -> None:
    indices = arrays["indices"].reshape(-1)[: p.outer * p.inner].reshape(p.outer, p.inner)
    y = one_hot(indices, arrays["values"].reshape(-1), p.depth)
    arrays["out"].reshape(-1)[: y.size] = y.reshape(-1)


KERNELS = tuple(
    KernelDef(f"one_hot_b{n}", ("in indices:*", "in values", "out out"), OneHotParams, _interpret,
              template="one_hot", kind=f"b{n}", doc="a value at an index, another elsewhere")
    for n in (1, 2, 4, 8)
)  # fmt: skip

OP = OpDef(
    "OneHot", infer, derived, lower, attrs={"axis": Int(-1), "depth": Int()}, max_version=28, doc="one-hot coding"
)
