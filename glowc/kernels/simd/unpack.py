"""Weights of few bits on Advanced SIMD."""

from __future__ import annotations

from glowc.graph.few_codes import NARROW_BITS
from glowc.kernels.base import KernelVariant
from glowc.kernels.common.narrow import by_lanes, holds_bytes, indexed_by, stored_by

_LANES, _ENTRIES = 4, 16
_ISAS = ("a32", "a64")


def _plain(isa: str, bits: int) -> KernelVariant:
    return stored_by(KernelVariant(isa, rank=30, accepts=holds_bytes), bits, _LANES, "glow_neon_codes.h")


def _palette(isa: str, bits: int) -> KernelVariant:
    """Return the variant of a palette, which fills a vector."""
    variant = KernelVariant(isa, rank=30, accepts=holds_bytes, header="glow_neon_palette.h")
    return indexed_by(variant, bits, by_lanes(_LANES), _LANES, entries=_ENTRIES)


VARIANTS = {
    **{f"unpack_s{bits}": tuple(_plain(isa, bits) for isa in _ISAS) for bits in NARROW_BITS},
    **{f"unpack_p{bits}": tuple(_palette(isa, bits) for isa in _ISAS) for bits in NARROW_BITS},
}
