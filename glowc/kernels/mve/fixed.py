"""Endings of depthwise layers on Helium by one multiplication in integers, where every code is proved to be that of the
definition (GLOW_MVE_DW_FIXED in runtime_c/mve/glow_mve_dw.h).

The code is floor((floor((sum * 2^11 + offset) * mul / 2^31) + 2^15) / 2^16). It rises with the sum as the definition
does: both agree everywhere when they step to each code at the same sum.
"""

from __future__ import annotations

import numpy as np

from glowc.graph.fixed_point import scaled
from glowc.kernels.common.factors import Ends
from glowc.kernels.common.header_numbers import header_number

_WORD = 1 << 31
_EXACT = 1 << 24  # sums below are exact in float32
_TRIED, _TURN = sorted(range(-24, 25), key=abs), 2.0**-25  # multipliers besides that of the scale
_NEAR = np.arange(-4, 6)  # sums around the estimate of a step

Span = tuple[np.ndarray, np.ndarray]  # least and greatest sums, int64[C]


def _codes(ends: Ends, near: np.ndarray) -> np.ndarray:
    """Return the codes, less the zero point, of sums near[C, ...] by the definition."""
    shape = (-1, *[1] * (near.ndim - 1))
    if ends.shifts is None:
        return np.asarray(np.rint(near.astype(np.float32) * ends.words.view(np.float32).reshape(shape)))
    return scaled(near, ends.words.astype(np.int64).reshape(shape), ends.shifts.reshape(shape))


def _ending() -> tuple[int, int]:
    """Return by how many bits sums are shifted to the left, and how many of their products are fractions."""
    shift, fraction = (header_number("glow_mve_dw.h", f"GLOW_MVE_DW_{name}") for name in ("SHIFT", "FRACTION"))
    return shift, fraction


def fixed_form(
    weights: np.ndarray, bias: np.ndarray, ends: Ends, zp: int, bounds: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return (offset, mul) int32[C] for weights[taps, C] and inputs of -128 to 127; None when a channel has none."""
    extremes = np.stack([weights.astype(np.int64) * x for x in (-128, 127)])
    low, high = bias + extremes.min(0).sum(0), bias + extremes.max(0).sum(0)
    shift, fraction = _ending()
    exact = ends.factors * 2.0 ** (31 + fraction - shift)
    if exact.min() < 4 or exact.max() > _WORD - _EXACT or max(-low.min(), high.max()) >= _EXACT:
        return None
    codes = np.arange(bounds[0] + 1, bounds[1] + 1)
    steps = _steps(codes - zp, ends, (low, high))
    offset, mul, found = np.zeros_like(low), np.zeros_like(low), np.zeros(low.size, bool)
    for more in _TRIED:
        factor = np.rint(exact * (1 + more * _TURN)).astype(np.int64)
        least, most = _offsets(codes, zp, factor, steps, (low, high))
        middle = (least + most) // 2
        reach = np.stack((low, high)) * (1 << shift) + middle
        fits = (least <= most) & (np.abs(reach) < _WORD).all(0) & ~found
        offset[fits], mul[fits], found = middle[fits], factor[fits], found | fits
        if found.all():
            return (bias.astype(np.int64) * (1 << shift) + offset).astype(np.int32), mul.astype(np.int32)
    return None


def _steps(codes: np.ndarray, ends: Ends, span: Span) -> np.ndarray:
    """Return the least sums [C, codes] whose code is at least that; outside of `span` any outside."""
    low, high = (end[:, None].astype(np.float64) for end in span)
    estimate = np.clip(np.floor((codes - 0.5) / ends.factors[:, None]), low - 8, high + 8)
    near = estimate.astype(np.int64)[..., None] + _NEAR
    return np.asarray(near[..., 0] + (_codes(ends, near) >= codes[:, None]).argmax(-1))


def _offsets(codes: np.ndarray, zp: int, mul: np.ndarray, steps: np.ndarray, span: Span) -> Span:
    """Return the least and the greatest offsets with which sums step to each code where they should."""
    shift, fraction = _ending()
    low, high = (end[:, None] for end in span)
    needed = -(-(((2 * codes - 1) << fraction - 1) * _WORD) // mul[:, None])
    zero = (zp << fraction) * _WORD // mul
    reached, missed = np.maximum(steps, low) * (1 << shift), np.minimum(steps - 1, high) * (1 << shift)
    free = (zero - (1 << shift))[:, None], (zero + (1 << shift))[:, None]
    least = np.where(steps <= high, needed - reached, free[0])
    most = np.where(steps > low, needed - 1 - missed, free[1])
    return np.concatenate((least, free[0]), axis=1).max(1), np.concatenate((most, free[1]), axis=1).min(1)
