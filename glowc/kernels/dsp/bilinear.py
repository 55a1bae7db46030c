"""Bilinear interpolation of int8 codes in integers, beside an FPU (runtime_c/glow_thumb_bilinear.h)."""

from __future__ import annotations

from functools import partial

from glowc.kernels.base import KernelVariant
from glowc.kernels.common.bilinear import accepts_fixed, prepare_fixed
from glowc.kernels.dsp.needs import FPU

_CHANNELS = 6  # where the integer weights of a pixel pay off beside an FPU

BILINEAR = KernelVariant(
    "dsp", also=FPU, rank=5, header="glow_thumb_bilinear.h",
    template="common/bilinear_fixed", prepare=prepare_fixed,
    accepts=partial(accepts_fixed, _CHANNELS),
)  # fmt: skip

VARIANTS = {"bilinear_s8": (BILINEAR,)}
