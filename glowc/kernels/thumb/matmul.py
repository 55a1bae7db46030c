"""matmul_s8 for cores without FPU and DSP: four rows of a at a time, two in a word (runtime_c/thumb/glow_thumb.h).

The columns of b are what weights are to a convolution: a block of them is copied to scratch, one after the other,
unless they lie so. Both zero points are in the biases and in what is subtracted for the sums of the rows, as where
weights have a zero point. Sums fit float32 without rounding, so that codes are rounded as fold.py tells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant, Prepared, Reads, plan_of
from glowc.kernels.shapes import MatMul
from glowc.kernels.thumb.fold import near_tie
from glowc.kernels.thumb.forms import HEADER, both
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

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


@dataclass(frozen=True, slots=True, kw_only=True)
class MatMulPlan(Plan):
    """`direct`: columns are multiplied where they lie; `columns`: how many at a time; `near`: of the sums to a tie."""

    numbers: ClassVar[tuple[str, ...]] = ("columns", "near")
    direct: bool
    columns: int
    near: int


def prepare(_: Arrays, instr: Instr) -> Prepared:
    """Return how the columns of b are taken."""
    shape = MatMul.of(instr)
    direct = shape.b_row == 1 and shape.b_col == shape.k
    columns = min(shape.n, _DIRECT_COLUMNS if direct else _BLOCK_BYTES // shape.k)
    return Prepared(plan=MatMulPlan(direct=direct, columns=columns, near=near_tie(_most(instr))))


def _scratch(instr: Instr) -> int:
    """Two words per element of a row, biases, and the columns that are copied."""
    k, plan = instr.int_("k"), plan_of(instr, MatMulPlan)
    return 8 * k + 4 * (plan.columns + 1) + (0 if plan.direct else plan.columns * k)


MATMUL = both(
    KernelVariant(
        "v7m",
        rank=5,
        header=HEADER,
        accepts=_accepts,
        prepare=prepare,
        scratch_bytes=_scratch,
        reads=Reads(value_bytes=2),
    )
)

VARIANTS = {
    "matmul_s8": MATMUL,
}
