"""Pools and means of codes, four channels at a time (glow_dsp.h, glow_dsp_codes.h, glow_dsp_codes16.h), and bilinear
interpolation in integers, beside an FPU (runtime_c/glow_thumb_bilinear.h).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.common.bilinear import accepts_fixed, prepare_fixed
from glowc.kernels.dsp.forms import GROUP
from glowc.kernels.dsp.needs import FPU
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_LEAST = 8  # codes for which a loop over words pays
_LEAST_CHANNELS = 6  # where the integer weights of a pixel pay off beside an FPU
_MOST_WIDE_TAPS = 1 << 15  # codes of 16 bits less a zero point


def accepts_average(instr: Instr) -> bool:
    """Accept windows whose sums fit halfwords, and adjacent channels."""
    return instr.int_("k_h") * instr.int_("k_w") <= 255 and instr.int_("in_ch") == 1 and instr.int_("in_c") >= GROUP


def _accepts_pool(instr: Instr) -> bool:
    """Accept adjacent channels, at least four."""
    return instr.int_("in_ch") == 1 and instr.int_("in_c") >= 4


def _accepts_wide_average(instr: Instr) -> bool:
    """Accept the same with windows of codes of 16 bits whose sums fit 32 bits."""
    return _accepts_pool(instr) and instr.int_("k_h") * instr.int_("k_w") <= _MOST_WIDE_TAPS


def _accepts_mean(instr: Instr) -> bool:
    """Accept four adjacent sums, or a long one over adjacent codes."""
    return instr.int_("inner") >= 4 or (instr.int_("inner") == 1 and instr.int_("n") >= _LEAST)


def _accepts_wide_mean(instr: Instr) -> bool:
    """Accept the same of codes of 16 bits whose sums fit 32 bits."""
    return _accepts_mean(instr) and instr.int_("n") <= _MOST_WIDE_TAPS


def prepare_mean(_: Arrays, instr: Instr) -> Prepared:
    """Choose by whether the codes that are summed are adjacent."""
    return Prepared(plan=Plan(path="row" if instr.int_("inner") == 1 else "columns"))


_CODES = KernelVariant("dsp", also=FPU, rank=10, header="glow_dsp_codes.h")
AVERAGE = replace(_CODES, accepts=accepts_average)
MEAN = replace(_CODES, accepts=_accepts_mean, prepare=prepare_mean)
AVERAGE_REAL = replace(_CODES, accepts=_accepts_pool)
MAXIMUM = replace(AVERAGE_REAL, also=frozenset())

_WIDE = replace(AVERAGE_REAL, header="glow_dsp_codes16.h")
_FIXED = "glow_dsp_codes_q31.h"
BILINEAR = KernelVariant(
    "dsp", also=FPU, rank=5, header="glow_thumb_bilinear.h", template="common/bilinear_fixed",
    prepare=prepare_fixed, accepts=partial(accepts_fixed, _LEAST_CHANNELS),
)  # fmt: skip

VARIANTS = {
    "avg_pool_s16": (replace(_WIDE, accepts=_accepts_wide_average, template="avg_pool_s16"),),
    "avg_pool_s16q31": (replace(_WIDE, also=frozenset(), accepts=_accepts_wide_average),),
    "avg_pool_s16w": (_WIDE,),
    "avg_pool_s8": (AVERAGE,),
    "avg_pool_s8q31": (replace(AVERAGE, also=frozenset()),),
    "avg_pool_s8w": (AVERAGE_REAL,),
    "bilinear_s8": (BILINEAR,),
    "max_pool_s16": (replace(_WIDE, also=frozenset()),),
    "max_pool_s8": (MAXIMUM,),
    "reduce_mean_s16": (
        replace(MEAN, accepts=_accepts_wide_mean, header="glow_dsp_codes16.h", template="reduce_mean_s16"),
    ),
    "reduce_mean_s8": (MEAN,),
    "reduce_mean_s8q31": (replace(MEAN, also=frozenset(), header=_FIXED),),
}
