"""Rows of two operands that are added or multiplied."""

from __future__ import annotations

from glowc.program.ir import Instr


def steps(instr: Instr) -> tuple[int, int]:
    """Return the steps of both operands along the last axis."""
    last = int(instr.params["rank"]) - 1
    return int(instr.params[f"a{last}"]), int(instr.params[f"b{last}"])


def accepts_rows(instr: Instr) -> bool:
    """Accept rows of adjacent codes; those of one operand may be one code each."""
    return steps(instr) in ((1, 1), (1, 0), (0, 1))


def are_centred(instr: Instr) -> bool:
    """Say whether the zero points of two operands and of the result are 0."""
    return not any(instr.int_(name) for name in ("a_zp", "b_zp", "out_zp"))
