"""Variants for cores without SIMD: one for Armv7-M, and from the same template one for Armv6-M."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from glowc.kernels.base import KernelVariant
from glowc.kernels.common.factors import FIXED

HEADER, V6M_HEADER, SMALL_HEADER = "glow_m3.h", "glow_m0.h", "glow_thumb_dw.h"
Q31_HEADER, Q31_SMALL_HEADER = "glow_fixed_thumb.h", "glow_fixed_thumb_dw.h"


def both(variant: KernelVariant) -> tuple[KernelVariant, KernelVariant]:
    """Return a variant for Armv7-M, and the same for Armv6-M."""
    header = V6M_HEADER if variant.header == HEADER else variant.header
    return variant, replace(variant, isa="v6m", header=header)


def fixed(variants: Iterable[KernelVariant]) -> tuple[KernelVariant, ...]:
    """Return variants of layers that end as TensorFlow Lite does, which have others where there is Helium."""
    headers = {SMALL_HEADER: Q31_SMALL_HEADER}
    slow = frozenset({"mve"})
    return tuple(
        replace(v, packs=FIXED, header=headers.get(v.header, Q31_HEADER), slow_with=slow) for v in variants
    )  # fmt: skip
