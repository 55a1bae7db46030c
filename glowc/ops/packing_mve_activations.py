"""Helium variants of kernels that have no weights: products of activations, softmax, normalised rows, conversions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from glowc.graph.types import DType
from glowc.instr.ir import Instr, ParamValue
from glowc.ops.base import KernelVariant

_STEPS = 1 << 13  # bytes between elements of a column: eight of them fit a 16-bit offset
_FAST = KernelVariant("mve", frozenset({"mve", "mve-fp"}), rank=20)


def _int(instr: Instr, key: str) -> int:
    return int(instr.params[key])


def _are_codes(instr: Instr, *roles: str) -> bool:
    return all(instr.operand(role).type.dtype is DType.S8 for role in roles)


def _is_packed(instr: Instr) -> bool:
    """Say whether the columns of the right operand must be copied to lie in rows."""
    return _int(instr, "b_row") != 1 and _int(instr, "k") > 1


def accepts_matmul(instr: Instr) -> bool:
    """Accept int8 products whose left operand has adjacent columns."""
    adjacent = _int(instr, "a_col") == 1 or _int(instr, "k") == 1
    return _are_codes(instr, "a", "b", "out") and adjacent and _int(instr, "b_row") < _STEPS


def matmul_scratch(instr: Instr) -> int:
    """Bytes of a sum per column, and of the columns where they are copied."""
    columns = -(-_int(instr, "n") // 4) * 4
    return columns * (4 + (_int(instr, "k") if _is_packed(instr) else 0))


def matmul_plan(instr: Instr) -> Mapping[str, ParamValue]:
    """Print whether the columns are copied."""
    return {"packed": int(_is_packed(instr))}


MATMUL = replace(
    _FAST, accepts=accepts_matmul, scratch_bytes=matmul_scratch, plan=matmul_plan, header="glow_mve_matmul.h"
)
