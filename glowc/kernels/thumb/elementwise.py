"""Kernels of one element after the other for cores without SIMD.

quantize, for cores without FPU, whatever else they have: floats become codes by integer arithmetic. x / scale: the
mantissa of x times that of 1 / scale, rounded to 32 bits, has a relative error of 2^-31; the definition rounds the
quotient to float32. Only quotients that near to a tie need the division itself.

Codes of 8 bits become codes of 16 and back by products of 32 bits. lut_s8 has its table in the order of the codes as
unsigned bytes, which need no sign extension. Straight lines per channel are for Thumb-2 (runtime_c/glow_m3_lines.h), as
push_b*: windows of time steps move up by blocks of eight words (glow_thumb_move.h).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.common.header_numbers import header_number
from glowc.kernels.common.lines import is_long
from glowc.kernels.common.lines import prepare as prepare_lines
from glowc.kernels.common.widths import accepts_widths, width_plan_of
from glowc.kernels.features import Stated
from glowc.kernels.thumb.forms import both
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


def prepare_quantize(_: Arrays, instr: Instr) -> Prepared:
    """Return the plan of a product with the reciprocal of the scale."""
    mantissa, exponent = reciprocal(float(instr.params["scale"]))
    return Prepared(plan=QuantizePlan(mantissa=mantissa, shift=126 - exponent))


@dataclass(frozen=True, slots=True, kw_only=True)
class HalvesPlan(Plan):
    """The factor is `high` * 2^16 + `low`; what is added to the product, and the shift."""

    high: int
    low: int
    add: int
    shift: int


def prepare_halves(constants: Arrays, instr: Instr) -> Prepared:
    """Return the halves of the factor, so that no product leaves 32 bits."""
    plan = width_plan_of(instr)
    high, low = plan.factor >> 16, plan.factor & 0xFFFF
    return Prepared(plan=HalvesPlan(path=plan.path, high=high, low=low, add=plan.add, shift=plan.shift))


def prepare_lut(constants: Arrays, _: Instr) -> Prepared:
    """Return the table in the order of the codes as unsigned bytes."""
    return Prepared({"lut": np.roll(constants["lut"].reshape(-1), 128)})


def accepts_lines(instr: Instr) -> bool:
    """Accept results that are limited to int8 and nothing narrower."""
    return (instr.int_("out_min"), instr.int_("out_max")) == (-128, 127) and is_long(3, instr)


def accepts_push(instr: Instr) -> bool:
    """Accept windows that keep a block."""
    kept = instr.int_("keep") * instr.operand("window").type.dtype.bytes
    return kept >= header_number("glow_thumb_move.h", "GLOW_MOVE_BLOCK")


QUANTIZE = KernelVariant(
    "soft", rank=5, header="glow_thumb_reals.h", in_place=True, accepts=accepts_quantize, prepare=prepare_quantize
)
WIDTHS = KernelVariant(
    "v7m", form="widths", rank=11, in_place=True, accepts=accepts_widths, prepare=prepare_halves,
    template="{}_widths", header="glow_thumb_base.h", stated=Stated(outputs=12),
)  # fmt: skip
LUT = KernelVariant("v7m", rank=5, in_place=True, prepare=prepare_lut, packs=frozenset({"lut"}))
LINES = KernelVariant(
    "v7m", rank=5, in_place=True, header="glow_m3_lines.h", accepts=accepts_lines,
    prepare=partial(prepare_lines, 1), packs=frozenset({"lines"}),
)  # fmt: skip
PUSH = KernelVariant("v7m", rank=5, header="glow_thumb_move.h", accepts=accepts_push)

VARIANTS = {
    "lines_s8": (LINES,),
    "lut_s8": both(LUT),
    "quantize": (QUANTIZE,),
    "requantize": both(WIDTHS),
    **{f"push_b{size}": (PUSH,) for size in (1, 2, 4, 8)},
}
