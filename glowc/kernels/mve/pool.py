"""Helium variants of pools, means and bilinear interpolation of codes, by adjacent channels
(runtime_c/mve/glow_mve_elementwise.h, glow_mve_pool.h, glow_mve_pool16.h, glow_mve_bilinear.h).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from glowc.graph.types import DType
from glowc.kernels.base import Prepared
from glowc.kernels.common.bilinear import accepts_codes, is_adjacent
from glowc.kernels.mve.shared import FAST, is_moderate
from glowc.kernels.shapes import Pool
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_MOST_TAPS = 255  # codes whose sum fits 16 bits
_MOST_WIDE_TAPS = 1 << 15  # codes of 16 bits less a zero point whose sum fits 32 bits
_MOST_WHOLE_TAPS = 127  # codes of 16 bits whose quotients by their number are that far from halves as floats
_LEAST_ROW = 4  # codes that fill half a vector
_CHANNELS = 4


def accepts_maximum(instr: Instr) -> bool:
    """Accept adjacent channels."""
    return instr.int_("in_ch") == 1


def accepts_average(instr: Instr) -> bool:
    """Accept windows whose sums fit 16 bits, or 32 of codes of 16 bits, and adjacent channels."""
    shape, is_wide = Pool.of(instr), instr.operand("in").type.dtype is DType.S16
    return shape.in_ch == 1 and shape.taps <= (_MOST_WIDE_TAPS if is_wide else _MOST_TAPS)


def accepts_whole_average(instr: Instr) -> bool:
    """Accept adjacent channels of 16-bit codes: floats err by less than 2^15 / 2^23, halves are 1 / (2 taps) away."""
    shape = Pool.of(instr)
    return shape.in_ch == 1 and shape.taps <= _MOST_WHOLE_TAPS


def accepts_real_average(instr: Instr) -> bool:
    """Accept adjacent channels, and scales whose quotients are exact."""
    scales = float(instr.params["in_scale"]), float(instr.params["out_scale"])
    return instr.int_("in_ch") == 1 and is_moderate(*scales)


def accepts_mean(instr: Instr) -> bool:
    """Accept rows that fill half a vector."""
    return instr.int_("inner") >= _LEAST_ROW


def accepts_wide_mean(instr: Instr) -> bool:
    """Accept the same of codes of 16 bits whose sums fit 32 bits, and a long one over adjacent codes."""
    is_row = instr.int_("inner") == 1 and instr.int_("n") >= 2 * _LEAST_ROW
    return (accepts_mean(instr) or is_row) and instr.int_("n") <= _MOST_WIDE_TAPS


def prepare_wide_mean(_: Arrays, instr: Instr) -> Prepared:
    """Choose by whether the codes that are summed are adjacent."""
    return Prepared(plan=Plan(path="row" if instr.int_("inner") == 1 else "columns"))


def accepts_fixed_mean(instr: Instr) -> bool:
    """Accept the same where sums are shifted to the right."""
    return accepts_mean(instr) and -31 <= instr.int_("shift") <= -1


_POOL = replace(FAST, header="glow_mve_elementwise.h")
_WIDE = replace(FAST, header="glow_mve_pool16.h")
_BILINEAR = replace(FAST, header="glow_mve_bilinear.h")

VARIANTS = {
    "avg_pool_s16": (replace(_WIDE, accepts=accepts_average),),
    "avg_pool_s16q31": (replace(FAST, accepts=accepts_whole_average, header="glow_mve_pool16_q31.h"),),
    "avg_pool_s16w": (replace(_WIDE, accepts=accepts_real_average),),
    "avg_pool_s8": (replace(_POOL, accepts=accepts_average),),
    "avg_pool_s8q31": (replace(FAST, accepts=accepts_average, header="glow_mve_pool_q31.h"),),
    "avg_pool_s8w": (replace(FAST, accepts=accepts_real_average, header="glow_mve_pool.h"),),
    "bilinear_codes_s8": (replace(_BILINEAR, accepts=partial(accepts_codes, _CHANNELS)),),
    "bilinear_s8": (replace(_BILINEAR, accepts=partial(is_adjacent, _CHANNELS)),),
    "max_pool_s16": (replace(_WIDE, accepts=accepts_maximum),),
    "max_pool_s8": (replace(_POOL, accepts=accepts_maximum),),
    "reduce_mean_s16": (
        replace(_WIDE, accepts=accepts_wide_mean, prepare=prepare_wide_mean, template="reduce_mean_s16"),
    ),
    "reduce_mean_s8": (replace(_POOL, accepts=accepts_mean),),
    "reduce_mean_s8q31": (replace(FAST, accepts=accepts_fixed_mean, header="glow_mve_pool_q31.h"),),
}
