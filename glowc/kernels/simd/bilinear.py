"""Bilinear interpolation of int8 codes on Advanced SIMD (runtime_c/glow_neon_bilinear.h)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from glowc.kernels.base import KernelVariant
from glowc.kernels.common.bilinear import accepts_codes, is_adjacent

_CHANNELS = 8

_A64 = KernelVariant(
    "a64", rank=30, header="glow_neon_bilinear.h", accepts=partial(is_adjacent, _CHANNELS)
)  # fmt: skip
BILINEAR = (_A64, replace(_A64, isa="a32"))

VARIANTS = {
    "bilinear_codes_s8": tuple(replace(v, accepts=partial(accepts_codes, _CHANNELS)) for v in BILINEAR),
    "bilinear_s8": BILINEAR,
}
