"""lstm_s8 on A64, the four gates of a cell at a time (runtime_c/simd/glow_a64_lstm.h)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.common.recurrent import CONSTANTS, HALF, IN_STREAM, by_cell, cell_bytes
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays


@dataclass(frozen=True, slots=True, kw_only=True)
class LstmPlan(Plan):
    """`paired`: sums of two products fit int16."""

    paired: bool


def prepare(constants: Arrays, instr: Instr) -> Prepared:
    """Return the stream where no weight is -128."""
    parts = by_cell(constants, instr)
    if min(part.weights.min() for part in parts) < -127:
        return Prepared(plan=LstmPlan(paired=False))
    stream = np.concatenate([cell_bytes(part) for part in parts], axis=1).reshape(-1)
    return Prepared({**IN_STREAM, "weights": stream}, LstmPlan(paired=True))


def scratch_bytes(instr: Instr) -> int:
    """Return the bytes of gates, cells and codes."""
    inputs, states = (-(-instr.int_(name) // HALF) * HALF for name in ("in_k", "hidden"))
    return 2 * states * (4 + instr.int_("batch")) + inputs + states


VARIANTS = {
    "lstm_s8": (
        KernelVariant(
            "a64", rank=20, header="glow_a64_lstm.h", prepare=prepare, scratch_bytes=scratch_bytes,
            packs=CONSTANTS,
        ),
    ),
}  # fmt: skip
