"""Transpose, Concat, Slice, Split, Expand, Tile: pure data movement, all lowered to strided copies.

Integers keep their codes. Quantised inputs of Concat whose parameters differ from the output's are brought to
them first, as rne((q - zx) * sx / sy) + zy. Source: ONNX Transpose-25, Concat-13, Slice-13, Split-18, Expand-13,
Tile-13.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from glowc.graph.attrs import Int, IntList
from glowc.graph.graph import Node
from glowc.ops.base import LowerCtx, MaybeTypes, OpDef, OpError, Types
from glowc.ops.derived import derived
from glowc.ops.quantize import emit_requantize
from glowc.ops.strided import (
    Walk,
    axis_of,
    broadcast_shape,
    broadcast_strides,
    dense_strides,
    emit_copy,
    emit_indexed,
    present,
)


def permutation(node: Node, rank: int) -> tuple[int, ...]:
    """Return attr `perm`, reversed axes when it is absent."""
    perm = node.ints("perm") or tuple(reversed(range(rank)))
    if sorted(perm) != list(range(rank)):
        raise OpError(f"perm {list(perm)} of a tensor of rank {rank}")
    return perm


def infer_transpose(node: Node, in_types: MaybeTypes) -> Types:
    (x,) = present(in_types[:1])
    return (x.with_shape([x.shape[i] for i in permutation(node, x.rank)]),)


def lower_transpose(node: Node, ctx: LowerCtx) -> None:
    x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
    strides = dense_strides(x.type.shape)
    perm = permutation(node, x.type.rank)
    emit_copy(ctx, x, y, Walk(y.type.shape, tuple(strides[i] for i in perm), dense_strides(y.type.shape)))


def infer_concat(node: Node, in_types: MaybeTypes) -> Types:
    types = present(in_types)
    axis = axis_of(node.int_("axis"), types[0].rank)
    first = types[0]
    for t in types[1:]:
        fits = t.rank == first.rank and t.dtype == first.dtype
        if not fits or any(a != b for i, (a, b) in enumerate(zip(t.shape, first.shape, strict=True)) if i != axis):
            raise OpError(f"inputs differ besides axis {axis}: " + ", ".join(map(str, types)))
    if first.rank == 0:
        raise OpError("scalars have no axis to be joined along")
    shape = list(first.shape)
    shape[axis] = sum(t.shape[axis] for t in types)
    return (first.with_shape(shape),)


def lower_concat(node: Node, ctx: LowerCtx) -> None:
    y = ctx.write(node.outputs[0])
    axis = axis_of(node.int_("axis"), y.type.rank)
    strides, begin = dense_strides(y.type.shape), 0
    for name in node.inputs:
        x = ctx.read(name)
        if x.type.elements == 0:
            continue
        if x.type.quant is not None and x.type.quant != y.type.quant:
            x = emit_requantize(ctx, x, y.type, f"{node.name}_part")
        emit_copy(ctx, x, y, Walk(x.type.shape, dense_strides(x.type.shape), strides, 0, begin * strides[axis]))
        begin += x.type.shape[axis]


def slice_ranges(node: Node, shape: Sequence[int]) -> list[range]:
    """Return the indices that Slice keeps of each axis."""
    starts, ends = node.ints("starts"), node.ints("ends")
    axes = node.ints("axes") or tuple(range(len(starts)))
    steps = node.ints("steps", len(starts))
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps or (axes and not shape):
        raise OpError(f"starts {list(starts)} ends {list(ends)} axes {list(axes)} steps {list(steps)}")
    ranges = [range(d) for d in shape]
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        i = axis_of(axis, len(shape))
        d = shape[i]
        low, high = (0, d) if step > 0 else (-1, d - 1)
        first, last = (min(max(v + d if v < 0 else v, low), high) for v in (start, end))
        ranges[i] = range(first, last, step)
    return ranges


def infer_slice(node: Node, in_types: MaybeTypes) -> Types:
    (x,) = present(in_types[:1])
    return (x.with_shape([len(r) for r in slice_ranges(node, x.shape)]),)


def lower_slice(node: Node, ctx: LowerCtx) -> None:
    x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
    emit_indexed(ctx, x, y, slice_ranges(node, x.type.shape))


def split_sizes(node: Node, dim: int) -> tuple[int, ...]:
    """Return the lengths of the parts: attr `split`, or equal parts (the last may be shorter)."""
    count = node.int_("num_outputs") if "num_outputs" in node.attrs else len(node.outputs)
    if count < 1:
        raise OpError(f"num_outputs is {count}")
    chunk = -(-dim // count)
    sizes = node.ints("split") or tuple(max(0, min(chunk, dim - i * chunk)) for i in range(count))
    if sum(sizes) != dim or len(sizes) != len(node.outputs):
        raise OpError(f"split {list(sizes)} of an axis of {dim} into {len(node.outputs)} outputs")
    return sizes


def infer_split(node: Node, in_types: MaybeTypes) -> Types:
    (x,) = present(in_types[:1])
    if x.rank == 0:
        raise OpError("a scalar has no axis to be split along")
    axis = axis_of(node.int_("axis"), x.rank)
    sizes = split_sizes(node, x.shape[axis])
    return tuple(x.with_shape([*x.shape[:axis], n, *x.shape[axis + 1 :]]) for n in sizes)


def lower_split(node: Node, ctx: LowerCtx) -> None:
    x = ctx.read(node.inputs[0])
    axis = axis_of(node.int_("axis"), x.type.rank)
    strides, begin = dense_strides(x.type.shape), 0
    for name, length in zip(node.outputs, split_sizes(node, x.type.shape[axis]), strict=True):
        if name:
            y = ctx.write(name)
            emit_copy(ctx, x, y, Walk(y.type.shape, strides, dense_strides(y.type.shape), begin * strides[axis]))
        begin += length


def infer_expand(node: Node, in_types: MaybeTypes) -> Types:
    (x,) = present(in_types[:1])
    return (x.with_shape(broadcast_shape((x, x.with_shape(node.ints("shape"))))),)


def lower_expand(node: Node, ctx: LowerCtx) -> None:
    x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
    shape = y.type.shape
    emit_copy(ctx, x, y, Walk(shape, broadcast_strides(x.type.shape, shape), dense_strides(shape)))


def infer_tile(node: Node, in_types: MaybeTypes) -> Types:
    (x,) = present(in_types[:1])
    repeats = node.ints("repeats")
    if len(repeats) != x.rank or any(r < 0 for r in repeats):
        raise OpError(f"repeats {list(repeats)} for {x}")
    return (x.with_shape([d * r for d, r in zip(x.shape, repeats, strict=True)]),)


def lower_tile(node: Node, ctx: LowerCtx) -> None:
    """Each axis is walked as (repeat, index), the repeat with input stride 0."""
    x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
    dims: list[int] = []
    steps: list[int] = []
    for d, r, s in zip(x.type.shape, node.ints("repeats"), dense_strides(x.type.shape), strict=True):
        dims += [r, d]
        steps += [0, s]
    assert math.prod(dims) == y.type.elements
    emit_copy(ctx, x, y, Walk(tuple(dims), tuple(steps), dense_strides(dims)))


OPS = (
    OpDef("Transpose", infer_transpose, derived, lower_transpose, attrs={"perm": IntList(())},
          max_version=25, int8=True, doc="permutes axes"),
    OpDef("Concat", infer_concat, derived, lower_concat, attrs={"axis": Int()}, max_version=13,
          int8=True, doc="joins tensors along an axis"),
    OpDef("Slice", infer_slice, derived, lower_slice, max_version=13, int8=True,
          attrs={"starts": IntList(), "ends": IntList(), "axes": IntList(()), "steps": IntList(each=1)},
          doc="cuts ranges with steps out of axes"),
    OpDef("Split", infer_split, derived, lower_split, max_version=18, int8=True,
          attrs={"axis": Int(0), "split": IntList(()), "num_outputs": Int(optional=True)},
          doc="cuts an axis into parts"),
    OpDef("Expand", infer_expand, derived, lower_expand, attrs={"shape": IntList()}, max_version=13,
          int8=True, doc="broadcasts to a shape"),
    OpDef("Tile", infer_tile, derived, lower_tile, attrs={"repeats": IntList()}, max_version=13, int8=True,
          doc="repeats along axes"),
)  # fmt: skip
