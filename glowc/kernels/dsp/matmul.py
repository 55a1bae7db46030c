"""matmul_s8 and matmul_s8q31 on SMLAD: four rows of a times pairs of columns of b, which become a stream in scratch.
LSTM and SVDF of TensorFlow Lite: four rows of weights at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant, Prepared, Reads, plan_in, plan_of
from glowc.kernels.common.factors import is_right_shift
from glowc.kernels.common.products import rows_variants
from glowc.kernels.dsp.needs import FPU
from glowc.kernels.dsp.quad_tile import QuadTile
from glowc.kernels.dsp.stream import words_before
from glowc.kernels.shapes import MatMul
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_COLUMN_BYTES = 4096  # of scratch for the columns of a product at a time, where one pair does not need more


@dataclass(frozen=True, slots=True, kw_only=True)
class MatMulPlan(Plan):
    """`pairs` of columns that are prepared at a time; path: a column's elements are adjacent "rows", or "columns".

    `fixed`: codes end in a multiplier and a shift.
    """

    numbers: ClassVar[tuple[str, ...]] = ("pairs",)
    pairs: int
    fixed: bool = False

    @property
    def head(self) -> int:
        """Words of a pair of columns before those of its steps."""
        return 5 if self.fixed else 4

    @property
    def product(self) -> QuadTile:
        """The products of four rows and pairs of columns."""
        return QuadTile("wide", "multiplier" if self.fixed else "scale")


def _groups(shape: MatMul) -> int:
    return -(-shape.k // 4)


def _pairs(shape: MatMul) -> int:
    return max(1, min(-(-shape.n // 2), _COLUMN_BYTES // (16 + 16 * _groups(shape))))


def prepare(_: Arrays, instr: Instr) -> Prepared:
    """Return how the columns of b are taken."""
    shape = MatMul.of(instr)
    return Prepared(plan=MatMulPlan(pairs=_pairs(shape), path="rows" if shape.b_row == 1 else "columns"))


def _prepare_fixed(constants: Arrays, instr: Instr) -> Prepared:
    plan = plan_in(prepare(constants, instr), MatMulPlan)
    return Prepared(plan=replace(plan, fixed=True))


def _scratch(instr: Instr) -> int:
    """Four rows of the left operand and the columns as int16."""
    shape = MatMul.of(instr)
    skipped = 4 * words_before(2, 2)  # at most, of two words a step
    return 32 * _groups(shape) + skipped + _pairs(shape) * 4 * (plan_of(instr, MatMulPlan).head + 4 * _groups(shape))


def _accepts(instr: Instr) -> bool:
    """Accept int8 with adjacent columns on the left and in the output."""
    if any(instr.operand(role).type.dtype is not DType.S8 for role in ("a", "b", "out")):
        return False
    return instr.int_("a_col") == instr.int_("out_col") == 1 and instr.int_("m") >= 2 and instr.int_("n") >= 2


def _accepts_fixed(instr: Instr) -> bool:
    """Accept the same where sums are shifted to the right."""
    return _accepts(instr) and is_right_shift(instr)


MATMUL = KernelVariant(
    "dsp",
    also=FPU,
    rank=10,
    header="glow_dsp_quad.h",
    accepts=_accepts,
    scratch_bytes=_scratch,
    prepare=prepare,
    reads=Reads(value_bytes=2),
)

_FIXED = replace(
    MATMUL, header="glow_dsp_quad_q31.h", accepts=_accepts_fixed, prepare=_prepare_fixed, template="dsp/matmul_s8"
)  # fmt: skip

VARIANTS = {
    "matmul_s8": (MATMUL,),
    "matmul_s8q31": (_FIXED,),
    **rows_variants(("dsp",), "dsp", 1.7),
}
