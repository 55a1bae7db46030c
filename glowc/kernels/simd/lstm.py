"""lstm_s8 on A64, the four gates of a cell at a time (runtime_c/simd/glow_a64_lstm.h)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.common.recurrent import BLOCK, CONSTANTS, HALF, IN_STREAM, by_cell, cell_bytes, goes_forward
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_MOST_PAIRS = 4  # printed one after the other


@dataclass(frozen=True, slots=True, kw_only=True)
class LstmPlan(Plan):
    """`paired`: sums of two products fit int16. Of inputs and of states: so many `pairs` of 16 codes at a time, so
    often, and 16 more where `odd`.
    """

    paired: bool = False
    pairs: int = 0
    times: int = 1
    odd: int = 0
    past_pairs: int = 0
    past_times: int = 1
    past_odd: int = 0


def prepare(constants: Arrays, instr: Instr) -> Prepared:
    """Return the stream where no weight is -128."""
    parts = by_cell(constants, instr)[0]
    if min(part.weights.min() for part in parts) < -127:
        return Prepared(plan=LstmPlan())
    stream = np.concatenate([cell_bytes(part) for part in parts], axis=1).reshape(-1)
    return Prepared({**IN_STREAM, "weights": stream}, _plan(instr))


def _plan(instr: Instr) -> LstmPlan:
    (pairs, times, odd), past = (_blocks(instr.int_(name)) for name in ("in_k", "hidden"))
    return LstmPlan(
        paired=True, pairs=pairs, times=times, odd=odd, past_pairs=past[0], past_times=past[1], past_odd=past[2]
    )


def _blocks(codes: int) -> tuple[int, int, int]:
    """Return the pairs of blocks at a time, how often, and whether a block is left."""
    blocks = -(-codes // HALF) * HALF // BLOCK
    pairs = blocks // 2
    at_once = max(n for n in range(1, _MOST_PAIRS + 1) if pairs % n == 0) if pairs else 0
    return at_once, pairs // at_once if at_once else 1, blocks % 2


def scratch_bytes(instr: Instr) -> int:
    """Return the bytes of gates, cells and codes."""
    inputs, states = (-(-instr.int_(name) // HALF) * HALF for name in ("in_k", "hidden"))
    return 2 * states * (4 + instr.int_("batch")) + inputs + states


VARIANTS = {
    "lstm_s8": (
        KernelVariant(
            "a64", rank=20, header="glow_a64_lstm.h", prepare=prepare, scratch_bytes=scratch_bytes,
            packs=CONSTANTS, accepts=goes_forward,
        ),
    ),
}  # fmt: skip
