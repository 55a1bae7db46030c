"""copy_b1 of turned matrices on A64 (runtime_c/simd/glow_neon_turn.h)."""

from __future__ import annotations

from dataclasses import dataclass

from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.features import Stated
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_SIDE = 8  # of a block


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPlan(Plan):
    """`outer`: the number of axes before those that are turned."""

    outer: int


def _accepts(instr: Instr) -> bool:
    """Accept eight rows and columns or more whose neighbors in the input are neighbors across rows of the output."""
    last = instr.int_("rank") - 1
    if last < 1:
        return False
    turned = instr.int_(f"i{last - 1}") == instr.int_(f"o{last}") == 1
    return turned and min(instr.int_(f"d{axis}") for axis in (last - 1, last)) >= _SIDE


def _prepare(_: Arrays, instr: Instr) -> Prepared:
    return Prepared(plan=TurnPlan(outer=instr.int_("rank") - 2))


VARIANTS = {
    "copy_b1": (
        KernelVariant(
            "a64", rank=20, accepts=_accepts, prepare=_prepare, header="glow_neon_turn.h", stated=Stated(outputs=1)
        ),
    ),
}
