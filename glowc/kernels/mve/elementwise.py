"""Helium variants of kernels that take one element after the other, or rows of them (runtime_c/mve/).

Tables, signs, conversions and products of codes (glow_mve_elementwise.h, glow_mve_reals.h); normalised rows of codes
(glow_mve_reals.h), softmax of 16 bits (glow_mve_softmax16.h), and of floats with their functions, four at a time
(glow_mve_elementary.h); sums and products of int16 codes around 0 (glow_mve_reals16.h); straight lines per channel
(glow_mve_lines.h); codes of 8 bits to codes of 16 and back by the upper halves of products (glow_mve_widths.h).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from glowc.graph.types import DType
from glowc.kernels.base import Prepared
from glowc.kernels.common.factors import is_right_shift
from glowc.kernels.common.lines import is_long
from glowc.kernels.common.lines import prepare as prepare_lines
from glowc.kernels.common.norm import prepare_spread
from glowc.kernels.common.pairs16 import fixed_variants
from glowc.kernels.common.reals import accepts_function, accepts_same_function
from glowc.kernels.common.reals import accepts_softmax as accepts_float_softmax
from glowc.kernels.common.rows import are_centred
from glowc.kernels.common.softmax import accepts_softmax, prepare_softmax
from glowc.kernels.common.widths import accepts_widths, prepare_widths
from glowc.kernels.features import Stated
from glowc.kernels.mve.shared import FAST, PAIRWISE, PairwisePlan, accepts_rows, are_codes, is_moderate
from glowc.program.ir import Instr
from glowc.program.kernel import Arrays


def _is_byte(instr: Instr, role: str) -> bool:
    return instr.operand(role).type.dtype in (DType.S8, DType.U8)


def _is_short(instr: Instr, role: str) -> bool:
    return _is_byte(instr, role) or instr.operand(role).type.dtype in (DType.S16, DType.U16)


def accepts_bytes(instr: Instr) -> bool:
    """Accept inputs of one byte."""
    return _is_byte(instr, "in")


def accepts_dequantize(instr: Instr) -> bool:
    """Accept inputs of one byte or two."""
    return _is_short(instr, "in")


def accepts_quantize(instr: Instr) -> bool:
    """Accept float32 to one byte or two."""
    from_real = instr.operand("in").type.dtype is DType.F32
    return _is_short(instr, "out") and from_real and is_moderate(float(instr.params["scale"]))


def accepts_requantize(instr: Instr) -> bool:
    """Accept bytes to bytes."""
    scales = float(instr.params["in_scale"]), float(instr.params["out_scale"])
    return _is_byte(instr, "in") and _is_byte(instr, "out") and is_moderate(*scales)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductPlan(PairwisePlan):
    """`half`: what is added to the codes before they are rounded."""

    half: int


def accepts_product(instr: Instr) -> bool:
    """Accept adjacent int8 operands, and rows of them of which one may be the same for all rows of the output."""
    return are_codes(instr, "a", "b", "out") and accepts_rows(instr)


def prepare_product(_: Arrays, instr: Instr) -> Prepared:
    """Return the plan of a product; only those of codes that were unsigned have a half."""
    return Prepared(plan=ProductPlan(rank=instr.int_("rank"), half=int(instr.params.get("half", 0))))


def _accepts_fixed_product(instr: Instr) -> bool:
    """Accept the same where products are shifted to the right."""
    return accepts_product(instr) and is_right_shift(instr, "out_shift")


def accepts_wide_softmax(instr: Instr) -> bool:
    """Accept the same where what is not 0 in the end is far from the ends of float32."""
    return accepts_softmax(instr) and is_moderate(float(instr.params["steps"]))


def _is_centred(instr: Instr) -> bool:
    """Accept zero points 0, adjacent codes, and rows of them of which one may be the same for all of the output."""
    return accepts_rows(instr) and are_centred(instr)


def accepts_wide_sum(instr: Instr) -> bool:
    """Accept scales whose quotients are far from the ends of float32."""
    return _is_centred(instr) and is_moderate(*(float(instr.params[f"{name}_scale"]) for name in ("a", "b", "out")))


_IN_PLACE = replace(FAST, in_place=True)
_CODES = replace(_IN_PLACE, header="glow_mve_elementwise.h")
_REALS = replace(_IN_PLACE, header="glow_mve_reals.h")
_FLOATS = replace(_IN_PLACE, rank=25, header="glow_mve_elementary.h")
_SAME = replace(
    _FLOATS, form="same", accepts=accepts_same_function, template="{}_same", header="glow_mve_same.h",
    same_bits=True, costs_of="mve",
)  # fmt: skip
_PRODUCT = replace(PAIRWISE, accepts=accepts_product, prepare=prepare_product, header="glow_mve_reals.h")
_WIDE_PAIRS = replace(PAIRWISE, accepts=_is_centred, header="glow_mve_reals16.h")
_WIDTHS = replace(
    _IN_PLACE, form="widths", accepts=accepts_widths, prepare=prepare_widths,
    template="{}_widths", header="glow_mve_widths.h", stated=Stated(outputs=2),
)  # fmt: skip
_LINES = replace(
    _IN_PLACE, also=frozenset(), header="glow_mve_lines.h", packs=frozenset({"lines"}),
    accepts=partial(is_long, 4), prepare=partial(prepare_lines, 4),
)  # fmt: skip

VARIANTS = {
    **fixed_variants(("mve",), "mve", 20, sums=8, products=6),
    "add_s16": (replace(_WIDE_PAIRS, accepts=accepts_wide_sum),),
    "dequantize": (replace(_CODES, accepts=accepts_dequantize),),
    "flip_sign": (replace(_CODES, accepts=accepts_bytes),),
    "layer_norm_f32": (_FLOATS,),
    "layer_norm_s8": (replace(_REALS, prepare=prepare_spread),),
    "layer_norm_stats_f32": (_FLOATS,),
    "lines_s8": (_LINES,),
    "lut_s8": (_CODES,),
    "mul_s16": (_WIDE_PAIRS,),
    "mul_s8": (_PRODUCT,),
    "mul_s8q31": (replace(_PRODUCT, accepts=_accepts_fixed_product, header="glow_mve_fixed.h"),),
    "mul_s8u": (_PRODUCT,),
    "quantize": (replace(_REALS, accepts=accepts_quantize),),
    "requantize": (replace(_REALS, accepts=accepts_requantize), _WIDTHS),
    "softmax_f32": (replace(_FLOATS, accepts=accepts_float_softmax),),
    "softmax_s16w": (replace(_REALS, accepts=accepts_wide_softmax, header="glow_mve_softmax16.h"),),
    "softmax_s8": (replace(_REALS, accepts=accepts_softmax, prepare=prepare_softmax, header="glow_mve_softmax.h"),),
    "tanh_s16": (replace(_IN_PLACE, also=frozenset(), header="glow_mve_tanh16.h"),),
    "unary": (replace(_FLOATS, accepts=accepts_function), _SAME),
}
