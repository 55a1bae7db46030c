"""Variants for cores without FPU, whatever else they have: floats become codes by integer arithmetic.

x / scale: the mantissa of x times that of 1 / scale, rounded to 32 bits, has a relative error of 2^-31; the definition
rounds the quotient to float32. Only quotients that near to a tie need the division itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant, Prepared
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_SCALES = (2.0**-60, 2.0**60)  # of which the reciprocals' exponents are far from the ends


def reciprocal(scale: float) -> tuple[int, int]:
    """Return (mantissa, exponent) of 1 / float32(scale) = mantissa * 2^exponent, mantissa in [2^31, 2^32]."""
    exact, exponent = 1 / Fraction(float(np.float32(scale))), 0
    while exact < 1 << 31:
        exact, exponent = exact * 2, exponent - 1
    while exact >= 1 << 32:
        exact, exponent = exact / 2, exponent + 1
    return min(round(exact), (1 << 32) - 1), exponent


def accepts_quantize(instr: Instr) -> bool:
    """Accept float32 to codes of at most 16 bits."""
    kinds = instr.operand("in").type.dtype, instr.operand("out").type.dtype
    usual = _SCALES[0] < float(instr.params["scale"]) < _SCALES[1]
    return kinds[0] is DType.F32 and kinds[1] in (DType.S8, DType.U8, DType.S16) and usual


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantizePlan(Plan):
    """The reciprocal's `mantissa`, and by how many bits products are shifted when x has exponent 0, `shift`."""

    mantissa: int
    shift: int


def prepare(_: Arrays, instr: Instr) -> Prepared:
    """Return the plan of a product with the reciprocal of the scale."""
    mantissa, exponent = reciprocal(float(instr.params["scale"]))
    return Prepared(plan=QuantizePlan(mantissa=mantissa, shift=126 - exponent))


QUANTIZE = KernelVariant(
    "soft", rank=5, header="glow_thumb_reals.h", in_place=True, accepts=accepts_quantize, prepare=prepare
)

VARIANTS = {
    "quantize": (QUANTIZE,),
}
