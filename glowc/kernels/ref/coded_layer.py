"""The plain variants of lstm_s8 and gru_s8, whose cells lie in scratch."""

from __future__ import annotations

from dataclasses import replace

from glowc.kernels.base import PLAIN
from glowc.kernels.common.recurrent import coded_scratch, resets_first
from glowc.program.ir import Instr


def scratch_bytes(instr: Instr) -> int:
    """Return the bytes of cells and, where a GRU resets before it multiplies, of a gate and of the codes left."""
    return coded_scratch(instr) + (3 * instr.int_("hidden") if resets_first(instr) else 0)


_LAYER = replace(PLAIN, header="glow_gates.h", scratch_bytes=scratch_bytes)
VARIANTS = {"lstm_s8": (_LAYER,), "gru_s8": (_LAYER,)}
