"""int8 products on A64 and A32: rows of adjacent codes, or of one that repeats."""

from __future__ import annotations

from dataclasses import dataclass, replace

from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.common.rows import RowPlan, accepts_rows, steps
from glowc.program.ir import Instr
from glowc.program.kernel import Arrays

_LEAST_ROW = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class MulPlan(RowPlan):
    """`half`: what turns the codes into those that they are rounded as, 0 or 128."""

    half: int


def accepts_long_rows(instr: Instr) -> bool:
    """Accept rows of at least eight codes; those of one operand may be one code each."""
    return accepts_rows(instr) and instr.int_(f"d{instr.int_('rank') - 1}") >= _LEAST_ROW


def _prepare(_: Arrays, instr: Instr) -> Prepared:
    a_step, b_step = steps(instr)
    return Prepared(plan=MulPlan(a_step=a_step, b_step=b_step, half=int(instr.params.get("half", 0))))


_A64 = KernelVariant(
    "a64", rank=30, header="glow_neon_mul.h", in_place=True, accepts=accepts_long_rows,
    prepare=_prepare,
)  # fmt: skip
MULTIPLY = (_A64, replace(_A64, isa="a32"))

VARIANTS = {
    "mul_s8": MULTIPLY,
    "mul_s8u": MULTIPLY,
}
