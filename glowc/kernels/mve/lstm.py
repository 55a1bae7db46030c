"""lstm_s8 on Helium, the four gates of a cell at a time (runtime_c/mve/glow_mve_lstm.h)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from glowc.kernels.base import Prepared
from glowc.kernels.common.recurrent import CONSTANTS, HALF, IN_STREAM, by_cell, cell_bytes, coded_scratch, goes_forward
from glowc.kernels.mve.shared import FAST
from glowc.program.ir import Instr
from glowc.program.kernel import Arrays


def prepare(constants: Arrays, instr: Instr) -> Prepared:
    """Return the stream."""
    parts = [cell_bytes(part) for part in by_cell(constants, instr)[0]]
    return Prepared({**IN_STREAM, "weights": np.concatenate(parts, axis=1).reshape(-1).view(np.int32)})


def scratch_bytes(instr: Instr) -> int:
    """Return the bytes of gates, cells and codes."""
    codes = sum(-(-instr.int_(name) // HALF) * HALF for name in ("in_k", "hidden"))
    return 8 * instr.int_("hidden") + coded_scratch(instr) + codes


VARIANTS = {
    "lstm_s8": (
        replace(
            FAST, header="glow_mve_lstm.h", prepare=prepare, scratch_bytes=scratch_bytes,
            packs=CONSTANTS, accepts=goes_forward,
        ),
    ),
}  # fmt: skip
