"""copy_b1, copy_b2 and copy_b4 of turned matrices on A64 (runtime_c/simd/glow_neon_turn.h)."""

from __future__ import annotations

from dataclasses import dataclass

from glowc.kernels.base import UNFIT, KernelVariant, Prepared
from glowc.kernels.features import Stated
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_SIDE = 8  # of a block
_FEW = range(2, 5)  # planes that an instruction interleaves
_VECTOR_BYTES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPlan(Plan):
    """`outer`: the number of axes before those that are turned. `few`: so many planes of the input become pixels of
    the output (`path` interleave), or the other way round (deinterleave); 0: blocks of eight rows and columns.
    """

    outer: int
    few: int = 0

    @property
    def function(self) -> str:
        """The function of the header, without the kind of elements."""
        return f"glow_neon_{self.path}{self.few}" if self.few else "glow_neon_turn"


def _accepts(instr: Instr) -> bool:
    """Accept rows and columns whose neighbors in the input are neighbors across rows of the output."""
    last = instr.int_("rank") - 1
    return last >= 1 and instr.int_(f"i{last - 1}") == instr.int_(f"o{last}") == 1


def _prepare(_: Arrays, instr: Instr) -> Prepared:
    """Return the plan of at least as many pixels of few planes as a vector has, or rows and columns as a block has."""
    last = instr.int_("rank") - 1
    rows, columns = instr.int_(f"d{last - 1}"), instr.int_(f"d{last}")
    lanes = _VECTOR_BYTES // instr.operand("in").type.dtype.bytes
    if columns in _FEW and instr.int_(f"o{last - 1}") == columns and rows >= lanes:
        return Prepared(plan=TurnPlan(outer=last - 1, few=columns, path="interleave"))
    if rows in _FEW and instr.int_(f"i{last}") == rows and columns >= lanes:
        return Prepared(plan=TurnPlan(outer=last - 1, few=rows, path="deinterleave"))
    return Prepared(plan=TurnPlan(outer=last - 1)) if min(rows, columns) >= _SIDE else UNFIT


_TURNED = KernelVariant(
    "a64", rank=20, accepts=_accepts, prepare=_prepare, header="glow_neon_turn.h", stated=Stated(outputs=1)
)

VARIANTS = {f"copy_b{size}": (_TURNED,) for size in (1, 2, 4)}
