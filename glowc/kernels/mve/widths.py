"""Codes of 8 bits to codes of 16 and back by the upper halves of products (glow_mve_widths.h)."""

from __future__ import annotations

from dataclasses import replace

from glowc.kernels.common.widths import accepts_widths, prepare_widths
from glowc.kernels.features import Stated
from glowc.kernels.mve.shared import FAST

VARIANTS = {
    "requantize": (
        replace(
            FAST, form="widths", in_place=True, accepts=accepts_widths, prepare=prepare_widths,
            template="{}_widths", header="glow_mve_widths.h", stated=Stated(outputs=2),
        ),
    ),
}  # fmt: skip
