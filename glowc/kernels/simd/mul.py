"""Plans of int8 products on A64 and A32: rows of adjacent codes, or of one that repeats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from glowc.kernels.base import KernelVariant
from glowc.kernels.common.rows import accepts_rows, steps
from glowc.program.ir import Instr, ParamValue

_LEAST_ROW = 8


def accepts_long_rows(instr: Instr) -> bool:
    """Accept rows of at least eight codes; those of one operand may be one code each."""
    return accepts_rows(instr) and int(instr.params[f"d{int(instr.params['rank']) - 1}"]) >= _LEAST_ROW


def row_plan(instr: Instr) -> Mapping[str, ParamValue]:
    """Return the operands' steps along a row."""
    return dict(zip(("a_step", "b_step"), steps(instr), strict=True))


_A64 = KernelVariant(
    "neon", frozenset({"a64", "neon"}), rank=30, header="glow_neon_mul.h", in_place=True, accepts=accepts_long_rows,
    plan=row_plan,
)  # fmt: skip
MULTIPLY = (_A64, replace(_A64, isa="a32", needs=frozenset({"a32", "neon"})))

VARIANTS = {
    "mul_s8": MULTIPLY,
    "mul_s8u": MULTIPLY,
}
