"""TensorFlow Lite's multiplier and shift as a float32 scale, where both give every sum of a layer the same code.

Kernels shift to the right; a factor of 1/2 or more has a shift to the left. Of such a layer only few hundred sums have
codes between the limits, and nearly always there is a float32 that gives just those codes.
"""

from __future__ import annotations

import numpy as np

from glowc.graph.numerics import requantize
from glowc.kernels.shapes import Codes
from glowc.ops.integer import FixedEnding, ScaleEnding
from glowc.ops.params import OutCodes

_NEAR = np.arange(-2, 3)
_STEPS = (0, 1, -1)  # of the last bit


def sums_between(weights: np.ndarray, bias: np.ndarray, codes: Codes, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the greatest sum int64[O] of weights with outputs along `axis`, over all int8 inputs."""
    rows = np.moveaxis(weights, axis, 0).reshape(weights.shape[axis], -1).astype(np.int64) - codes.w_zp
    ends = [rows * (x - codes.in_zp) for x in (-128, 127)]
    return np.minimum(*ends).sum(1) + bias, np.maximum(*ends).sum(1) + bias


def same_scale(
    ending: FixedEnding, low: np.ndarray, high: np.ndarray, codes: Codes | OutCodes
) -> ScaleEnding | None:  # fmt: skip
    """Return the scales that give the codes of `ending` for every sum from low[O] to high[O]; None without such.

    Both rise with the sum: they agree everywhere when they agree at the ends and around each sum where a code begins.
    """
    mul, shift = (np.broadcast_to(v.astype(np.int64), low.shape)[:, None] for v in (ending.mul, ending.shift))
    factor = np.ldexp(mul.astype(np.float64), shift - 31)
    begins = np.arange(codes.out_min + 1, codes.out_max + 1)
    near = np.ceil((begins - codes.out_zp - 0.5) / factor).astype(np.int64)[..., None] + _NEAR
    bounds = codes.out_zp, codes.out_min, codes.out_max
    reach = np.maximum(np.abs(near).max((1, 2), initial=0), np.maximum(np.abs(low), np.abs(high)))
    if (reach << np.maximum(shift[:, 0], 0) >= 1 << 31).any():  # the shift would leave 32 bits
        return None
    around = FixedEnding(mul[..., None], shift[..., None]).codes(near, *bounds)
    if (around[..., 0] >= begins).any() or (around[..., -1] < begins).any():
        return None
    at = np.concatenate((near.reshape(low.size, -1), low[:, None], high[:, None]), axis=1)
    at = np.clip(at, low[:, None], high[:, None])
    want = FixedEnding(mul, shift).codes(at, *bounds)
    exact = np.ldexp(ending.mul.astype(np.float64), ending.shift.astype(np.int64) - 31)
    return _first_same(at, want, exact.astype(np.float32), bounds)


def _first_same(
    at: np.ndarray, want: np.ndarray, exact: np.ndarray, bounds: tuple[int, int, int]
) -> ScaleEnding | None:
    """Return scales next to `exact` that give the codes `want`[O, N] of the sums `at`."""
    scale, found = exact.copy(), np.zeros(exact.shape, bool)
    for steps in _STEPS:
        tried = exact + np.float32(steps) * np.spacing(exact)
        same = (requantize(at, np.broadcast_to(tried, len(at))[:, None], *bounds) == want).all(1)
        fits = (same if exact.size > 1 else same.all(keepdims=True)) & ~found
        scale[fits], found = tried[fits], found | fits
    return ScaleEnding(scale) if found.all() else None
