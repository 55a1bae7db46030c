"""Bilinear interpolation of int8 codes in integers, for cores without FPU (runtime_c/glow_thumb_bilinear.h)."""

from __future__ import annotations

from functools import partial

from glowc.kernels.base import KernelVariant
from glowc.kernels.common.bilinear import accepts_fixed, prepare_fixed

BILINEAR = KernelVariant(
    "soft", also=frozenset({"thumb"}), rank=5, header="glow_thumb_bilinear.h",
    template="common/bilinear_fixed", prepare=prepare_fixed,
    accepts=partial(accepts_fixed, 1),
)  # fmt: skip

VARIANTS = {"bilinear_s8": (BILINEAR,)}
