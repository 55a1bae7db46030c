"""Helium variants of products besides those of int8 layers: of two tensors, of rows of weights, of dynamic scales.

Of two int8 matrices (runtime_c/mve/glow_mve_matmul.h); of two int16 tensors on VMLALDAVA (common/products.py); LSTM and
SVDF of TensorFlow Lite on VMLADAVA, four rows of weights at a time; kernels whose scales and zero points are known at
run time (runtime_c/mve/glow_mve_dynamic.h).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from glowc.graph.types import DType
from glowc.kernels.base import Prepared
from glowc.kernels.common.factors import is_right_shift
from glowc.kernels.common.products import product_variants, rows_variants
from glowc.kernels.mve.shared import FAST, GROUP, are_codes
from glowc.kernels.mve.stream import VECTOR
from glowc.kernels.shapes import FullyConnectedRows, MatMul
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_STEPS = 1 << 13  # bytes between elements of a column: eight of them fit a 16-bit offset
_SUM = 4  # bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class MatMulPlan(Plan):
    """`fixed`: codes end in a multiplier and a shift."""

    fixed: bool


def accepts_matmul(instr: Instr) -> bool:
    """Accept int8 products whose left operand has adjacent columns."""
    shape = MatMul.of(instr)
    return are_codes(instr, "a", "b", "out") and (shape.a_col == 1 or shape.k == 1) and shape.b_row < _STEPS


def prepare_matmul(_: Arrays, instr: Instr) -> Prepared:
    """Return how sums end."""
    return Prepared(plan=MatMulPlan(fixed=instr.kernel.endswith("q31")))


def _accepts_fixed(instr: Instr) -> bool:
    """Accept the same where sums are shifted to the right."""
    return accepts_matmul(instr) and is_right_shift(instr)


def matmul_scratch(instr: Instr) -> int:
    """Bytes of a term per row, and of four columns."""
    shape = MatMul.of(instr)
    return -(-shape.m // 2) * 2 * _SUM + -(-shape.k // VECTOR) * GROUP * VECTOR


def accepts_fc(instr: Instr) -> bool:
    """Accept rows of bytes and int8 weights."""
    bytes_ = instr.operand("in").type.dtype in (DType.S8, DType.U8)
    return bytes_ and are_codes(instr, "weights") and instr.operand("w_zp").type.dtype is DType.S32


def fc_scratch(instr: Instr) -> int:
    """Bytes of a sum per output, and of one row of inputs."""
    shape = FullyConnectedRows.of(instr)
    return _sums(shape.out_n) * _SUM + shape.in_k


def _sums(count: int) -> int:
    return -(-count // GROUP) * GROUP


_DYNAMIC = replace(FAST, header="glow_mve_dynamic.h")
_MATMUL = replace(
    FAST, accepts=accepts_matmul, prepare=prepare_matmul, scratch_bytes=matmul_scratch, header="glow_mve_matmul.h"
)
_FIXED = replace(
    _MATMUL, header="glow_mve_matmul_q31.h", accepts=_accepts_fixed, template="mve/matmul_s8"
)  # fmt: skip

VARIANTS = {
    "dynamic_quantize": (_DYNAMIC,),
    "fc_dynamic": (replace(_DYNAMIC, accepts=accepts_fc, scratch_bytes=fc_scratch),),
    "matmul_s8": (_MATMUL,),
    "matmul_s8q31": (_FIXED,),
    **product_variants(("mve",), "mve", 0.5, rank=21),
    **rows_variants(("mve",), "mve", 0.4, rank=21),
}
