"""Variants for cores without SIMD: one for Armv7-M, `m3`, and from the same template one for Armv6-M, `m0`."""

from __future__ import annotations

from dataclasses import replace

from glowc.kernels.base import KernelVariant

NEEDS = frozenset({"thumb2"})
HEADER = "glow_m3.h"


def both(variant: KernelVariant) -> tuple[KernelVariant, KernelVariant]:
    """Return a variant for Armv7-M, and the same for Armv6-M."""
    isa, header = (text.replace("m3", "m0") for text in (variant.isa, variant.header))
    return variant, replace(variant, isa=isa, needs=frozenset({"thumb1"}), header=header)
