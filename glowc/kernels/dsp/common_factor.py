"""One factor for all outputs of a fully connected layer: four words in front of its stream, none in its blocks.

Layers whose weights have one scale have it. The words are mul, end, more, places:
  short  code = saturate(((256 sum + more) mul >> 32) + end >> places), proved for the layer where it is taken;
  exact  code = saturate((2 sum mul + 2^31 >> 32) - (sum < 0) + end >> places - EXACT), TensorFlow Lite's rounding.
Codes never fall where the sum rises: two forms are the same for all sums if they are so on both sides of each step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from glowc.graph.fixed_point import multiplier
from glowc.kernels.dsp.ends import Ends
from glowc.program.ir import Instr

LEAD = 4
"""Words in front of the blocks."""
EXACT = 256
"""Of places: instructions that shift see the lowest byte."""

SHORT, LONG = 8, 12
"""Places of short forms."""
_MOST_SUM = 1 << 23
_MOST_PLACES = 22  # sums of 24 bits and a zero point of eight stay in 32
_NEAR_MUL = sorted(range(-4, 5), key=abs)
_NEAR_END = np.array(sorted(range(-16, 17), key=abs))


@dataclass(frozen=True, slots=True)
class CommonFactor:
    """What the words in front of a stream say."""

    mul: int
    end: int
    more: int
    places: int

    @property
    def words(self) -> np.ndarray:
        """The words, int32[4]."""
        return np.array([self.mul, self.end, self.more, self.places], np.int32)

    def codes(self, sums: np.ndarray) -> np.ndarray:
        """Return the codes of int64 sums."""
        if self.places < EXACT:
            y = ((256 * sums + self.more) * self.mul >> 32) + self.end >> self.places
        else:
            y = ((2 * sums * self.mul + (1 << 31)) >> 32) - (sums < 0) + self.end >> self.places - EXACT
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


Search = Callable[[float, int, Steps], CommonFactor | None]
"""Returns what stands for a factor and a zero point, of which the steps are given."""


def short(factor: float, zero_point: int, steps: Steps) -> CommonFactor | None:
    """Return a short form of 8 places that has the steps."""
    return _near(factor, zero_point, steps, SHORT)


def short_or_long(factor: float, zero_point: int, steps: Steps) -> CommonFactor | None:
    """Return a short form of 8 places, or of 12, which tell smaller factors apart."""
    return short(factor, zero_point, steps) or _near(factor, zero_point, steps, LONG)


def short_or_exact(factor: float, zero_point: int, steps: Steps) -> CommonFactor | None:
    """Return a short form of 8 places, or else TensorFlow Lite's, whose steps they are."""
    mul, shift = multiplier(factor)
    found = short(factor, zero_point, steps)
    if found is not None or -shift > _MOST_PLACES:
        return found
    return CommonFactor(mul, (zero_point << -shift) + (1 << -shift - 1), 0, EXACT - shift)


def _near(factor: float, zero_point: int, steps: Steps, places: int) -> CommonFactor | None:
    """Try multipliers and ends next to those of the real factor, and what is added to sums with each."""
    ends = (zero_point << places) + (1 << places - 1) + _NEAR_END
    reached = (steps.codes << places) - ends[:, None] << 32
    for near in _NEAR_MUL:
        mul = int(factor * 2.0 ** (24 + places)) + near
        if 0 < mul < 1 << 31:
            least = -(-reached // mul) - 256 * steps.sums  # with so much more a step is reached, with 256 too early
            low, high = np.maximum(0, least.max(1)), np.minimum(255, least.min(1) + 255)
            for n in np.flatnonzero(low <= high)[:1].tolist():
                return CommonFactor(mul, int(ends[n]), int(low[n] + high[n]) // 2, places)
    return None


def common_factor(ends: Ends, sums: tuple[int, int], instr: Instr, search: Search) -> CommonFactor | None:
    """Return what stands for the endings of all channels, whose sums lie between two, if they have one factor.

    Sums, times 256, must fit 32 bits.
    """

    def limited(codes: np.ndarray) -> np.ndarray:
        return np.asarray(np.clip(codes, instr.int_("out_min"), instr.int_("out_max")))

    factor = ends.factor
    if not 0 < factor < 0.5 or max(-sums[0], sums[1]) >= _MOST_SUM:
        return None
    one = ends.first
    steps = Steps.of(lambda x: one.codes(x, instr), *sums)
    found = search(factor, instr.int_("out_zp"), steps) if steps.codes.size else None
    sides = np.concatenate((sums, steps.sums - 1, steps.sums))
    return found if found is not None and np.array_equal(limited(found.codes(sides)), one.codes(sides, instr)) else None
