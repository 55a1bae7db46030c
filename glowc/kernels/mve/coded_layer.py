"""lstm_s8 and gru_s8 on Helium, all gates of a cell at a time (runtime_c/mve/glow_mve_gates.h)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from glowc.kernels.base import Prepared
from glowc.kernels.common.recurrent import (
    BLOCK,
    CONSTANTS,
    IN_STREAM,
    Part,
    by_cell,
    coded_scratch,
    in_blocks,
    in_runs,
    multiplies_first,
    stream_bytes,
    weight_bytes,
)
from glowc.kernels.mve.shared import FAST
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_MOST_BLOCKS = 8  # printed one after the other


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerPlan(Plan):
    """Of inputs and of states: so many `blocks` of 16 codes so many `times`, then `more` codes. Words of a direction:
    `weights` first, then biases and scales, all `words`.
    """

    blocks: int
    times: int
    more: int
    past_blocks: int
    past_times: int
    past_more: int
    weights: int
    words: int


def prepare(constants: Arrays, instr: Instr) -> Prepared:
    """Return the streams."""
    parts = [_stream(*parts) for parts in by_cell(constants, instr)]
    own, past = (_blocks(instr.int_(name)) for name in ("in_k", "hidden"))
    plan = LayerPlan(
        blocks=own[0], times=own[1], more=own[2], past_blocks=past[0], past_times=past[1], past_more=past[2],
        weights=parts[0][0].size, words=parts[0][0].size + parts[0][1].size,
    )  # fmt: skip
    return Prepared({**IN_STREAM, "weights": np.concatenate([array for pair in parts for array in pair])}, plan)


def _blocks(codes: int) -> tuple[int, int, int]:
    """Return the blocks at a time, how often, and how many codes are left."""
    return (*in_runs(codes // BLOCK, _MOST_BLOCKS), codes % BLOCK)


def _stream(own: Part, past: Part) -> tuple[np.ndarray, np.ndarray]:
    """Return the words of weights, and of biases and scales, of a direction.

    Of a GRU, what the state adds to the new gate stands in front of what it adds to the others.
    """
    order = slice(None) if own.weights.shape[1] % 2 == 0 else np.array((2, 0, 1))
    words = stream_bytes(own.bias, past.bias[:, order], own.scale, past.scale[:, order])
    weights = stream_bytes(weight_bytes(own.weights), weight_bytes(past.weights)).reshape(-1)
    return np.pad(weights, (0, -weights.size % 4)).view(np.int32), words.reshape(-1).view(np.int32)


def scratch_bytes(instr: Instr) -> int:
    """Return the bytes of gates, cells and codes."""
    codes = sum(in_blocks(instr.int_(name)) for name in ("in_k", "hidden"))
    return 8 * instr.int_("hidden") + coded_scratch(instr) + codes


_LAYER = replace(
    FAST, header="glow_mve_gates.h", prepare=prepare, scratch_bytes=scratch_bytes, packs=CONSTANTS,
    accepts=multiplies_first,
)  # fmt: skip
VARIANTS = {"lstm_s8": (_LAYER,), "gru_s8": (_LAYER,)}
