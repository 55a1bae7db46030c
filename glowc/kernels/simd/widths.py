"""Codes of 8 bits to codes of 16 and back by the upper halves of products (glow_neon_widths.h)."""

from __future__ import annotations

from dataclasses import replace

from glowc.kernels.base import KernelVariant
from glowc.kernels.common.widths import accepts_widths, prepare_widths
from glowc.kernels.features import Stated

_A64 = KernelVariant(
    "a64", form="widths", rank=40, in_place=True, accepts=accepts_widths, prepare=prepare_widths,
    template="{}_widths", header="glow_neon_widths.h", stated=Stated(outputs=2),
)  # fmt: skip

VARIANTS = {
    "requantize": (_A64, replace(_A64, isa="a32")),
}
