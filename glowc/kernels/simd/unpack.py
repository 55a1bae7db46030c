"""unpack_s4 on Advanced SIMD."""

from __future__ import annotations

from glowc.kernels.base import KernelVariant
from glowc.kernels.common.nibbles import PACKED, holds_bytes, stored_by


def _variant(isa: str) -> KernelVariant:
    return KernelVariant(
        isa, rank=30, accepts=holds_bytes, header="glow_neon_codes.h", packs=PACKED, prepare=stored_by(4)
    )


VARIANTS = {"unpack_s4": (_variant("a32"), _variant("a64"))}
