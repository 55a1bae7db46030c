"""fc_f32_blocks on Advanced SIMD (runtime_c/simd/glow_neon_digits.h): four outputs, with or without dot products."""

from __future__ import annotations

from glowc.kernels.base import KernelVariant
from glowc.kernels.common.digits import Lanes, by_digits
from glowc.kernels.simd.core import both

_HEADER = "glow_neon_digits.h"
_FOUR = Lanes(4, signed=True, call="glow_neon_digits")

VARIANTS = {
    "fc_f32_blocks": (
        *both(by_digits(KernelVariant("a64", rank=30), _FOUR, _HEADER, macs=1.0)),
        by_digits(KernelVariant("dot", rank=40), _FOUR, _HEADER, macs=0.5),
    ),
}
