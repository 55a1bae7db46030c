"""Kernels that take one element after the other, or rows of them, on A64 and A32 (runtime_c/simd/).

Between codes and reals (glow_neon_codes.h); functions of floats, softmax and normalised rows by vectors of four
(glow_neon_elementary.h); tables, normalised rows and softmax of codes on A64 (glow_neon.h, glow_neon_codes16.h);
straight lines per channel (glow_neon_lines.h); products of rows of adjacent codes, or of one that repeats
(glow_neon_mul.h, glow_neon_mul_q31.h); codes of 8 bits to codes of 16 and back by the upper halves of products
(glow_neon_widths.h); tanh between codes of 16 bits (glow_neon_tanh16.h).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.common.factors import is_right_shift
from glowc.kernels.common.lines import is_long
from glowc.kernels.common.lines import prepare as prepare_lines
from glowc.kernels.common.reals import accepts_function, accepts_same_function, accepts_softmax
from glowc.kernels.common.rows import RowPlan, accepts_rows, steps
from glowc.kernels.common.softmax import prepare_softmax
from glowc.kernels.common.widths import accepts_widths, prepare_widths
from glowc.kernels.features import Stated
from glowc.kernels.simd.core import both
from glowc.program.ir import Instr
from glowc.program.kernel import Arrays

_BYTES = (DType.S8, DType.U8)
_HALFWORDS = (DType.S16, DType.U16)
LEAST = 8  # elements of a vector of codes
_TABLE_BYTES = 1024  # of 256 exponentials
_MANY = 40  # exponentials that are found as fast one by one
_SMALLEST = 2.0**-100  # scales with which no product of a code is denormal: A32 would make it 0


def _kind(instr: Instr, role: str) -> DType:
    return instr.operand(role).type.dtype


def is_normal(instr: Instr, *scales: str) -> bool:
    """Accept scales with which no product of a code is denormal."""
    return all(abs(float(instr.params[key])) >= _SMALLEST for key in scales)


def _accepts_vector(instr: Instr) -> bool:
    """Accept a vector of elements or more."""
    return instr.int_("n") >= LEAST


def _accepts_quantize(instr: Instr) -> bool:
    """Accept float32 to bytes."""
    return _kind(instr, "in") is DType.F32 and _kind(instr, "out") in _BYTES and _accepts_vector(instr)


def _accepts_long(instr: Instr) -> bool:
    """Accept float32 to halfwords."""
    return _kind(instr, "in") is DType.F32 and _kind(instr, "out") in _HALFWORDS and _accepts_vector(instr)


def _accepts_dequantize(instr: Instr) -> bool:
    """Accept bytes and halfwords to float32."""
    return _kind(instr, "in") in (*_BYTES, *_HALFWORDS) and _accepts_vector(instr) and is_normal(instr, "scale")


def _accepts_requantize(instr: Instr) -> bool:
    """Accept bytes to bytes."""
    bytes_ = _kind(instr, "in") in _BYTES and _kind(instr, "out") in _BYTES
    return bytes_ and _accepts_vector(instr) and is_normal(instr, "in_scale", "out_scale")


def _accepts_softmax(instr: Instr) -> bool:
    """Accept rows of at least eight adjacent codes."""
    return instr.int_("inner") == 1 and _accepts_vector(instr)


def _accepts_many(instr: Instr) -> bool:
    """Accept so many codes that a table of all exponentials takes less time than one of each code."""
    return _accepts_softmax(instr) and instr.int_("outer") * instr.int_("n") >= _MANY


def accepts_long_rows(instr: Instr) -> bool:
    """Accept rows of at least eight codes; those of one operand may be one code each."""
    return accepts_rows(instr) and instr.int_(f"d{instr.int_('rank') - 1}") >= LEAST


@dataclass(frozen=True, slots=True, kw_only=True)
class MulPlan(RowPlan):
    """`half`: what turns the codes into those that they are rounded as, 0 or 128; `codes`: the function's ending."""

    half: int
    codes: str


def _prepare_mul(_: Arrays, instr: Instr) -> Prepared:
    a_step, b_step = steps(instr)
    half = int(instr.params.get("half", 0))
    return Prepared(plan=MulPlan(a_step=a_step, b_step=b_step, half=half, codes="u8x8" if half else "s8x8"))


def _accepts_fixed_mul(instr: Instr) -> bool:
    """Accept the same rows where products are shifted to the right."""
    return accepts_long_rows(instr) and is_right_shift(instr, "out_shift")


def _prepare_fixed_mul(_: Arrays, instr: Instr) -> Prepared:
    a_step, b_step = steps(instr)
    return Prepared(plan=MulPlan(a_step=a_step, b_step=b_step, half=0, codes="q31_s8x8"))


CODES = KernelVariant("a64", rank=30, header="glow_neon_codes.h")
_IN_PLACE = replace(CODES, in_place=True)
_A64 = replace(_IN_PLACE, header="glow_neon.h")
_SOFTMAX = replace(_A64, accepts=_accepts_softmax, scratch_bytes=lambda instr: 4 * instr.int_("n"))
_SHARES = replace(_A64, accepts=_accepts_softmax, prepare=prepare_softmax, header="glow_neon_softmax.h")
_FLOATS = replace(_IN_PLACE, header="glow_neon_elementary.h")
_SAME = replace(
    _FLOATS, form="same", accepts=accepts_same_function, template="{}_same", header="glow_neon_same.h",
    same_bits=True, costs_of="a64",
)  # fmt: skip
_LINES = replace(
    _IN_PLACE, header="glow_neon_lines.h", packs=frozenset({"lines"}),
    accepts=partial(is_long, LEAST), prepare=partial(prepare_lines, 4),
)  # fmt: skip
_MULTIPLY = both(replace(_IN_PLACE, header="glow_neon_mul.h", accepts=accepts_long_rows, prepare=_prepare_mul))
_FIXED = replace(_IN_PLACE, header="glow_neon_mul_q31.h", accepts=_accepts_fixed_mul, prepare=_prepare_fixed_mul)
_WIDTHS = KernelVariant(
    "a64", form="widths", rank=40, in_place=True, accepts=accepts_widths, prepare=prepare_widths,
    template="{}_widths", header="glow_neon_widths.h", stated=Stated(outputs=2),
)  # fmt: skip

VARIANTS = {
    "dequantize": both(replace(CODES, accepts=_accepts_dequantize)),
    "dynamic_quantize": both(replace(CODES, accepts=_accepts_vector)),
    "layer_norm_f32": both(_FLOATS),
    "layer_norm_s8": (replace(_A64, accepts=_accepts_vector, header="glow_neon_norm.h"),),
    "layer_norm_stats_f32": both(_FLOATS),
    "lines_s8": both(_LINES),
    "lut_s8": (replace(_A64, accepts=lambda instr: instr.int_("n") >= 32),),
    "mul_s8": _MULTIPLY,
    "mul_s8q31": both(_FIXED),
    "mul_s8u": _MULTIPLY,
    "quantize": (
        *both(replace(_IN_PLACE, accepts=_accepts_quantize)), replace(_IN_PLACE, form="long", accepts=_accepts_long),
    ),
    "requantize": (*both(replace(_IN_PLACE, accepts=_accepts_requantize)), *both(_WIDTHS)),
    "softmax_f32": both(replace(_FLOATS, accepts=accepts_softmax)),
    "softmax_s16w": (replace(_SOFTMAX, header="glow_neon_codes16.h"),),
    "softmax_s8": (_SHARES,),
    "softmax_s8p": (
        replace(_SHARES, accepts=_accepts_many, scratch_bytes=lambda _: _TABLE_BYTES),
        replace(_SOFTMAX, form="few", rank=20, template="softmax_s8p_few", stated=Stated(outputs=50)),
    ),
    "tanh_s16": (replace(_IN_PLACE, header="glow_neon_tanh16.h"),),
    "unary": (*both(replace(_FLOATS, accepts=accepts_function)), _SAME),
}  # fmt: skip
