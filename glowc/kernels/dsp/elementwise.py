"""The `dsp` variants of kernels that turn codes into codes or reals, one by one or by rows (glow_dsp_codes.h,
glow_dsp_codes16.h); codes of 8 bits to codes of 16 and back by SMLAW and SSAT (glow_dsp_widths.h); tanh between codes
of 16 bits (glow_dsp_tanh16.h).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant, Prepared, always
from glowc.kernels.common import pairs16
from glowc.kernels.common.factors import is_right_shift
from glowc.kernels.common.norm import prepare_spread
from glowc.kernels.common.rows import accepts_dense_rows
from glowc.kernels.common.softmax import accepts_softmax, prepare_softmax
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


def _accepts_fixed_pairs(instr: Instr) -> bool:
    """Accept rows whose products are shifted to the right."""
    return accepts_dense_rows(instr) and is_right_shift(instr, "out_shift")


ADD = KernelVariant("dsp", also=FPU, rank=4, header="glow_dsp_add.h", in_place=True, accepts=accepts_dense_rows)
_CODES = KernelVariant("dsp", also=FPU, rank=10, header="glow_dsp_codes.h")
FLIP = replace(_CODES, also=frozenset(), in_place=True, accepts=_is_long)
LUT = replace(FLIP, rank=4)  # after that for Armv7-M, which takes fewer instructions
MULTIPLY = replace(_CODES, in_place=True, accepts=accepts_dense_rows)
_MULTIPLY_FIXED = replace(
    MULTIPLY, also=frozenset(), header="glow_dsp_mul_q31.h", accepts=_accepts_fixed_pairs
)  # fmt: skip
QUANTIZE = replace(_CODES, in_place=True, accepts=_accepts_quantize)
DEQUANTIZE = replace(_CODES, accepts=_accepts_dequantize)
REQUANTIZE = replace(_CODES, in_place=True, accepts=_accepts_requantize)
_ROUND = KernelVariant("dsp", also=FPU, rank=10, header="glow_dsp_round.h", in_place=True)
LAYER_NORM = replace(_ROUND, prepare=prepare_spread)
_WIDE = replace(
    _ROUND, header="glow_dsp_codes16.h", accepts=pairs16.accepts, prepare=partial(pairs16.prepare, "dsp"),
)  # fmt: skip
SOFTMAX = replace(_ROUND, accepts=accepts_softmax)
WIDTHS = replace(
    _ROUND, form="widths", rank=12, accepts=accepts_widths, prepare=prepare_widths,
    template="{}_widths", header="glow_dsp_widths.h", stated=Stated(outputs=5),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class TanhPlan(Plan):
    """The shift of codes, by so many saturating additions."""

    shift: int


def _prepare_tanh(_: Arrays, instr: Instr) -> Prepared:
    return Prepared(plan=TanhPlan(shift=instr.int_("shift")))


_TANH = replace(
    FLIP, header="glow_dsp_tanh16.h", accepts=always, prepare=_prepare_tanh, stated=Stated(outputs=20)
)  # fmt: skip

VARIANTS = {
    **pairs16.fixed_variants(("dsp",), "dsp", 10, sums=15, products=10),
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
    "softmax_s8": (replace(SOFTMAX, prepare=prepare_softmax),),
    "tanh_s16": (_TANH,),
}
