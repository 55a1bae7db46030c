"""Weights of few bits on Advanced SIMD."""

from __future__ import annotations

from glowc.kernels.base import KernelVariant
from glowc.kernels.common.narrow import holds_bytes, stored_by
from glowc.kernels.shapes import NARROW_BITS

_LANES = 4

VARIANTS = {
    f"unpack_s{bits}": tuple(
        stored_by(KernelVariant(isa, rank=30, accepts=holds_bytes), bits, _LANES, "glow_neon_codes.h")
        for isa in ("a32", "a64")
    )
    for bits in NARROW_BITS
}
