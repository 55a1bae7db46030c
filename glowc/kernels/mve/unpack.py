"""Weights of few bits on Helium (runtime_c/mve/glow_mve_unpack.h)."""

from __future__ import annotations

from dataclasses import replace

from glowc.graph.few_codes import NARROW_BITS
from glowc.kernels.common.narrow import by_lanes, holds_bytes, indexed_by, unpacking
from glowc.kernels.mve.shared import FAST

_LANES, _HEADER = 4, "glow_mve_unpack.h"
_BYTES = replace(FAST, accepts=holds_bytes)
_PALETTE = replace(_BYTES, header=_HEADER)

VARIANTS = {
    **unpacking(_BYTES, _LANES, _HEADER),
    **{f"unpack_p{bits}": (indexed_by(_PALETTE, bits, by_lanes(_LANES), _LANES),) for bits in NARROW_BITS},
}
