"""The `mve` variant of fc_f32_blocks: floats as integers of 31 bits, times codes of two outputs by VMLADAVA."""

from __future__ import annotations

from dataclasses import replace

from glowc.kernels.common import blocks
from glowc.kernels.features import Stated
from glowc.kernels.mve.shared import FAST

VARIANTS = {
    "fc_f32_blocks": (
        replace(
            FAST,
            header="glow_mve_blocks.h",
            accepts=lambda instr: blocks.accepts(instr, 128),
            prepare=blocks.prepare,
            packs=frozenset({"bias"}),
            scratch_bytes=blocks.scratch_bytes,
            stated=Stated(macs=0.8, outputs=20.0),
        ),
    ),
}
