"""Helium variants of kernels that take one code after the other: tables, signs, conversions, products
(runtime_c/mve/glow_mve_elementwise.h, glow_mve_reals.h).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from glowc.graph.types import DType
from glowc.kernels.base import Prepared
from glowc.kernels.mve.shared import FAST, PAIRWISE, PairwisePlan, accepts_rows, are_codes, is_moderate
from glowc.program.ir import Instr
from glowc.program.kernel import Arrays


def _is_byte(instr: Instr, role: str) -> bool:
    return instr.operand(role).type.dtype in (DType.S8, DType.U8)


def accepts_bytes(instr: Instr) -> bool:
    """Accept inputs of one byte."""
    return _is_byte(instr, "in")


def accepts_quantize(instr: Instr) -> bool:
    """Accept float32 to bytes."""
    from_real = instr.operand("in").type.dtype is DType.F32
    return _is_byte(instr, "out") and from_real and is_moderate(float(instr.params["scale"]))


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


_CODES = replace(FAST, in_place=True, header="glow_mve_elementwise.h")
_REALS = replace(FAST, in_place=True, header="glow_mve_reals.h")
_PRODUCT = replace(PAIRWISE, accepts=accepts_product, prepare=prepare_product, header="glow_mve_reals.h")

VARIANTS = {
    "dequantize": (replace(_CODES, accepts=accepts_bytes),),
    "flip_sign": (replace(_CODES, accepts=accepts_bytes),),
    "lut_s8": (_CODES,),
    "mul_s8": (_PRODUCT,),
    "mul_s8u": (_PRODUCT,),
    "quantize": (replace(_REALS, accepts=accepts_quantize),),
    "requantize": (replace(_REALS, accepts=accepts_requantize),),
}
