"""matmul_s8 for cores without FPU and DSP: four rows of a at a time, two in a word (runtime_c/thumb/glow_thumb.h).

The columns of b are what weights are to a convolution: a block of them is copied to scratch, one after the other,
unless they lie so. Both zero points are in the biases and in what is subtracted for the sums of the rows, as where
weights have a zero point. Sums fit float32 without rounding, so that codes are rounded as packing_m3 tells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant
from glowc.kernels.thumb.layers import NEEDS, near_tie
from glowc.program.ir import Instr, ParamValue

_BLOCK_BYTES = 512  # of columns in scratch
_DIRECT_COLUMNS = 64
_EXACT_SUM = 1 << 24


def _most(instr: Instr) -> int:
    """Return the largest sum of products without zero points."""
    spans = [max(127 - instr.int_(key), 128 + instr.int_(key)) for key in ("a_zp", "b_zp")]
    return instr.int_("k") * spans[0] * spans[1]


def _accepts(instr: Instr) -> bool:
    """Accept adjacent elements in rows of a and out, exact sums, and scales that both instruction sets take."""
    adjacent = instr.int_("a_col") == instr.int_("out_col") == 1
    bytes_only = all(instr.operand(role).type.dtype is DType.S8 for role in ("a", "b", "out"))
    scaled = 2.0**-32 <= float(instr.params["scale"]) < 0.25
    return adjacent and bytes_only and scaled and 0 < _most(instr) <= _EXACT_SUM and instr.int_("k") <= _BLOCK_BYTES


def _plan(instr: Instr) -> Mapping[str, ParamValue]:
    """Tell whether columns are multiplied where they lie; how many at a time; and `near_tie` of the sums."""
    k, n = instr.int_("k"), instr.int_("n")
    direct = instr.int_("b_row") == 1 and instr.int_("b_col") == k
    columns = min(n, _DIRECT_COLUMNS if direct else _BLOCK_BYTES // k)
    return {"direct": int(direct), "columns": columns, "near": near_tie(_most(instr))}


def _scratch(instr: Instr) -> int:
    """Two words per element of a row, biases, and the columns that are copied."""
    k, plan = instr.int_("k"), _plan(instr)
    columns = int(plan["columns"])
    return 8 * k + 4 * (columns + 1) + (0 if plan["direct"] else columns * k)


_M3 = KernelVariant("m3", NEEDS, rank=5, header="glow_m3.h", accepts=_accepts, plan=_plan, scratch_bytes=_scratch)
MATMUL = (_M3, replace(_M3, isa="m0", needs=frozenset({"thumb1"}), header="glow_m0.h"))

VARIANTS = {
    "matmul_s8": MATMUL,
}
