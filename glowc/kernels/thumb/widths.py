"""Codes of 8 bits to codes of 16 and back by products of 32 bits, for cores without SIMD."""

from __future__ import annotations

from dataclasses import dataclass

from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.common.widths import accepts_widths, width_plan_of
from glowc.kernels.features import Stated
from glowc.kernels.thumb.forms import both
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays


@dataclass(frozen=True, slots=True, kw_only=True)
class HalvesPlan(Plan):
    """The factor is `high` * 2^16 + `low`; what is added to the product, and the shift."""

    high: int
    low: int
    add: int
    shift: int


def prepare(constants: Arrays, instr: Instr) -> Prepared:
    """Return the halves of the factor, so that no product leaves 32 bits."""
    plan = width_plan_of(instr)
    high, low = plan.factor >> 16, plan.factor & 0xFFFF
    return Prepared(plan=HalvesPlan(path=plan.path, high=high, low=low, add=plan.add, shift=plan.shift))


VARIANTS = {
    "requantize": both(
        KernelVariant(
            "v7m", form="widths", rank=11, in_place=True, accepts=accepts_widths, prepare=prepare,
            template="{}_widths", header="glow_thumb_base.h", stated=Stated(outputs=12),
        )
    ),
}  # fmt: skip
