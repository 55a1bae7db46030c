"""Gather: y = data taken along attr `axis` at `indices`, constant or computed; DepthToSpace and SpaceToDepth.

Data is seen as [outer, axis_n, inner]; out[o, j, :] = data[o, indices[j], :]. A negative index counts from the
end; one out of range (undefined in ONNX) is clamped, so that the C never reads outside. Constant indices in few
arithmetic progressions become strided copies. Source: ONNX Gather-13, DepthToSpace-28, SpaceToDepth-28.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowc.graph.attrs import Int, Str
from glowc.graph.graph import Node
from glowc.graph.types import DType, TensorType
from glowc.ops.base import LAYOUT, LowerCtx, MaybeTypes, OpDef, OpError, Types
from glowc.ops.derived import derived
from glowc.ops.params import Along, around
from glowc.ops.strided import Walk, axis_of, dense_strides, emit_copy, emit_indexed, present
from glowc.program.kernel import Arrays, KernelDef
from glowc.program.params import Params


@dataclass(frozen=True, slots=True)
class GatherParams(Params):
    """Of `gather_b<N>`: [outer, axis_n, inner] from which `index_n` rows are taken."""

    outer: int
    axis_n: int
    index_n: int
    inner: int


def infer(node: Node, in_types: MaybeTypes) -> Types:
    """Shape of data with the axis replaced by the shape of indices."""
    data, indices = present(in_types[:2])
    axis = axis_of(node.int_("axis"), data.rank)
    if indices.dtype not in (DType.S32, DType.S64) or data.rank == 0:
        raise OpError(f"gather from {data} by {indices}")
    return (data.with_shape([*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :]]),)


def clamped(indices: np.ndarray, n: int) -> np.ndarray:
    """Return indices counted from the front and inside the axis."""
    plain = indices.astype(np.int64)
    return np.asarray(np.clip(np.where(plain < 0, plain + n, plain), 0, n - 1))


def lower(node: Node, ctx: LowerCtx) -> None:
    """Copies for simple constant indices, else `gather_b<N>`."""
    x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
    shape = x.type.shape
    axis = axis_of(node.int_("axis"), len(shape))
    known = ctx.const_value(node.inputs[1])
    if known is not None:
        flat = clamped(known.reshape(-1), shape[axis])
        sources = [range(d) if i != axis else flat.tolist() for i, d in enumerate(shape)]
        if emit_indexed(ctx, x, y, sources, limit=4):
            return
        indices = ctx.const(flat.astype(np.int32), f"{node.name}_indices")
    else:
        indices = ctx.read(node.inputs[1])
    outer, n, inner = around(shape, axis)
    params = GatherParams(outer, n, indices.type.elements, inner)
    ctx.emit(f"gather_b{x.type.dtype.bytes}", {"in": x, "indices": indices, "out": y}, params)


def _interpret(arrays: Arrays, p: GatherParams) -> None:
    data = Along(p.outer, p.axis_n, p.inner).view(arrays["in"])
    y = data[:, clamped(arrays["indices"].reshape(-1)[: p.index_n], p.axis_n)]
    arrays["out"].reshape(-1)[: y.size] = y.reshape(-1)


def infer_blocks(node: Node, in_types: MaybeTypes) -> Types:
    """DepthToSpace and SpaceToDepth of [N, C, H, W] or [N, H, W, C]."""
    (x,) = present(in_types[:1])
    b, nhwc = node.int_("blocksize"), node.is_nhwc
    if x.rank != 4 or b < 1:
        raise OpError(f"blocks of {b} of {x}")
    n, c, h, w = (x.shape[i] for i in ((0, 3, 1, 2) if nhwc else (0, 1, 2, 3)))
    deep = node.op == "DepthToSpace"
    if (c % (b * b)) if deep else (h % b or w % b):
        raise OpError(f"{'channels' if deep else 'rows or columns'} do not divide by {b}: {x}")
    c, h, w = (c // (b * b), h * b, w * b) if deep else (c * b * b, h // b, w // b)
    return (TensorType((n, h, w, c) if nhwc else (n, c, h, w), x.dtype, None, "nhwc" if nhwc else x.layout),)


def _blocks(node: Node, shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the input's split shape and the permutation of it that is the output."""
    b, crd = node.int_("blocksize"), node.str_("mode") == "CRD"
    if node.is_nhwc:
        n, h, w, c = shape
        if node.op == "SpaceToDepth":
            return (n, h // b, b, w // b, b, c), (0, 1, 3, 5, 2, 4) if crd else (0, 1, 3, 2, 4, 5)
        less = c // (b * b)
        return ((n, h, w, less, b, b), (0, 1, 4, 2, 5, 3)) if crd else ((n, h, w, b, b, less), (0, 1, 3, 2, 4, 5))
    n, c, h, w = shape
    if node.op == "SpaceToDepth":
        return (n, c, h // b, b, w // b, b), (0, 1, 3, 5, 2, 4) if crd else (0, 3, 5, 1, 2, 4)
    less = c // (b * b)
    return ((n, less, b, b, h, w), (0, 1, 4, 2, 5, 3)) if crd else ((n, b, b, less, h, w), (0, 3, 4, 1, 5, 2))


def lower_blocks(node: Node, ctx: LowerCtx) -> None:
    """One strided copy."""
    x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
    split, perm = _blocks(node, x.type.shape)
    strides, dims = dense_strides(split), tuple(split[i] for i in perm)
    view = TensorType(dims, x.type.dtype)
    emit_copy(ctx, x, y, Walk(dims, tuple(strides[i] for i in perm), dense_strides(view.shape)))


KERNELS = tuple(
    KernelDef(f"gather_b{n}", ("in in", "in indices:s32|s64", "out out"), GatherParams, _interpret,
              template="gather", kind=f"b{n}", doc="rows of an axis picked by index")
    for n in (1, 2, 4, 8)
)  # fmt: skip

_BLOCKS = {"blocksize": Int(), "mode": Str("DCR", words=("DCR", "CRD")), "layout": LAYOUT}
OPS = (
    OpDef("Gather", infer, derived, lower, attrs={"axis": Int(0)}, max_version=13, int8=True,
          doc="picks along an axis by index"),
    OpDef("DepthToSpace", infer_blocks, derived, lower_blocks, attrs=_BLOCKS, max_version=28, int8=True,
          doc="moves channels to rows and columns"),
    OpDef("SpaceToDepth", infer_blocks, derived, lower_blocks, attrs=_BLOCKS, max_version=28, int8=True,
          doc="moves rows and columns to channels"),
)  # fmt: skip
