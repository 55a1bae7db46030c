"""Plans of int8 products on A64 and A32: rows of adjacent codes, or of one that repeats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from glowc.instr.ir import Instr, ParamValue
from glowc.ops.base import KernelVariant
from glowc.ops.packing_m3_add import accepts_rows

_LEAST_ROW = 8


def _last(instr: Instr, letter: str) -> int:
    """Return a parameter of the last axis."""
    return int(instr.params[f"{letter}{int(instr.params['rank']) - 1}"])


def _accepts(instr: Instr) -> bool:
    """Accept rows of at least eight codes."""
    return accepts_rows(instr) and _last(instr, "d") >= _LEAST_ROW


def _plan(instr: Instr) -> Mapping[str, ParamValue]:
    return {"a_step": _last(instr, "a"), "b_step": _last(instr, "b")}


_A64 = KernelVariant(
    "neon", frozenset({"a64", "neon"}), rank=30, header="glow_neon_mul.h", in_place=True, accepts=_accepts, plan=_plan,
)  # fmt: skip
MULTIPLY = (_A64, replace(_A64, isa="a32", needs=frozenset({"a32", "neon"}), template_isa="neon"))
