"""Bilinear interpolation of int8 codes on Helium (runtime_c/glow_mve_bilinear.h)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from glowc.kernels.base import KernelVariant
from glowc.kernels.common.bilinear import accepts_codes, is_adjacent

BILINEAR = KernelVariant(
    "mve", frozenset({"mve", "mve-fp"}), rank=20, header="glow_mve_bilinear.h", accepts=partial(is_adjacent, 4)
)  # fmt: skip

VARIANTS = {
    "bilinear_codes_s8": (replace(BILINEAR, accepts=partial(accepts_codes, 4)),),
    "bilinear_s8": (BILINEAR,),
}
