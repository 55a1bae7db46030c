"""lstm_s8 and gru_s8 on Helium, all gates of a cell at a time (runtime_c/mve/glow_mve_gates.h)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from glowc.kernels.base import Prepared
from glowc.kernels.common.recurrent import (
    BLOCK,
    CONSTANTS,
    HALF,
    IN_STREAM,
    Part,
    by_cell,
    coded_scratch,
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
    """Of inputs and of states: so many `blocks` of 16 codes so many `times`, `more`: eight after them. `words` of the
    stream of a direction.
    """

    blocks: int
    times: int
    more: int
    past_blocks: int
    past_times: int
    past_more: int
    words: int


def prepare(constants: Arrays, instr: Instr) -> Prepared:
    """Return the streams."""
    streams = np.stack([_stream(*parts).reshape(-1).view(np.int32) for parts in by_cell(constants, instr)])
    own, past = (_blocks(instr.int_(name)) for name in ("in_k", "hidden"))
    plan = LayerPlan(
        blocks=own[0], times=own[1], more=own[2], past_blocks=past[0], past_times=past[1], past_more=past[2],
        words=streams.shape[1],
    )  # fmt: skip
    return Prepared({**IN_STREAM, "weights": streams.reshape(-1)}, plan)


def _blocks(codes: int) -> tuple[int, int, int]:
    """Return the blocks at a time, how often, and whether eight codes are left."""
    blocks, half = divmod(-(-codes // HALF), BLOCK // HALF)
    return (*in_runs(blocks, _MOST_BLOCKS), half)


def _stream(own: Part, past: Part) -> np.ndarray:
    """Return [H, bytes] of a direction; of a GRU, what the state adds to the new gate stands in front of its others."""
    first = (slice(None), slice(None)) if own.weights.shape[1] % 2 == 0 else (slice(None), (2, 0, 1))
    ends = [(own.bias, past.bias[first]), (own.scale, past.scale[first])]
    weights = weight_bytes(own.weights), weight_bytes(past.weights)
    return stream_bytes(*ends[0], *weights, *ends[1])


def scratch_bytes(instr: Instr) -> int:
    """Return the bytes of gates, cells and codes."""
    codes = sum(-(-instr.int_(name) // HALF) * HALF for name in ("in_k", "hidden"))
    return 8 * instr.int_("hidden") + coded_scratch(instr) + codes


_LAYER = replace(
    FAST, header="glow_mve_gates.h", prepare=prepare, scratch_bytes=scratch_bytes, packs=CONSTANTS,
    accepts=multiplies_first,
)  # fmt: skip
VARIANTS = {"lstm_s8": (_LAYER,), "gru_s8": (_LAYER,)}
