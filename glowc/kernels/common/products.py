"""Products by a function of the instruction set that multiplies rows.

Of two int16 tensors, or one with int8: a row with two others (common/matmul_s16.c.j2). TensorFlow Lite's layers that
multiply a vector of codes: with four rows of weights at a time (glow_rows.h).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant, Prepared, plan_of
from glowc.kernels.features import Stated
from glowc.kernels.shapes import MatMul
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

Isas = tuple[str, ...]
Variants = Mapping[str, tuple[KernelVariant, ...]]

_COPIED_BYTES = 4096  # of columns at a time, where one pair does not need more
_MOST_COLUMNS = 128  # whose totals are kept at a time
_ENDINGS = {"lstm_s8q31": 600, "svdf_s8q31": 17}
"""Instructions of what an output takes besides its products: five functions by table, or what a filter remembers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductsPlan(Plan):
    """`block` columns of b at a time; `columns` and `row` are copied where they are not adjacent int16.

    `zeros`: zero points are to be left out; `fixed`: sums end in TensorFlow Lite's fixed point.
    """

    numbers: ClassVar[tuple[str, ...]] = ("block",)
    product: str
    block: int
    columns: bool
    row: bool
    zeros: bool
    fixed: bool


def _plan(product: str, instr: Instr) -> ProductsPlan:
    shape = MatMul.of(instr)
    columns = (shape.b_row != 1 and shape.k > 1) or instr.operand("b").type.dtype is DType.S8
    most = max(2, _COPIED_BYTES // (2 * max(shape.k, 1))) if columns else _MOST_COLUMNS
    zeros = instr.int_("a_zp") != 0 or instr.int_("b_zp") != 0
    return ProductsPlan(
        product=product, block=min(shape.n, most), columns=columns, row=shape.a_col != 1 and shape.k > 1,
        zeros=zeros, fixed="mul" in instr.params,
    )  # fmt: skip


def _scratch_bytes(instr: Instr) -> int:
    """Bytes: totals of columns in 64 bits, copied columns, a copied row."""
    plan, k = plan_of(instr, ProductsPlan), instr.int_("k")
    return (8 * plan.block if plan.zeros else 0) + 2 * k * (plan.block * plan.columns + plan.row)


def product_variants(isas: Isas, family: str, macs: float, rank: int = 20) -> Variants:
    """Return those of `isas` with a function of the header glow_FAMILY_products.h, of `macs` instructions a product."""

    def prepare(_: Arrays, instr: Instr) -> Prepared:
        return Prepared(plan=_plan(f"glow_{family}_two_dots16", instr))

    variants = tuple(
        KernelVariant(
            isa, rank=rank, header=f"glow_{family}_products.h", template="common/matmul_s16", prepare=prepare,
            scratch_bytes=_scratch_bytes, stated=Stated(macs=macs, outputs=25),
        )
        for isa in isas
    )  # fmt: skip
    return dict.fromkeys(("matmul_s16", "matmul_s16q15", "matmul_s16s8q15"), variants)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsPlan(Plan):
    """`product`: the function that multiplies four rows; none where sums need 64 bits."""

    product: str = ""


def by_rows(plain: KernelVariant, product: str) -> KernelVariant:
    """Return a variant whose products are those of a function."""
    return replace(plain, prepare=lambda _, __: Prepared(plan=RowsPlan(product=product)))


def rows_variants(isas: Isas, family: str, macs: float, rank: int = 20) -> Variants:
    """Return those of `isas` with a function of the header glow_FAMILY_rows.h, of `macs` instructions a product.

    Of two that a CPU has that of the higher `rank` is taken, for their cycles were not measured.
    """
    plain = tuple(KernelVariant(isa, rank=rank, header=f"glow_{family}_rows.h", template="ref/{}") for isa in isas)
    return {
        kernel: tuple(
            replace(by_rows(one, f"glow_{family}_rows_s8"), stated=Stated(macs=macs, outputs=insns)) for one in plain
        )
        for kernel, insns in _ENDINGS.items()
    }
