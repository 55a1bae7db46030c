"""The `dsp` variants of kernels that have no weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant
from glowc.kernels.dsp.layers import NEEDS
from glowc.kernels.dsp.quad import words_before
from glowc.program.ir import Instr, ParamValue

_COLUMN_BYTES = 4096  # of scratch for the columns of a product at a time, where one pair does not need more


def _groups(instr: Instr) -> int:
    return -(-instr.int_("k") // 4)


def _pairs(instr: Instr) -> int:
    return max(1, min(-(-instr.int_("n") // 2), _COLUMN_BYTES // (16 + 16 * _groups(instr))))


def _plan(instr: Instr) -> Mapping[str, ParamValue]:
    """Pairs of columns that are prepared at a time; whether a column's elements are adjacent."""
    return {"pairs": _pairs(instr), "path": "rows" if instr.int_("b_row") == 1 else "columns"}


def _scratch(instr: Instr) -> int:
    """Four rows of the left operand and the columns as int16."""
    skipped = 4 * words_before(2, 2)  # at most, of two words a step
    return 32 * _groups(instr) + skipped + _pairs(instr) * (16 + 16 * _groups(instr))


def _accepts(instr: Instr) -> bool:
    """Accept int8 with adjacent columns on the left and in the output."""
    if any(instr.operand(role).type.dtype is not DType.S8 for role in ("a", "b", "out")):
        return False
    return instr.int_("a_col") == instr.int_("out_col") == 1 and instr.int_("m") >= 2 and instr.int_("n") >= 2


_ROUND = KernelVariant("dsp", NEEDS, rank=10, header="glow_dsp_round.h")
LAYER_NORM = replace(_ROUND, in_place=True)
SOFTMAX = replace(_ROUND, in_place=True, accepts=lambda instr: instr.int_("inner") == 1)
MATMUL = KernelVariant(
    "dsp", NEEDS, rank=10, header="glow_dsp_quad.h", accepts=_accepts, scratch_bytes=_scratch, plan=_plan
)

VARIANTS = {
    "layer_norm_s8": (LAYER_NORM,),
    "matmul_s8": (MATMUL,),
    "softmax_s8": (SOFTMAX,),
}
