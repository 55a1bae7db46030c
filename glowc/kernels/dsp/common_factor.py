"""One factor for all outputs of a fully connected layer: four words in front of its stream, none in its blocks.

Layers of TensorFlow Lite whose weights have one scale have it. The words are mul, end, more, places:
  places 0: code = saturate(((256 sum + more) mul + 2^31 >> 32) + end >> 8), proved for the layer where it is taken;
  else      code = saturate((2 sum mul + 2^31 >> 32) - (sum < 0) + end >> places), TensorFlow Lite's rounding.
Both only rise with the sum: they are equal for all sums if they are on both sides of each step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from glowc.graph.fixed_point import scaled
from glowc.program.ir import Instr

LEAD = 4
"""Words in front of the blocks."""

_MOST_SUM = 1 << 23
_MOST_PLACES = 22  # sums of 24 bits and a zero point of eight stay in 32
_TRIES = (0, *(sign * step for step in range(1, 9) for sign in (1, -1)))


@dataclass(frozen=True, slots=True)
class CommonFactor:
    """What the words in front of a stream say."""

    mul: int
    end: int
    more: int = 0
    places: int = 0

    @property
    def words(self) -> np.ndarray:
        """The words, int32[4]."""
        return np.array([self.mul, self.end, self.more, self.places], np.int32)

    def codes(self, sums: np.ndarray) -> np.ndarray:
        """Return the codes of int64 sums."""
        if self.places == 0:
            y = (((256 * sums + self.more) * self.mul + (1 << 31)) >> 32) + self.end >> 8
        else:
            y = ((2 * sums * self.mul + (1 << 31)) >> 32) - (sums < 0) + self.end >> self.places
        return np.asarray(np.clip(y, -128, 127))


@dataclass(frozen=True, slots=True)
class Steps:
    """Codes as they rise with the sum: the least sum of each but that of the least sum."""

    codes: np.ndarray
    sums: np.ndarray

    @staticmethod
    def of(code: Callable[[np.ndarray], np.ndarray], low: int, high: int) -> Steps:
        """Find those of sums in [low, high] by bisection."""
        first, last = code(np.asarray([low, high], np.int64)).tolist()
        codes = np.arange(first + 1, last + 1, dtype=np.int64)
        below, sums = np.full(codes.shape, low, np.int64), np.full(codes.shape, high, np.int64)
        while (sums - below > 1).any():
            middle = (below + sums) // 2
            reached = code(middle) >= codes
            below, sums = np.where(reached, below, middle), np.where(reached, middle, sums)
        return Steps(codes, sums)


Search = Callable[[int, int, int, Steps], CommonFactor | None]
"""Returns what stands for a multiplier, a shift and a zero point, of which the steps are given."""


def short(mul: int, shift: int, zero_point: int, steps: Steps) -> CommonFactor | None:
    """Return one of 0 places with the steps given: as a rule where codes are rectified, for halves round up there."""
    end = 256 * zero_point + 128
    reached = ((256 * steps.codes - end) << 32) - (1 << 31)
    for more_or_less in _TRIES:
        near = (mul << 1 >> -shift) + more_or_less
        if 0 < near < 1 << 31:
            least = -(-reached // near) - 256 * steps.sums  # with so much more a step is reached, with 256 too early
            low, high = max(0, int(least.max())), min(255, int(least.min()) + 255)
            if low <= high:
                return CommonFactor(near, end, (low + high) // 2)
    return None


def exact(mul: int, shift: int, zero_point: int, steps: Steps) -> CommonFactor | None:
    """Return a short one, or else the definition, whose steps they are."""
    found = short(mul, shift, zero_point, steps)
    if found is not None or -shift > _MOST_PLACES:
        return found
    return CommonFactor(mul, (zero_point << -shift) + (1 << -shift - 1), places=-shift)


def common_factor(
    mul: np.ndarray, shift: np.ndarray, sums: tuple[int, int], instr: Instr, search: Search
) -> CommonFactor | None:  # fmt: skip
    """Return what stands for the factors [O] of all outputs, whose sums lie between two, if one does for all.

    Sums, times 256, must fit 32 bits.
    """

    def limited(codes: np.ndarray) -> np.ndarray:
        return np.asarray(np.clip(codes, instr.int_("out_min"), instr.int_("out_max")))

    def code(x: np.ndarray) -> np.ndarray:
        return limited(scaled(x, int(mul[0]), int(shift[0])) + instr.int_("out_zp"))

    if (mul != mul[0]).any() or (shift != shift[0]).any() or max(-sums[0], sums[1]) >= _MOST_SUM:
        return None
    steps = Steps.of(code, *sums)
    if steps.codes.size == 0:
        return None
    found = search(int(mul[0]), int(shift[0]), instr.int_("out_zp"), steps)
    sides = np.concatenate((sums, steps.sums - 1, steps.sums))
    return found if found is not None and np.array_equal(limited(found.codes(sides)), code(sides)) else None
