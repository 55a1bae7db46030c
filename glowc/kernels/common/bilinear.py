"""Variants of the bilinear interpolation of int8 codes: sums in integers on Thumb, in float32 over channels on vectors.

In integers an output is T / 2^F codes, F = 21, T = sum of W[i] * (q[i] - in_zp), W[i] = weight * ratio * 2^F with the
ratio in_scale / out_scale.
Both T and the float32 numbers of the definition are near the real number V = sum of weight * (q - in_zp) * ratio:

- W: weights are cut to 2^-31, and so is their product (3 units at most); times the factor, which is off by 2^-F / 4 at
  most, and cut: less than 1.4 units. |T - V * 2^F| < 4 * 255 * 1.4.
- float32: eight roundings at most on the way of a term (the weight, the code, their product, three sums, the quotient,
  the ratio here), each of 2^-24: |u - V| < 8.1 * 2^-24 * 255 * ratio, as weights sum to 1.

Both are less than 2^12 units for ratios up to 3.4: a fraction that is as far from a tie gives the code; the others are
computed in float32.
"""

from __future__ import annotations

from dataclasses import dataclass

from glowc.kernels.base import Prepared
from glowc.kernels.common.header_numbers import header_number
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_LARGEST = 3.4  # ratio of scales: (255 * 3.4 + 130) * 2^F < 2^31
_RANGE = 2.0**-6, 2.0**6  # of the ratio of scales
_SCALES = 2.0**-40, 2.0**40


def _ratio(instr: Instr) -> float:
    return float(instr.params["in_scale"]) / float(instr.params["out_scale"])


def _is_moderate(instr: Instr) -> bool:
    """Accept scales with which nothing in float32 is denormal, and ratios of a usual size."""
    scales = (float(instr.params[key]) for key in ("in_scale", "out_scale"))
    return all(_SCALES[0] < s < _SCALES[1] for s in scales) and _RANGE[0] < _ratio(instr) < _RANGE[1]


def _accepts(channels: int, instr: Instr) -> bool:
    return _is_moderate(instr) and int(instr.params["in_c"]) >= channels


def is_adjacent(channels: int, instr: Instr) -> bool:
    return _accepts(channels, instr) and int(instr.params["in_ch"]) == 1


def accepts_fixed(channels: int, instr: Instr) -> bool:
    return _accepts(channels, instr) and _ratio(instr) < _LARGEST


def accepts_codes(channels: int, instr: Instr) -> bool:
    """Accept adjacent channels, and the two values of `half` that quantised types have."""
    adjacent = int(instr.params["in_ch"]) == 1 and int(instr.params["in_c"]) >= channels
    return adjacent and int(instr.params["half"]) in (0, 128)


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedPlan(Plan):
    """`factor` of weights."""

    factor: int


def prepare_fixed(_: Arrays, instr: Instr) -> Prepared:
    """Return the plan of an interpolation in integers."""
    one = 1 << header_number("glow_thumb_bilinear.h", "GLOW_BILINEAR_SHIFT")  # 2^F
    return Prepared(plan=FixedPlan(factor=round(_ratio(instr) * 2 * one)))
