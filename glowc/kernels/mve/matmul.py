"""The Helium variant of products of two int8 matrices (runtime_c/mve/glow_mve_matmul.h)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from glowc.kernels.base import Prepared, plan_of
from glowc.kernels.mve.shared import FAST, are_codes
from glowc.kernels.mve.stream import GROUP
from glowc.kernels.shapes import MatMul
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_STEPS = 1 << 13  # bytes between elements of a column: eight of them fit a 16-bit offset
_SUM = 4  # bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class MatMulPlan(Plan):
    """`packed`: the columns of the right operand are copied, one after the other."""

    packed: bool


def accepts(instr: Instr) -> bool:
    """Accept int8 products whose left operand has adjacent columns."""
    shape = MatMul.of(instr)
    return are_codes(instr, "a", "b", "out") and (shape.a_col == 1 or shape.k == 1) and shape.b_row < _STEPS


def prepare(_: Arrays, instr: Instr) -> Prepared:
    """Return whether columns are copied: those whose elements are not adjacent."""
    shape = MatMul.of(instr)
    return Prepared(plan=MatMulPlan(packed=shape.b_row != 1 and shape.k > 1))


def scratch_bytes(instr: Instr) -> int:
    """Bytes of a sum per column, and of the columns where they are copied."""
    shape, plan = MatMul.of(instr), plan_of(instr, MatMulPlan)
    columns = -(-shape.n // GROUP) * GROUP
    return columns * (_SUM + (shape.k if plan.packed else 0))


VARIANTS = {
    "matmul_s8": (
        replace(FAST, accepts=accepts, prepare=prepare, scratch_bytes=scratch_bytes, header="glow_mve_matmul.h"),
    ),
}
