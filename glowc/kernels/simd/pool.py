"""Averages and maxima of windows, means, and bilinear interpolation of int8 codes, on A64 and A32
(runtime_c/simd/glow_neon_codes.h, glow_neon_codes16.h, glow_neon_bilinear.h).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from glowc.graph.types import DType
from glowc.kernels.base import Prepared
from glowc.kernels.common.bilinear import accepts_codes, is_adjacent
from glowc.kernels.common.factors import is_right_shift
from glowc.kernels.shapes import Pool
from glowc.kernels.simd.core import CORES, CorePlan, both
from glowc.kernels.simd.elementwise import CODES, LEAST, is_normal
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_MOST_TAPS = 1 << 15  # codes of 16 bits less a zero point
_WIDE_CHANNELS = 16  # of int8, which one load has
_MOST_WHOLE_TAPS = {DType.S8: 255, DType.S16: 127}  # sums fit 16 bits; quotients are that far from halves as floats


@dataclass(frozen=True, slots=True, kw_only=True)
class AveragePlan(CorePlan):
    """`odd`: the zero point of the output is odd."""

    odd: bool


def _is_inside(s: Pool) -> bool:
    """Say whether windows never leave the input."""
    spans = (
        (s.out_h - 1) * s.stride_h + (s.k_h - 1) * s.dil_h < s.in_h,
        (s.out_w - 1) * s.stride_w + (s.k_w - 1) * s.dil_w < s.in_w,
    )
    return not any((s.pad_top, s.pad_left, s.pad_bottom, s.pad_right)) and all(spans)


def _accepts_average(instr: Instr) -> bool:
    """Accept windows that never leave the input and hold at most 255 positions of at least eight channels."""
    s = Pool.of(instr)
    return _is_inside(s) and s.in_c >= LEAST and s.in_ch == 1 and s.taps <= 255


def _prepare_average(_: Arrays, instr: Instr, *, a32: bool) -> Prepared:
    return Prepared(plan=AveragePlan(a32=a32, odd=instr.int_("out_zp") % 2 == 1))


def _accepts_whole_average(instr: Instr) -> bool:
    """Accept windows of at least eight adjacent channels; see `glow_neon_no_half`.

    A quotient by n positions is 1 / (2 n) or more from a half; the float32 product by 1 / n errs by less than 2^-23 of
    it, which is at most 2^15.
    """
    s = Pool.of(instr)
    return s.in_c >= LEAST and s.in_ch == 1 and s.taps <= _MOST_WHOLE_TAPS[instr.operand("in").type.dtype]


def _prepare_whole_average(_: Arrays, instr: Instr) -> Prepared:
    wide = instr.operand("in").type.dtype is DType.S8 and instr.int_("in_c") >= _WIDE_CHANNELS
    return Prepared(plan=Plan(path="wide" if wide else ""))


def _accepts_real_average(instr: Instr) -> bool:
    """Accept eight adjacent channels."""
    adjacent = instr.int_("in_ch") == 1 and instr.int_("in_c") >= LEAST
    return adjacent and is_normal(instr, "in_scale", "out_scale")


def _accepts_wide_average(instr: Instr) -> bool:
    """Accept windows of codes of 16 bits whose sums fit 32 bits, of at least eight adjacent channels."""
    s = Pool.of(instr)
    return s.in_c >= LEAST and s.in_ch == 1 and s.taps <= _MOST_TAPS


def _accepts_maximum(instr: Instr) -> bool:
    """Accept half a vector of adjacent channels."""
    least = LEAST if instr.operand("in").type.dtype is DType.S8 else LEAST // 2
    return instr.int_("in_ch") == 1 and instr.int_("in_c") >= least


def _accepts_floats(instr: Instr) -> bool:
    """Accept four adjacent channels."""
    return instr.int_("in_ch") == 1 and instr.int_("in_c") >= 4


def _accepts_mean(instr: Instr) -> bool:
    """Accept eight adjacent sums, or a long one over adjacent codes."""
    return instr.int_("inner") >= LEAST or (instr.int_("inner") == 1 and instr.int_("n") >= 2 * LEAST)


def _accepts_wide_mean(instr: Instr) -> bool:
    """Accept the same of codes of 16 bits whose sums fit 32 bits."""
    return _accepts_mean(instr) and instr.int_("n") <= _MOST_TAPS


def _prepare_mean(_: Arrays, instr: Instr) -> Prepared:
    return Prepared(plan=Plan(path="row" if instr.int_("inner") == 1 else "columns"))


def _accepts_fixed_mean(instr: Instr) -> bool:
    """Accept the same where sums are shifted to the right."""
    return _accepts_mean(instr) and is_right_shift(instr)


AVERAGE = tuple(
    replace(v, accepts=_accepts_average, prepare=partial(_prepare_average, a32=CORES[v.isa].a32), header=header)
    for v, header in zip(both(CODES), ("glow_neon.h", "glow_a32.h"), strict=True)
)

_WIDE = replace(CODES, header="glow_neon_codes16.h")
_WHOLE = both(replace(_WIDE, accepts=_accepts_whole_average, prepare=_prepare_whole_average))
_BILINEAR = replace(CODES, header="glow_neon_bilinear.h")

VARIANTS = {
    "avg_pool_f32": both(replace(CODES, accepts=_accepts_floats)),
    "avg_pool_s16": both(replace(_WIDE, accepts=_accepts_wide_average, template="avg_pool_s16")),
    "avg_pool_s16q31": _WHOLE,
    "avg_pool_s16w": both(replace(_WIDE, accepts=_accepts_real_average)),
    "avg_pool_s8": AVERAGE,
    "avg_pool_s8q31": _WHOLE,
    "avg_pool_s8w": both(replace(CODES, accepts=_accepts_real_average)),
    "bilinear_codes_s8": both(replace(_BILINEAR, accepts=partial(accepts_codes, LEAST))),
    "bilinear_s8": both(replace(_BILINEAR, accepts=partial(is_adjacent, LEAST))),
    "max_pool_f32": both(replace(CODES, accepts=_accepts_floats)),
    "max_pool_s16": both(replace(CODES, accepts=_accepts_maximum, header="glow_neon_f32.h")),
    "max_pool_s8": both(replace(CODES, accepts=_accepts_maximum, header="glow_neon_f32.h")),
    "reduce_mean_s16": both(
        replace(_WIDE, accepts=_accepts_wide_mean, prepare=_prepare_mean, template="reduce_mean_s16")
    ),
    "reduce_mean_s8": both(replace(CODES, accepts=_accepts_mean, prepare=_prepare_mean)),
    "reduce_mean_s8q31": both(
        replace(CODES, accepts=_accepts_fixed_mean, prepare=_prepare_mean, header="glow_neon_q31.h")
    ),
}
