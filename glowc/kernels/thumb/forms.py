"""Variants for cores without SIMD: one for Armv7-M, and from the same template one for Armv6-M."""

from __future__ import annotations

from dataclasses import replace

from glowc.kernels.base import KernelVariant

HEADER, V6M_HEADER = "glow_m3.h", "glow_m0.h"


def both(variant: KernelVariant) -> tuple[KernelVariant, KernelVariant]:
    """Return a variant for Armv7-M, and the same for Armv6-M."""
    header = V6M_HEADER if variant.header == HEADER else variant.header
    return variant, replace(variant, isa="v6m", header=header)
