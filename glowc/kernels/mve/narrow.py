"""Weights of few bits or of a palette on Helium: of fully connected layers as they are stored, of others unpacked
(runtime_c/mve/glow_mve_narrow.h, glow_mve_unpack.h).
"""

from __future__ import annotations

from dataclasses import replace

from glowc.graph.few_codes import NARROW_BITS
from glowc.kernels.common.constants import WEIGHTED
from glowc.kernels.common.narrow import (
    by_lanes,
    holds_bytes,
    indexed_by,
    read_as_stored,
    unpacking,
    weight_bits,
    weight_palette,
)  # fmt: skip
from glowc.kernels.features import Stated
from glowc.kernels.mve import fully_connected
from glowc.kernels.mve.shared import FAST
from glowc.kernels.mve.stream import VECTOR
from glowc.program.ir import Instr

_LANES, _HEADER = 4, "glow_mve_unpack.h"


def accepts(instr: Instr) -> bool:
    """Accept weights of few bits, and whole vectors of inputs."""
    return weight_bits(instr) > 0 and _has_vectors(instr)


def accepts_palette(instr: Instr) -> bool:
    """Accept the same of weights of a palette."""
    return bool(weight_palette(instr)) and _has_vectors(instr)


def _has_vectors(instr: Instr) -> bool:
    return instr.int_("in_k") % VECTOR == 0 and fully_connected.accepts(instr)


NARROW = replace(
    FAST, form="narrow", rank=21, accepts=accepts, prepare=read_as_stored(fully_connected.SCALED, _LANES),
    packs=WEIGHTED, header="glow_mve_narrow.h", template="{}_narrow", unpacks=True, stated=Stated(macs=0.25),
)  # fmt: skip
PALETTE = replace(NARROW, form="palette", template="{}_palette", accepts=accepts_palette, stated=Stated(macs=0.32))
_BYTES = replace(FAST, accepts=holds_bytes, header=_HEADER)

VARIANTS = {
    "fc_s8": (NARROW, PALETTE),
    **unpacking(_BYTES, _LANES, _HEADER),
    **{f"unpack_p{bits}": (indexed_by(_BYTES, bits, by_lanes(_LANES), _LANES),) for bits in NARROW_BITS},
}
