"""The `dsp` variants of kernels that turn codes into codes or reals, one by one or by rows (glow_dsp_codes.h,
glow_dsp_codes16.h); codes of 8 bits to codes of 16 and back by SMLAW and SSAT (glow_dsp_widths.h).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.common.factors import is_right_shift
from glowc.kernels.common.rows import are_centred
from glowc.kernels.common.widths import accepts_widths, prepare_widths
from glowc.kernels.dsp.needs import FPU
from glowc.kernels.features import Stated
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_BYTES = (DType.S8, DType.U8)
_NARROW = (*_BYTES, DType.S16, DType.U16)
_LEAST = 8  # elements for which a loop over words pays


def _kind(instr: Instr, role: str) -> DType:
    return instr.operand(role).type.dtype


def _is_long(instr: Instr) -> bool:
    return instr.int_("n") >= _LEAST


def _accepts_dequantize(instr: Instr) -> bool:
    """Accept bytes."""
    return _kind(instr, "in") in _BYTES and _is_long(instr)


def _accepts_quantize(instr: Instr) -> bool:
    """Accept float32 to bytes and halfwords."""
    return _kind(instr, "in") is DType.F32 and _kind(instr, "out") in _NARROW


def _accepts_requantize(instr: Instr) -> bool:
    """Accept bytes and halfwords."""
    return _kind(instr, "in") in _NARROW and _kind(instr, "out") in _NARROW


def accepts_add(instr: Instr) -> bool:
    """Accept operands without broadcasting."""
    return int(instr.params["rank"]) == 1 and instr.int_("a0") == instr.int_("b0") == 1


def accepts_add_rows(instr: Instr) -> bool:
    """Accept operands without broadcasting, or with adjacent elements in rows of at least eight."""
    dense = int(instr.params["rank"]) == 2 and instr.int_("a1") == instr.int_("b1") == 1
    return accepts_add(instr) or (dense and instr.int_("d1") >= 8)


def _accepts_fixed_pairs(instr: Instr) -> bool:
    """Accept the same where products are shifted to the right."""
    return accepts_add_rows(instr) and is_right_shift(instr, "out_shift")


def _accepts_wide_pairs(instr: Instr) -> bool:
    """Accept the same of codes of 16 bits around 0."""
    return accepts_add_rows(instr) and are_centred(instr)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairsPlan(Plan):
    """`ends` of the codes: 0, all of them; 1, those that are not negative; 2, others."""

    ends: int


def _prepare_wide_pairs(_: Arrays, instr: Instr) -> Prepared:
    """Say between which ends the codes are."""
    ends = {(-32768, 32767): 0, (0, 32767): 1}
    return Prepared(plan=PairsPlan(ends=ends.get((instr.int_("out_min"), instr.int_("out_max")), 2)))


ADD = KernelVariant("dsp", also=FPU, rank=4, header="glow_dsp_add.h", in_place=True, accepts=accepts_add_rows)
_CODES = KernelVariant("dsp", also=FPU, rank=10, header="glow_dsp_codes.h")
FLIP = replace(_CODES, also=frozenset(), in_place=True, accepts=_is_long)
LUT = replace(FLIP, rank=4)  # after that for Armv7-M, which takes fewer instructions
MULTIPLY = replace(_CODES, in_place=True, accepts=accepts_add_rows)
_MULTIPLY_FIXED = replace(
    MULTIPLY, also=frozenset(), header="glow_dsp_mul_q31.h", accepts=_accepts_fixed_pairs
)  # fmt: skip
QUANTIZE = replace(_CODES, in_place=True, accepts=_accepts_quantize)
DEQUANTIZE = replace(_CODES, accepts=_accepts_dequantize)
REQUANTIZE = replace(_CODES, in_place=True, accepts=_accepts_requantize)
_ROUND = KernelVariant("dsp", also=FPU, rank=10, header="glow_dsp_round.h", in_place=True)
LAYER_NORM = _ROUND
_WIDE = replace(
    _ROUND, header="glow_dsp_codes16.h", accepts=_accepts_wide_pairs, prepare=_prepare_wide_pairs,
)  # fmt: skip
SOFTMAX = replace(_ROUND, accepts=lambda instr: instr.int_("inner") == 1)
WIDTHS = replace(
    _ROUND, form="widths", rank=12, accepts=accepts_widths, prepare=prepare_widths,
    template="{}_widths", header="glow_dsp_widths.h", stated=Stated(outputs=5),
)  # fmt: skip

VARIANTS = {
    "add_s16": (replace(_WIDE, stated=Stated(outputs=14)),),
    "add_s8": (ADD,),
    "add_s8f": (ADD,),
    "dequantize": (DEQUANTIZE,),
    "flip_sign": (FLIP,),
    "layer_norm_s8": (LAYER_NORM,),
    "lut_s8": (LUT,),
    "mul_s16": (replace(_WIDE, stated=Stated(outputs=10)),),
    "mul_s8": (MULTIPLY,),
    "mul_s8q31": (_MULTIPLY_FIXED,),
    "mul_s8u": (MULTIPLY,),
    "quantize": (QUANTIZE,),
    "requantize": (REQUANTIZE, WIDTHS),
    "softmax_s16w": (replace(SOFTMAX, header="glow_dsp_codes16.h"),),
    "softmax_s8": (SOFTMAX,),
}
