"""Outputs of a layer whose factor is 1/2 or more, beside others: channels that training has let die have such.

Kernels end TensorFlow Lite's layers by a shift to the right on every CPU (glowc/kernels/common/factors.py). Where some
outputs need one to the left, a small layer of theirs comes before the whole one, whose results for them do not count,
and is scattered into it. Where most do, the small layer is of the others. What needs a shift to the left ends by
float32 scales where these give the same codes (glowc/ops/same_scale.py), by the definition otherwise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from glowc.graph.types import TensorType
from glowc.kernels.shapes import Conv, FullyConnected
from glowc.ops.base import LowerCtx, Ref
from glowc.ops.gather import GatherParams
from glowc.ops.params import padded_dims, padded_steps
from glowc.ops.scatter import ScatterParams


@dataclass(frozen=True, slots=True)
class Steep:
    """The outputs `at` of `count` that are computed apart."""

    at: np.ndarray
    count: int

    @property
    def mask(self) -> np.ndarray:
        """True for them, of all outputs."""
        return np.isin(np.arange(self.count), self.at)

    @property
    def is_minor(self) -> bool:
        """True for at most half of the outputs."""
        return 2 * self.at.size <= self.count

    @property
    def others(self) -> Steep:
        """All but these."""
        return Steep(np.flatnonzero(~self.mask), self.count)

    def share(self, macs: int) -> int:
        """Return how many of a layer's multiply-accumulates are theirs."""
        return macs * self.at.size // self.count


def steep_outputs(shift: np.ndarray) -> Steep:
    """Return the outputs whose shifts are to the left."""
    return Steep(np.flatnonzero(shift.reshape(-1) >= 0), shift.size)


def small_shape(shape: Conv | FullyConnected, steep: Steep, *, depthwise: bool) -> Conv | FullyConnected:
    """Return the shape of the small layer; a depthwise one reads a tensor of its own (`gathered`)."""
    n = steep.at.size
    if isinstance(shape, FullyConnected):
        return replace(shape, out_n=n)
    small = replace(shape, out_c=n, out_row=shape.out_w * n, out_batch=shape.out_h * shape.out_w * n)
    if not depthwise:
        return small
    col = n if _is_interleaved(shape) else 1
    row = shape.in_w * col
    return replace(small, in_c=n, groups=n, in_col=col, in_row=row, in_batch=shape.in_h * shape.in_w * n)


def _is_interleaved(shape: Conv) -> bool:
    return shape.in_ch == 1


def small_type(y: TensorType, steep: Steep) -> TensorType:
    """Return the type of the small layer's result."""
    return y.with_shape((*y.shape[:-1], steep.at.size))


def gathered(ctx: LowerCtx, x: Ref, shape: Conv, steep: Steep, name: str) -> Ref:
    """Emit a gather of the channels that steep outputs of a depthwise layer read; return their tensor, laid as x is."""
    channels, pixels = steep.at // (shape.out_c // shape.in_c), shape.in_h * shape.in_w
    interleaved, n = _is_interleaved(shape), steep.at.size
    dims = (shape.batch, pixels, n) if interleaved else (shape.batch, n, pixels)
    out, indices = ctx.temp(x.type.with_shape(dims), name), ctx.const(channels.astype(np.int32), f"{name}_indices")
    outer, inner = (shape.batch * pixels, 1) if interleaved else (shape.batch, pixels)
    ctx.emit("gather_b1", {"in": x, "indices": indices, "out": out}, GatherParams(outer, shape.in_c, n, inner))
    return out


def put_in_place(ctx: LowerCtx, small: Ref, y: Ref, steep: Steep) -> None:
    """Emit a scatter of the small layer's results into the whole one's."""
    n, rows = steep.at.size, math.prod(y.type.shape[:-1])
    indices = ctx.const(steep.at.astype(np.int32), f"{small.buffer}_indices")
    params = ScatterParams(
        2, padded_dims((rows, n)), padded_steps((steep.count, 0)), padded_steps((0, 1)), steep.count, 1, op="none",
        expr="y",
    )  # fmt: skip
    ctx.emit("scatter", {"updates": small, "indices": indices, "out": y}, params)
