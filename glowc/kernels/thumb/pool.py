"""Averages and maxima of int8 codes for cores without FPU and DSP (runtime_c/thumb/glow_thumb_pool.h), and bilinear
interpolation in integers for those without FPU (runtime_c/glow_thumb_bilinear.h).

Averages are integer sums and one product a code; maxima of small windows are those of words of four codes.

avg_pool_s8w is defined by float32 sums in the order of the window. They differ from the exact average, in codes, by
less than (taps + 6) * 2^-24 of the largest average, and the code by 2^-15 more: what is that near to a tie is computed
by the definition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.common.bilinear import accepts_fixed, prepare_fixed
from glowc.kernels.common.header_numbers import header_number
from glowc.kernels.shapes import Pool
from glowc.kernels.thumb.fold import near_tie
from glowc.kernels.thumb.forms import HEADER, both
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_EXACT_SUM = 1 << 24
_MOST_TAPS = 9
_SPAN = 255  # of a code without its zero point
_QUOTIENTS = 5  # sums that take as long as what follows them, by the definition
_RARE = 1 << 27  # one part in 16, in 2^-32


def _taps(instr: Instr) -> int:
    return instr.int_("k_h") * instr.int_("k_w") if "k_h" in instr.params else instr.int_("n")


def _scale(instr: Instr) -> float:
    """Return what a sum is multiplied by; of averages over a window that is whole."""
    p = instr.params
    return float(p["scale"]) if "scale" in p else float(p["in_scale"]) / (float(p["out_scale"]) * _taps(instr))


def _near(instr: Instr) -> int:
    """Return how near to a tie, in 2^-32, codes may be misjudged."""
    taps = _taps(instr)
    near = near_tie(_SPAN * taps)
    if "half" not in instr.params:
        return near
    largest = _SPAN * float(instr.params["in_scale"]) / float(instr.params["out_scale"])
    return near + int((taps + 6) * largest * 256) + (1 << 17) + 1


def _accepts(instr: Instr) -> bool:
    """Accept exact sums, and adjacent channels in windows whose rows have room."""
    rows = header_number("glow_thumb_pool.h", "GLOW_THUMB_POOL_ROWS")
    window = "k_h" not in instr.params or (instr.int_("in_ch") == 1 and instr.int_("k_h") <= rows)
    return window and _SPAN * _taps(instr) <= _EXACT_SUM and _near(instr) < _RARE


@dataclass(frozen=True, slots=True, kw_only=True)
class AveragePlan(Plan):
    """`near`: how near to a tie, in 2^-32, codes are computed by the definition, in float32 (`real`) or integers."""

    near: int
    real: bool

    def work(self, instr: Instr) -> Mapping[str, float]:
        """Count the sums in float of outputs that are as near to a tie, of inputs that have any code."""
        taps, outputs = _taps(instr), instr.operand("out").type.elements
        fractions = np.arange(_SPAN * taps + 1) * _scale(instr) % 1.0
        share = float(np.mean(np.abs(fractions - 0.5) * 2.0**32 <= self.near))
        return {"tie_sums": outputs * share * ((taps if self.real else 0) + _QUOTIENTS)}


def prepare(_: Arrays, instr: Instr) -> Prepared:
    """Return the plan of an average."""
    return Prepared(plan=AveragePlan(near=_near(instr), real="half" in instr.params))


def _accepts_maximum(instr: Instr) -> bool:
    """Accept windows of at most nine positions that all lie inside, at least four adjacent channels."""
    if instr.int_("in_ch") != 1 or instr.int_("in_c") < 4 or _taps(instr) > _MOST_TAPS:
        return False
    for axis, pads in (("h", ("pad_top", "pad_bottom")), ("w", ("pad_left", "pad_right"))):
        last = (instr.int_(f"out_{axis}") - 1) * instr.int_(f"stride_{axis}")
        span = (instr.int_(f"k_{axis}") - 1) * instr.int_(f"dil_{axis}")
        if any(instr.int_(pad) for pad in pads) or last + span >= instr.int_(f"in_{axis}"):
            return False
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class MaximumPlan(Plan):
    """The window, whose positions are printed one by one."""

    k_h: int
    k_w: int

    @property
    def others(self) -> tuple[tuple[int, int], ...]:
        """The row and column of all positions but the first."""
        return tuple((ky, kx) for ky in range(self.k_h) for kx in range(self.k_w))[1:]


def prepare_maximum(_: Arrays, instr: Instr) -> Prepared:
    """Return the plan of a maximum."""
    shape = Pool.of(instr)
    return Prepared(plan=MaximumPlan(k_h=shape.k_h, k_w=shape.k_w))


AVERAGE = both(KernelVariant("v7m", rank=5, header=HEADER, accepts=_accepts, prepare=prepare))
MAXIMUM = replace(AVERAGE[0], accepts=_accepts_maximum, prepare=prepare_maximum)
BILINEAR = KernelVariant(
    "soft", also=frozenset({"thumb"}), rank=5, header="glow_thumb_bilinear.h",
    template="common/bilinear_fixed", prepare=prepare_fixed, accepts=partial(accepts_fixed, 1),
)  # fmt: skip

VARIANTS = {
    "avg_pool_s8": AVERAGE,
    "avg_pool_s8w": AVERAGE,
    "bilinear_s8": (BILINEAR,),
    "max_pool_s8": (MAXIMUM,),
    "reduce_mean_s8": AVERAGE,
}
