"""ScatterElements and ScatterND: the data with elements, or rows, replaced or combined (attr `reduction`).

`scatter` walks the updates in index order: out[sum x_k * o_k + indices[sum x_k * c_k] * axis_stride] = update, or old
op update for reduction add, mul, min, max; with equal indices the last update wins. A negative index counts from the
end; one out of range (undefined in ONNX) is clamped, so that the C never writes outside.
Source: ONNX ScatterElements-18, ScatterND-18.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glowc.graph.attrs import Int, Str
from glowc.graph.graph import Node
from glowc.ops.base import LowerCtx, MaybeTypes, OpDef, OpError, Ref, Types
from glowc.ops.binary_table import TABLE, expression
from glowc.ops.derived import derived
from glowc.ops.element_gather import INDEX_KINDS, along, emit_nd_index
from glowc.ops.gather import clamped
from glowc.ops.params import Nest, PerAxis, padded_dims, padded_steps
from glowc.ops.strided import axis_of, collapse, dense_strides, emit_copy, present, whole
from glowc.program.kernel import Arrays, KernelDef


@dataclass(frozen=True, slots=True)
class ScatterParams(Nest):
    """Of `scatter`: steps of output and indices, length and step of the axis that they walk, and what combines."""

    o: PerAxis
    c: PerAxis
    axis_n: int
    axis_stride: int
    op: str
    expr: str


REDUCTIONS = ("none", "add", "mul", "min", "max")

_REDUCTION = Str("none", words=REDUCTIONS)


def reduction_of(node: Node) -> str:
    """Return attr `reduction`."""
    name = node.str_("reduction")
    if name not in REDUCTIONS:
        raise OpError(f"reduction {name!r}: not one of {', '.join(REDUCTIONS)}")
    return name


def infer_elements(node: Node, in_types: MaybeTypes) -> Types:
    """The type of the data."""
    x, indices, updates = present(in_types[:3])
    axis = axis_of(node.int_("axis"), x.rank)
    longer = any(n > d for i, (n, d) in enumerate(zip(indices.shape, x.shape, strict=False)) if i != axis)
    fits = indices.shape == updates.shape and indices.rank == x.rank and x.rank > 0 and not longer
    if indices.dtype not in INDEX_KINDS or updates.dtype != x.dtype or not fits:
        raise OpError(f"scatter of {updates} by {indices} into {x} along axis {axis}")
    reduction_of(node)
    return (x,)


def infer_nd(node: Node, in_types: MaybeTypes) -> Types:
    """The type of the data."""
    x, indices, updates = present(in_types[:3])
    k = indices.shape[-1] if indices.rank else 0
    wanted = (*indices.shape[:-1], *x.shape[k:])
    if indices.dtype not in INDEX_KINDS or not 0 < k <= x.rank or updates.shape != wanted or updates.dtype != x.dtype:
        raise OpError(f"scatter of {updates} by {indices} into {x}")
    reduction_of(node)
    return (x,)


def combine(name: str, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Return what an update makes of an element."""
    if name == "none":
        return new
    with np.errstate(all="ignore"):
        return np.asarray(TABLE[name].function(old, new))


def scatter(flat: np.ndarray, places: np.ndarray, updates: np.ndarray, name: str) -> None:
    """Combine updates into a flat array, one after the other."""
    for place, value in zip(places.tolist(), updates.reshape(-1), strict=True):
        flat[place] = combine(name, flat[place], value)


def lower_elements(node: Node, ctx: LowerCtx) -> None:
    """A copy of the data and one `scatter`."""
    x, indices, updates = (ctx.read(name) for name in node.inputs[:3])
    axis, shape = axis_of(node.int_("axis"), x.type.rank), x.type.shape
    strides = (along(shape, axis), dense_strides(indices.type.shape))
    along_axis = (shape[axis], dense_strides(shape)[axis])
    emit_scatter(node, ctx, (x, indices, updates), indices.type.shape, strides, along_axis)


def lower_nd(node: Node, ctx: LowerCtx) -> None:
    """A copy of the data, `nd_index`, and one `scatter` of rows."""
    x, indices, updates = (ctx.read(name) for name in node.inputs[:3])
    k = indices.type.shape[-1]
    inner = math.prod(x.type.shape[k:])
    rows = emit_nd_index(ctx, indices, x.type.shape, 0, node.name)
    dims = (rows.type.elements, inner)
    emit_scatter(node, ctx, (x, rows, updates), dims, ((0, 1), (1, 0)), (math.prod(x.type.shape[:k]), inner))


def emit_scatter(
    node: Node, ctx: LowerCtx, refs: tuple[Ref, Ref, Ref], dims: Sequence[int],
    strides: tuple[Sequence[int], Sequence[int]], axis: tuple[int, int],
) -> None:  # fmt: skip
    """Emit the copy of `refs` (data, indices, updates) to the output and `scatter`; `axis` is (length, stride)."""
    x, indices, updates = refs
    y, name = ctx.write(node.outputs[0]), reduction_of(node)
    emit_copy(ctx, x, y, whole(x.type.shape))
    merged, (o, c) = collapse(dims, *strides)
    params = ScatterParams(
        len(merged), padded_dims(merged), padded_steps(o), padded_steps(c), *axis, op=name,
        expr="y" if name == "none" else expression(name, x.type.dtype),
    )  # fmt: skip
    ctx.emit("scatter", {"updates": updates, "indices": indices, "out": y}, params)


def _interpret(arrays: Arrays, p: ScatterParams) -> None:
    k = clamped(arrays["indices"].reshape(-1)[p.positions(p.c)], p.axis_n)
    places = p.positions(p.o) + k * p.axis_stride
    scatter(arrays["out"].reshape(-1), places, arrays["updates"].reshape(-1)[: places.size], p.op)


KERNELS = (
    KernelDef("scatter", ("in updates", "in indices:s32|s64", "inout out"),
              ScatterParams, _interpret, needs_math=True, doc="elements put where an index tensor says"),
)  # fmt: skip

OPS = (
    OpDef("ScatterElements", infer_elements, derived, lower_elements, max_version=18,
          attrs={"axis": Int(0), "reduction": _REDUCTION}, doc="elements replaced along an axis by an index tensor"),
    OpDef("ScatterND", infer_nd, derived, lower_nd, attrs={"reduction": _REDUCTION}, max_version=18,
          doc="rows replaced by coordinates"),
)  # fmt: skip
