"""GatherElements and GatherND: single elements, or rows, picked by index tensors.

`pick_b<N>`: out[o] = in[sum x_k * a_k + indices[sum x_k * c_k] * axis_stride] in `rank` loops, out dense.
`nd_index`: rows of k coordinates -> the number of the element (or row) that they name, for `gather_b<N>` and `scatter`.
A negative index counts from the end; one out of range (undefined in ONNX) is clamped, so that the C never reads
outside. Source: ONNX GatherElements-13, GatherND-13.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glowc.graph.attrs import Int
from glowc.graph.graph import Node
from glowc.graph.types import DType, TensorType
from glowc.kernels.shapes import MAX_RANK
from glowc.ops.base import LowerCtx, MaybeTypes, OpDef, OpError, Ref, Types
from glowc.ops.derived import derived
from glowc.ops.gather import GatherParams, clamped
from glowc.ops.params import Nest, PerAxis, padded_dims, padded_steps
from glowc.ops.strided import axis_of, collapse, dense_strides, present
from glowc.program.kernel import Arrays, KernelDef
from glowc.program.params import Params, Printed

INDEX_KINDS = (DType.S32, DType.S64)


@dataclass(frozen=True, slots=True)
class PickParams(Nest):
    """Of `pick_b<N>`: steps of data and indices, length and step of the axis that the indices walk."""

    a: PerAxis
    c: PerAxis
    axis_n: int
    axis_stride: int


@dataclass(frozen=True, slots=True)
class NdIndexParams(Params):
    """Of `nd_index`: rows of k coordinates, their axes and steps, and the rows of each batch."""

    n: int
    per_batch: int
    batch_rows: int
    d: PerAxis
    s: PerAxis
    k: Printed


def infer_elements(node: Node, in_types: MaybeTypes) -> Types:
    """The shape of the indices."""
    x, indices = present(in_types[:2])
    axis = axis_of(node.int_("axis"), x.rank)
    longer = any(n > d for i, (n, d) in enumerate(zip(indices.shape, x.shape, strict=False)) if i != axis)
    if indices.dtype not in INDEX_KINDS or indices.rank != x.rank or x.rank == 0 or longer:
        raise OpError(f"elements of {x} by {indices} along axis {axis}")
    return (x.with_shape(indices.shape),)


def along(shape: Sequence[int], axis: int) -> tuple[int, ...]:
    """Return dense strides with 0 for `axis`, which an index tensor walks."""
    return tuple(0 if i == axis else s for i, s in enumerate(dense_strides(shape)))


def lower_elements(node: Node, ctx: LowerCtx) -> None:
    """One `pick_b<N>`."""
    x, indices, y = ctx.read(node.inputs[0]), ctx.read(node.inputs[1]), ctx.write(node.outputs[0])
    axis, shape = axis_of(node.int_("axis"), x.type.rank), x.type.shape
    dims, (a, c) = collapse(indices.type.shape, along(shape, axis), dense_strides(indices.type.shape))
    params = PickParams(
        len(dims), padded_dims(dims), padded_steps(a), padded_steps(c), shape[axis], dense_strides(shape)[axis]
    )
    ctx.emit(f"pick_b{x.type.dtype.bytes}", {"in": x, "indices": indices, "out": y}, params)


def interpret_pick(arrays: Arrays, p: PickParams) -> None:
    """Evaluate pick_b<N>."""
    k = clamped(arrays["indices"].reshape(-1)[p.positions(p.c)], p.axis_n)
    y = arrays["in"].reshape(-1)[p.positions(p.a) + k * p.axis_stride]
    arrays["out"].reshape(-1)[: y.size] = y


def infer_nd(node: Node, in_types: MaybeTypes) -> Types:
    """Shape of the indices but their last axis, then what they leave of the data."""
    x, indices = present(in_types[:2])
    b, k = node.int_("batch_dims"), indices.shape[-1] if indices.rank else 0
    if indices.dtype not in INDEX_KINDS or not 0 < k <= x.rank - b or x.shape[:b] != indices.shape[:b]:
        raise OpError(f"gather from {x} by {indices}, batch_dims {b}")
    return (x.with_shape([*indices.shape[:-1], *x.shape[b + k :]]),)


def emit_nd_index(ctx: LowerCtx, indices: Ref, shape: Sequence[int], batch_dims: int, name: str) -> Ref:
    """Emit the numbers of the rows of a tensor of `shape` that `indices` [..., k] name."""
    k = indices.type.shape[-1]
    n = indices.type.elements // k
    named = tuple(shape[batch_dims : batch_dims + k])
    rows = ctx.temp(TensorType((n,), DType.S32), f"{name}_rows")
    params = NdIndexParams(
        n=n, k=k, per_batch=n // math.prod(shape[:batch_dims]), batch_rows=math.prod(named),
        d=padded_dims(_six(named)), s=padded_steps(_six(dense_strides(named))),
    )  # fmt: skip
    ctx.emit("nd_index", {"indices": indices, "out": rows}, params)
    return rows


def _six(values: tuple[int, ...]) -> tuple[int, ...]:
    if len(values) > MAX_RANK:
        raise OpError(f"{len(values)} coordinates, at most {MAX_RANK}")
    return values


def lower_nd(node: Node, ctx: LowerCtx) -> None:
    """`nd_index`, then a gather of rows."""
    x, indices, y = ctx.read(node.inputs[0]), ctx.read(node.inputs[1]), ctx.write(node.outputs[0])
    b, k, shape = node.int_("batch_dims"), indices.type.shape[-1], x.type.shape
    rows = emit_nd_index(ctx, indices, shape, b, node.name)
    params = GatherParams(1, math.prod(shape[: b + k]), rows.type.elements, math.prod(shape[b + k :]))
    ctx.emit(f"gather_b{x.type.dtype.bytes}", {"in": x, "indices": rows, "out": y}, params)


def interpret_nd_index(arrays: Arrays, p: NdIndexParams) -> None:
    """Evaluate nd_index."""
    at = arrays["indices"].reshape(-1)[: p.n * p.k].reshape(p.n, p.k)
    total = np.arange(p.n, dtype=np.int64) // p.per_batch * p.batch_rows
    for j in range(p.k):
        total = total + clamped(at[:, j], p.d[j]) * p.s[j]
    arrays["out"].reshape(-1)[: p.n] = total


KERNELS = (
    *(
        KernelDef(f"pick_b{n}", ("in in", "in indices:s32|s64", "out out"),
                  PickParams, interpret_pick, template="pick", kind=f"b{n}", doc="elements picked by an index tensor")
        for n in (1, 2, 4, 8)
    ),
    KernelDef("nd_index", ("in indices:s32|s64", "out out:s32"),
              NdIndexParams, interpret_nd_index, doc="coordinates to row numbers"),
)  # fmt: skip

OPS = (
    OpDef("GatherElements", infer_elements, derived, lower_elements, attrs={"axis": Int(0)},
          max_version=13, int8=True, doc="elements picked along an axis by an index tensor"),
    OpDef("GatherND", infer_nd, derived, lower_nd, attrs={"batch_dims": Int(0)}, max_version=13, int8=True,
          doc="rows picked by coordinates"),
)  # fmt: skip
