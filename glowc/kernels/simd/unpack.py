"""Weights of few bits on Advanced SIMD."""

from __future__ import annotations

from dataclasses import dataclass

from glowc.graph.few_codes import NARROW_BITS
from glowc.kernels.base import KernelVariant
from glowc.kernels.common.narrow import UnpackPlan, by_lanes, holds_bytes, indexed_by, stored_by

_LANES, _ENTRIES = 4, 16
_ISAS = ("a32", "a64")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnpackVectorPlan(UnpackPlan):
    """The same, and the codes in a vector of stored words."""

    def lowest(self, stored: str) -> list[tuple[int, str]]:
        """Return, for each vector of weights in a vector of stored words, its first word and its codes."""
        shifted = [f"vshrq_n_u8({stored}, {k * self.bits})" if k else stored for k in range(self.per)]
        masked = [f"vandq_u8({codes}, vdupq_n_u8({(1 << self.bits) - 1}))" for codes in shifted[:-1]]
        return [(4 * k, codes) for k, codes in enumerate((*masked, shifted[-1]))]


def _plain(isa: str, bits: int) -> KernelVariant:
    return stored_by(
        KernelVariant(isa, rank=30, accepts=holds_bytes), bits, _LANES, "glow_neon_codes.h", UnpackVectorPlan
    )


def _palette(isa: str, bits: int) -> KernelVariant:
    """Return the variant of a palette, which fills a vector."""
    variant = KernelVariant(isa, rank=30, accepts=holds_bytes, header="glow_neon_palette.h")
    return indexed_by(variant, bits, by_lanes(_LANES), _LANES, entries=_ENTRIES, plan=UnpackVectorPlan)


VARIANTS = {
    **{f"unpack_s{bits}": tuple(_plain(isa, bits) for isa in _ISAS) for bits in NARROW_BITS},
    **{f"unpack_p{bits}": tuple(_palette(isa, bits) for isa in _ISAS) for bits in NARROW_BITS},
}
