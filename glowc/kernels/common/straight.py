"""Endings of sums as one multiplication in integers, a straight line, where every code is proved to be that of the
definition: a float32 scale, or TensorFlow Lite's multiplier and shift.

The code is floor((sum 2^shift + offset) mul / 2^(product + fraction) + 1/2), or the same without the half, which is in
the offset then; the zero point is added to it or in the offset, too. It rises with the sum as the definition does: both
agree everywhere when they step to each code at the same sum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowc.graph.fixed_point import scaled
from glowc.kernels.common.factors import Ends

_WORD = 1 << 31
_EXACT = 1 << 24  # sums below are exact in float32
_TURN = 2.0**-16  # of multipliers that are tried from that of the factor, relative to it
_NEVER = 1 << 62  # beyond sums and what codes need
_NEAR = np.arange(-4, 6)  # sums around the estimate of a step

Span = tuple[np.ndarray, np.ndarray]
"""The least and the greatest of each channel, int64[C]."""


@dataclass(frozen=True, slots=True)
class Line:
    """How a core computes it: bits by which sums are shifted to the left, those of the product that fall away at once
    (31 or 32), and those of what is left that are fractions. The zero point is `added` to that, or it is in the offset.
    So is a half, unless the last shift rounds `halves` up.
    """

    shift: int
    product: int
    fraction: int
    added: bool
    halves: bool = True


@dataclass(frozen=True, slots=True)
class Straight:
    """`offset` and `mul`, int64[C], of the channels where they are `found`, bool[C]."""

    offset: np.ndarray
    mul: np.ndarray
    found: np.ndarray


def straight(line: Line, ends: Ends, sums: Span, zp: int, bounds: tuple[int, int]) -> Straight:
    """Search the line of each channel, for all `sums` that it can have and codes between two bounds."""
    low, high = sums
    exact = ends.factors * 2.0 ** (line.product + line.fraction - line.shift)
    exact = np.where(low == high, np.clip(exact, 4, _WORD - _EXACT), exact)  # any gives a constant its code
    possible = (exact >= 4) & (exact <= _WORD - _EXACT) & (np.maximum(-low, high) < _EXACT)
    codes = np.arange(bounds[0] + 1, bounds[1] + 1)
    steps = _steps(codes - zp, ends, sums)
    offset, mul, found = np.zeros(low.size, np.int64), np.zeros(low.size, np.int64), np.zeros(low.size, bool)
    for chosen in (_rounded, _narrowest):
        some = np.flatnonzero(possible & ~found)
        span = low[some], high[some]
        offsets = _Offsets.of(line, codes, zp, steps[some], span)
        tried = chosen(exact[some], offsets)
        least, most = offsets(tried)
        middle = (least + most) // 2
        reach = np.stack(span) * (1 << line.shift) + middle
        fits = (least <= most) & (np.abs(reach) < _WORD).all(0)
        offset[some], mul[some], found[some] = middle, tried, fits
    return Straight(offset, mul, found)


def _rounded(exact: np.ndarray, _: _Offsets) -> np.ndarray:
    """Return the multipliers of the factors."""
    return np.asarray(np.rint(exact), np.int64)


def _narrowest(exact: np.ndarray, offsets: _Offsets) -> np.ndarray:
    """Return the multipliers near those of the factors that leave most room for an offset, or lack least of it.

    What is lacking is the greatest of lines in 1 / mul less the least of others: it falls, then rises.
    """
    low = np.maximum(np.floor(exact * (1 - _TURN)), 1).astype(np.int64)
    high = np.ceil(exact * (1 + _TURN)).astype(np.int64) + 1
    while (high - low > 2).any():
        middle = (low + high) // 2
        grows = offsets.room_grows(middle)
        low, high = np.where(grows, middle, low), np.where(grows, high, middle)
    around = low + np.arange(3)[:, None]
    best = np.stack([np.subtract(*offsets(mul)) for mul in around]).argmin(0)
    return np.asarray(low + best)


def _codes(ends: Ends, near: np.ndarray) -> np.ndarray:
    """Return the codes, less the zero point, of sums near[C, ...] by the definition."""
    shape = (-1, *[1] * (near.ndim - 1))
    if ends.shifts is None:
        return np.asarray(np.rint(near.astype(np.float32) * ends.words.view(np.float32).reshape(shape)))
    return scaled(near, ends.words.astype(np.int64).reshape(shape), ends.shifts.reshape(shape))


def _steps(codes: np.ndarray, ends: Ends, sums: Span) -> np.ndarray:
    """Return the least sums [C, codes] whose code is at least that; outside of `sums` any outside."""
    low, high = (end[:, None].astype(np.float64) for end in sums)
    factors = np.where(ends.factors > 0, ends.factors, 1.0)[:, None]
    estimate = np.clip(np.floor((codes - 0.5) / factors), low - 8, high + 8)
    near = estimate.astype(np.int64)[..., None] + _NEAR
    return np.asarray(near[..., 0] + (_codes(ends, near) >= codes[:, None]).argmax(-1))


@dataclass(frozen=True, slots=True)
class _Offsets:
    """The offsets with which sums step to each code where they should, by what they are multiplied with.

    Each is what the code needs, over the multiplier and rounded up, less a sum: what is needed has the other sign here,
    so that one division rounds it.
    """

    codes: np.ndarray  # what a step to each code needs, times the multiplier, less its sign: [codes]
    reached: np.ndarray  # the least sums that have to reach each code [C, codes]: none, where _NEVER
    missed: np.ndarray  # the greatest sums that must not: none, where -_NEVER

    @staticmethod
    def of(line: Line, codes: np.ndarray, zp: int, steps: np.ndarray, sums: Span) -> _Offsets:
        """Prepare the search for channels whose `sums` step to each of the codes at `steps` [C, codes].

        A further code is no farther than one sum from what the code 0 needs.
        """
        low, high = (end[:, None] for end in sums)
        one, added, half = 1 << line.shift, zp if line.added else 0, line.product + line.fraction - 1
        reached = np.where(steps <= high, np.maximum(steps, low) * one, _NEVER)
        missed = np.where(steps > low, np.minimum(steps - 1, high) * one, -_NEVER)
        below = 1 if line.halves else 0
        needs = np.append(below - 2 * (codes - added), below - 1 - 2 * (zp - added)) << half
        last = np.full((low.size, 1), one + 1)
        return _Offsets(needs, np.hstack((reached, last)), np.hstack((missed, -last)))

    def __call__(self, mul: np.ndarray) -> Span:
        """Return the least and the greatest offset of each channel, for its multiplier."""
        spare = self.codes // mul[:, None]
        return -(spare + self.reached).min(1), -(spare + self.missed).max(1) - 1

    def room_grows(self, mul: np.ndarray) -> np.ndarray:
        """Say of each channel whether a greater multiplier has more room between the two, bool[C]."""
        spare = self.codes // mul[:, None]
        least, most = (spare + self.reached).argmin(1), (spare + self.missed).argmax(1)
        return np.asarray(self.codes[least] < self.codes[most])
