"""Codes of 8 bits to codes of 16 and back by SMLAW and SSAT (glow_dsp_widths.h)."""

from __future__ import annotations

from glowc.kernels.base import KernelVariant
from glowc.kernels.common.widths import accepts_widths, prepare_widths
from glowc.kernels.dsp.needs import FPU
from glowc.kernels.features import Stated

VARIANTS = {
    "requantize": (
        KernelVariant(
            "dsp", form="widths", also=FPU, rank=12, in_place=True, accepts=accepts_widths, prepare=prepare_widths,
            template="{}_widths", header="glow_dsp_widths.h", stated=Stated(outputs=5),
        ),
    ),
}  # fmt: skip
