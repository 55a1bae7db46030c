"""N-dimensional strided access: broadcasting, collapsing of axes, and the copies that data movement lowers to.

Strides and offsets count elements. Axes that are adjacent in every operand are merged first, so that the
printed loop nests are as shallow as the access allows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from glowc.graph.types import TensorType
from glowc.kernels.shapes import MAX_RANK
from glowc.ops.base import LowerCtx, OpError, Ref
from glowc.ops.params import Nest, Pairs, PerAxis, padded_dims, padded_steps
from glowc.program.params import Printed

MOST_COPIES = 16  # that one axis becomes where a copy has more axes than MAX_RANK
LARGEST_TABLE_AXIS = 1 << 24
Ints = tuple[int, ...]


def present(types: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
    """Return the types of inputs that must all be there."""
    if any(t is None for t in types):
        raise OpError(f"input {[t is None for t in types].index(True)} is missing")
    return tuple(t for t in types if t is not None)


def axis_of(axis: int, rank: int) -> int:
    """Return an axis counted from the front; OpError when it is out of range."""
    if not -rank <= axis < max(rank, 1):
        raise OpError(f"axis {axis} of a tensor of rank {rank}")
    return axis % max(rank, 1)


def check_table_axes(shape: Sequence[int]) -> None:
    """Raise OpError for an axis so long that a table of its indices at compile time would not fit in memory."""
    if max(shape, default=0) > LARGEST_TABLE_AXIS:
        raise OpError(f"the result {list(shape)} has an axis of more than {LARGEST_TABLE_AXIS:,} elements")


def dense_strides(shape: Sequence[int]) -> Ints:
    """Return the element strides of a dense row-major tensor."""
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


def broadcast_shape(types: Sequence[TensorType]) -> Ints:
    """Return the numpy broadcast of the shapes; OpError shows them all."""
    try:
        return tuple(np.broadcast_shapes(*(t.shape for t in types)))
    except ValueError:
        raise OpError("shapes do not broadcast: " + ", ".join(map(str, types))) from None


def broadcast_strides(shape: Sequence[int], out: Sequence[int]) -> Ints:
    """Return the strides with which a dense tensor of `shape` is read for an output of shape `out`."""
    padded = (1,) * (len(out) - len(shape)) + tuple(shape)
    strides = dense_strides(padded)
    return tuple(0 if d == 1 else s for d, s in zip(padded, strides, strict=True))


def collapse(dims: Sequence[int], *strides: Sequence[int]) -> tuple[Ints, tuple[Ints, ...]]:
    """Drop axes of length 1 and merge neighbours that every operand walks alike; at least one axis remains."""
    merged, steps = _merge(dims, *strides)
    if len(merged) > MAX_RANK:
        raise OpError(f"{len(merged)} axes that cannot be merged, at most {MAX_RANK}: {list(merged)}")
    return merged, steps


def _merge(dims: Sequence[int], *strides: Sequence[int]) -> tuple[Ints, tuple[Ints, ...]]:
    axes: list[tuple[int, Ints]] = []
    for d, *steps in zip(dims, *strides, strict=True):
        if d == 1:
            continue
        if axes and all(outer == s * d for outer, s in zip(axes[-1][1], steps, strict=True)):
            axes[-1] = (axes[-1][0] * d, tuple(steps))
        else:
            axes.append((d, tuple(steps)))
    if not axes:
        axes = [(1, (1,) * len(strides))]
    return tuple(d for d, _ in axes), tuple(tuple(s[i] for _, s in axes) for i in range(len(strides)))


def access(a: Ref, b: Ref, y: Ref) -> Pairs:
    """Return the loops that read a and b for the dense output y."""
    out = y.type.shape
    dims, (sa, sb) = collapse(out, broadcast_strides(a.type.shape, out), broadcast_strides(b.type.shape, out))
    return Pairs(len(dims), padded_dims(dims), padded_steps(sa), padded_steps(sb))


@dataclass(frozen=True, slots=True)
class Walk:
    """A strided copy: lengths, and where the elements are read and written."""

    dims: Ints
    in_strides: Ints
    out_strides: Ints
    in_offset: int = 0
    out_offset: int = 0


@dataclass(frozen=True, slots=True)
class CopyParams(Nest):
    """Of `copy_b<N>`: the steps of input and output, and where their first elements lie."""

    i: PerAxis
    o: PerAxis
    in_offset: int
    out_offset: int
    contiguous: Printed


def emit_copy(ctx: LowerCtx, src: Ref, dst: Ref, walk: Walk) -> None:
    """Emit `copy_b<bytes>` for a walk; nothing when it has no elements.

    A walk of more axes than a kernel loops over becomes one copy per index of its shortest axis.
    """
    if 0 in walk.dims:
        return
    dims, (in_strides, out_strides) = _merge(walk.dims, walk.in_strides, walk.out_strides)
    if len(dims) > MAX_RANK and min(dims) <= MOST_COPIES:
        k = dims.index(min(dims))
        rest = [values[:k] + values[k + 1 :] for values in (dims, in_strides, out_strides)]
        for x in range(dims[k]):
            offsets = walk.in_offset + x * in_strides[k], walk.out_offset + x * out_strides[k]
            emit_copy(ctx, src, dst, Walk(rest[0], rest[1], rest[2], *offsets))
        return
    dims, (in_strides, out_strides) = collapse(walk.dims, walk.in_strides, walk.out_strides)
    params = CopyParams(
        len(dims), padded_dims(dims), padded_steps(in_strides), padded_steps(out_strides),
        walk.in_offset, walk.out_offset, contiguous=int(in_strides[-1] == 1 and out_strides[-1] == 1),
    )  # fmt: skip
    ctx.emit(f"copy_b{src.type.dtype.bytes}", {"in": src, "out": dst}, params)


def whole(shape: Sequence[int]) -> Walk:
    """Return the copy of a dense tensor to a dense tensor of the same elements."""
    n = math.prod(shape)
    return Walk((n,), (1,), (1,)) if n else Walk((0,), (1,), (1,))


@dataclass(frozen=True, slots=True)
class Run:
    """Output indices [out, out + length) of an axis that read begin, begin + step, ...; begin -1: filled."""

    out: int
    length: int
    begin: int
    step: int

    @property
    def filled(self) -> bool:
        """True when nothing is read here."""
        return self.begin < 0


def runs_of(source: Sequence[int]) -> list[Run]:
    """Cut the source indices of an axis (-1: none) into arithmetic progressions."""
    if isinstance(source, range):
        return [Run(0, len(source), source.start, source.step if len(source) > 1 else 1)] if source else []
    runs: list[Run] = []
    for out, begin in enumerate(source):
        last = runs[-1] if runs else None
        if last is not None and last.filled == (begin < 0):
            step = begin - last.begin if last.length == 1 else last.step
            if begin < 0 or begin == last.begin + last.length * step:
                runs[-1] = replace(last, length=last.length + 1, step=step)
                continue
        runs.append(Run(out, 1, begin, 1))
    return runs


def emit_indexed(ctx: LowerCtx, src: Ref, dst: Ref, sources: Sequence[Sequence[int]], *, limit: int = 64) -> bool:
    """Emit copies for out[j0, j1, ...] = in[sources[0][j0], ...], leaving out where an index is -1.

    Returns False, and emits nothing, when that would take more than `limit` copies.
    """
    per_axis = [[run for run in runs_of(source) if not run.filled] for source in sources]
    if math.prod(len(runs) for runs in per_axis) > limit:
        return False
    in_dense, out_dense = dense_strides(src.type.shape), dense_strides([len(s) for s in sources])
    for combo in itertools.product(*per_axis):
        walk = Walk(
            tuple(run.length for run in combo),
            tuple(run.step * s for run, s in zip(combo, in_dense, strict=True)),
            out_dense,
            sum(run.begin * s for run, s in zip(combo, in_dense, strict=True)),
            sum(run.out * s for run, s in zip(combo, out_dense, strict=True)),
        )
        emit_copy(ctx, src, dst, walk)
    return True
