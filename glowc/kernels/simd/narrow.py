"""Weights of few bits or of a palette on Advanced SIMD.

fc_s8 on A64 reads them as they are stored (runtime_c/simd/glow_neon_narrow.h); other layers' are unpacked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from glowc.graph.few_codes import NARROW_BITS
from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant
from glowc.kernels.common.constants import WEIGHTED, accepts_codes
from glowc.kernels.common.narrow import (
    UnpackPlan,
    by_lanes,
    holds_bytes,
    indexed_by,
    read_as_stored,
    stored_by,
    weight_bits,
    weight_palette,
)  # fmt: skip
from glowc.kernels.features import Stated
from glowc.kernels.simd.core import both
from glowc.kernels.simd.fully_connected import A64
from glowc.kernels.simd.stream import CHUNK
from glowc.program.ir import Instr

_OUTPUTS = 8
_LANES, _ENTRIES = 4, 16


def accepts(instr: Instr) -> bool:
    """Accept weights of few bits, whole vectors of inputs, and whole blocks of outputs."""
    return weight_bits(instr) > 0 and _has_blocks(instr)


def accepts_palette(instr: Instr) -> bool:
    """Accept the same of weights of a palette, two products of which fit 16 bits."""
    return bool(weight_palette(instr)) and weight_palette(instr)[0] > DType.S8.qmin and _has_blocks(instr)


def _has_blocks(instr: Instr) -> bool:
    whole = instr.int_("in_k") % CHUNK == instr.int_("out_n") % _OUTPUTS == 0
    return instr.int_("w_zp") == 0 and accepts_codes(instr) and whole


@dataclass(frozen=True, slots=True, kw_only=True)
class UnpackVectorPlan(UnpackPlan):
    """The same, and the codes in a vector of stored words."""

    def lowest(self, stored: str) -> list[tuple[int, str]]:
        """Return, for each vector of weights in a vector of stored words, its first word and its codes."""
        shifted = [f"vshrq_n_u8({stored}, {k * self.bits})" if k else stored for k in range(self.per)]
        masked = [f"vandq_u8({codes}, vdupq_n_u8({(1 << self.bits) - 1}))" for codes in shifted[:-1]]
        return [(4 * k, codes) for k, codes in enumerate((*masked, shifted[-1]))]


def _plain(bits: int) -> KernelVariant:
    return stored_by(_UNPACK, bits, _LANES, "glow_neon_codes.h", UnpackVectorPlan)


def _palette(bits: int) -> KernelVariant:
    """Return the variant of a palette, which fills a vector."""
    variant = replace(_UNPACK, header="glow_neon_palette.h")
    return indexed_by(variant, bits, by_lanes(_LANES), _LANES, entries=_ENTRIES, plan=UnpackVectorPlan)


_UNPACK = KernelVariant("a64", rank=30, accepts=holds_bytes)
NARROW = KernelVariant(
    "a64", form="narrow", rank=31, header="glow_neon_narrow.h", template="{}_narrow", accepts=accepts,
    prepare=read_as_stored(A64[0], lanes=4), packs=WEIGHTED, unpacks=True, stated=Stated(macs=0.33),
)  # fmt: skip
PALETTE = replace(NARROW, form="palette", template="{}_palette", accepts=accepts_palette, stated=Stated(macs=0.42))

VARIANTS = {
    "fc_s8": (NARROW, PALETTE),
    **{f"unpack_s{bits}": both(_plain(bits)) for bits in NARROW_BITS},
    **{f"unpack_p{bits}": both(_palette(bits)) for bits in NARROW_BITS},
}
