"""TensorFlow Lite's layers that multiply a vector of codes with four rows of weights at a time (glow_rows.h)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.features import Stated
from glowc.program.ir import Plan

_ENDINGS = {"lstm_s8q31": 600, "svdf_s8q31": 17}
"""Instructions of what an output takes besides its products: five functions by table, or what a filter remembers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsPlan(Plan):
    """`product`: the function that multiplies four rows; none where sums need 64 bits."""

    product: str = ""


def by_rows(plain: KernelVariant, product: str) -> KernelVariant:
    """Return a variant whose products are those of a function."""
    return replace(plain, prepare=lambda _, __: Prepared(plan=RowsPlan(product=product)))


def rows_variants(
    isas: tuple[str, ...], family: str, macs: float, rank: int = 20
) -> Mapping[str, tuple[KernelVariant, ...]]:
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
