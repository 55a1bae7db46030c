"""Linear and cubic interpolation along one axis by tables made at compile time, for Resize.

`interpolate`: in[outer, n, inner] -> out[outer, m, inner]: out[o, j, i] = sum over k < taps of
factors[j * taps + k] * in[o, index[j * taps + k], i], in that order, in the element type. Neighbours beyond an edge
repeat the edge; with exclude_outside their weight goes to the others. Coordinates and factors are computed in float64
and rounded to the element type, but for cubic of floats and codes: there they and the order of the axes (the last one
first) are onnxruntime's, whose float32 results they equal bit for bit (30,000 outputs in every transformation; with
exclude_outside the last division differs). Source: ONNX Resize-19.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from glowc.graph.numerics import F32
from glowc.graph.types import DType, TensorType
from glowc.ops.base import LowerCtx, OpError, Ref
from glowc.ops.params import Along, around
from glowc.ops.resize_coordinates import Axis, coordinates, rounded_coordinates
from glowc.program.kernel import Arrays, KernelDef
from glowc.program.params import Params

SMALLEST_DISTANCE = 1e-9  # of a coordinate that counts as whole


@dataclass(frozen=True, slots=True)
class Filter:
    """What is the same for all axes."""

    mode: str
    transform: str
    cubic_a: float = -0.75
    exclude_outside: bool = False
    antialias: bool = False
    double: bool = False
    """The tensor is float64."""


@dataclass(frozen=True, slots=True)
class Taps:
    """Source indices and weights [out, taps], and which outputs lie outside of the input (crop only)."""

    index: np.ndarray
    weights: np.ndarray
    outside: np.ndarray


def _cubic(x: np.ndarray, a: float) -> np.ndarray:
    x = np.abs(x)
    near, far = (a + 2) * x**3 - (a + 3) * x**2 + 1, a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))


def _rounded_cubic(x: np.ndarray, filter_: Filter, axis: Axis) -> Taps:
    """Return the taps of float32 coordinates `x`, each operation rounded as onnxruntime rounds it."""
    left = np.floor(x)
    s, a, one = (x - left).astype(F32), F32(filter_.cubic_a), F32(1)

    def far(d: np.ndarray) -> np.ndarray:
        return np.asarray(((a * d - F32(5) * a) * d + F32(8) * a) * d - F32(4) * a)

    def near(d: np.ndarray) -> np.ndarray:
        return np.asarray(((a + F32(2)) * d - (a + F32(3))) * d * d + one)

    weights = np.stack([far(s + one), near(s), near(one - s), far(F32(2) - s)], 1)
    index = left[:, None].astype(np.int64) + np.arange(-1, 3)
    if filter_.exclude_outside:
        weights = np.where((index >= 0) & (index < axis.length), weights, F32(0))
        weights = weights / np.add.accumulate(weights, 1)[:, -1:]
    return _used(index, weights, np.zeros(axis.out, np.bool_), axis)


def _used(index: np.ndarray, weights: np.ndarray, outside: np.ndarray, axis: Axis) -> Taps:
    """Return the table without neighbours that never count."""
    used = np.flatnonzero((weights != 0).any(0))
    return Taps(np.clip(index, 0, axis.length - 1)[:, used], weights[:, used], outside)


def _linear(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.clip(1 - np.abs(x), 0, 1))


def taps_of(filter_: Filter, axis: Axis) -> Taps:
    """Return the tables of one axis."""
    if filter_.mode not in ("linear", "cubic"):
        raise OpError(f"mode {filter_.mode!r} is not supported (nearest, linear, cubic are)")
    crop = filter_.transform == "tf_crop_and_resize"
    if filter_.mode == "cubic" and not (filter_.antialias or filter_.double or crop):
        return _rounded_cubic(rounded_coordinates(filter_.transform, axis), filter_, axis)
    x = coordinates(filter_.transform, axis)
    left = np.where(np.abs(x - np.rint(x)) < SMALLEST_DISTANCE, np.rint(x) - 1, np.floor(x))
    ratio = x - left  # in (0, 1]: a whole coordinate belongs to the interval on its left
    squeeze = min(axis.scale, 1.0) if filter_.antialias else 1.0
    reach = 1 if filter_.mode == "linear" else 2
    first = math.floor(-reach / squeeze) + 1
    steps = np.arange(first, 2 - first)
    distance = (steps[None, :] - ratio[:, None]) * squeeze
    weights = _linear(distance) if filter_.mode == "linear" else _cubic(distance, filter_.cubic_a)
    if filter_.antialias:
        weights = weights / weights.sum(1, keepdims=True)
    index = left[:, None].astype(np.int64) + steps[None, :]
    if filter_.exclude_outside:
        weights = np.where((index >= 0) & (index < axis.length), weights, 0.0)
        weights = weights / weights.sum(1, keepdims=True)
    outside = (x < 0) | (x > axis.length - 1) if crop else np.zeros(axis.out, np.bool_)
    return _used(index, weights, outside, axis)


def apply(x: np.ndarray, taps: Taps, axis: int) -> np.ndarray:
    """Return x interpolated along an axis, in its element type."""
    moved = np.moveaxis(x, axis, 0)
    weights = taps.weights.astype(x.dtype)
    y = np.zeros((taps.index.shape[0], *moved.shape[1:]), x.dtype)
    for k in range(taps.index.shape[1]):
        y = y + weights[:, k].reshape(-1, *[1] * (moved.ndim - 1)) * moved[taps.index[:, k]]
    return np.moveaxis(y, 0, axis)


@dataclass(frozen=True, slots=True)
class InterpolateParams(Params):
    """Of `interpolate`: [outer, n, inner] to [outer, m, inner] by sums of `taps` elements."""

    outer: int
    n: int
    m: int
    inner: int
    taps: int


def emit_taps(ctx: LowerCtx, x: Ref, y: Ref, taps: Taps, axis: int, name: str) -> None:
    """Emit one `interpolate`."""
    shape, (m, count) = x.type.shape, taps.index.shape
    index = ctx.const(taps.index.astype(np.int32), f"{name}_index{axis}")
    weights = ctx.const(taps.weights.astype(x.type.dtype.numpy), f"{name}_weights{axis}")
    outer, n, inner = around(shape, axis)
    params = InterpolateParams(outer, n, m, inner, count)
    ctx.emit("interpolate", {"in": x, "index": index, "factors": weights, "out": y}, params)


def emit_chain(ctx: LowerCtx, x: Ref, y: Ref, taps: Mapping[int, Taps], name: str) -> None:
    """Emit one `interpolate` per axis from the last to the first, that one into y."""
    for axis, one in sorted(taps.items(), reverse=True):
        shape = [one.index.shape[0] if i == axis else d for i, d in enumerate(x.type.shape)]
        last = axis == min(taps)
        to = y if last else ctx.temp(TensorType(tuple(shape), x.type.dtype), f"{name}_axis{axis}")
        emit_taps(ctx, x, to, one, axis, name)
        x = to


def _interpret(arrays: Arrays, p: InterpolateParams) -> None:
    x = Along(p.outer, p.n, p.inner).view(arrays["in"])
    tables = [arrays[k].reshape(-1)[: p.m * p.taps].reshape(p.m, p.taps) for k in ("index", "factors")]
    y = apply(x, Taps(tables[0], tables[1], np.zeros(p.m, np.bool_)), 1)
    arrays["out"].reshape(-1)[: y.size] = y.reshape(-1)


KERNELS = (
    KernelDef("interpolate", ("in in", "in index:s32", "in factors", "out out"), InterpolateParams,
              _interpret, kind="f32|f64", doc="weighted sums along an axis"),
)  # fmt: skip
FLOATS = (DType.F32, DType.F64)
