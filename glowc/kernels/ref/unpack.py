"""The plain variants of the kernels that unpack weights of few bits, and where these lie in what plain layers read."""

from __future__ import annotations

from dataclasses import replace

from glowc.graph.few_codes import NARROW_BITS
from glowc.kernels.base import PLAIN
from glowc.kernels.common.narrow import by_lanes, indexed_by, unpacking
from glowc.kernels.records import plain_records

_LAYER = replace(PLAIN, records=plain_records)
_PALETTE = replace(PLAIN, header="glow_palette.h")

VARIANTS = {
    **dict.fromkeys(("conv_s8", "fc_s8", "conv_s16", "fc_s16"), (_LAYER,)), **unpacking(PLAIN, 1, ""),
    **{f"unpack_p{bits}": (indexed_by(_PALETTE, bits, by_lanes(1), 1),) for bits in NARROW_BITS},
}  # fmt: skip
