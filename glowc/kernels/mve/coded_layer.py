"""lstm_s8 and gru_s8 on Helium, all gates of a cell at a time (runtime_c/mve/glow_mve_gates.h)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from glowc.kernels.base import Prepared
from glowc.kernels.common.recurrent import (
    BLOCK,
    CODED_LAYERS,
    CONSTANTS,
    FOUR,
    IN_STREAM,
    PAIR,
    Part,
    by_cell,
    coded_scratch,
    in_blocks,
    in_runs,
    resets_first,
    stream_bytes,
    weight_bytes,
)
from glowc.kernels.features import Stated
from glowc.kernels.mve.shared import FAST
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_MOST_BLOCKS = 8  # printed one after the other
_CACHED_BYTES = 24 << 10  # of weights that a data cache keeps from step to step
_REACH = 4000  # codes of a step, whose bytes are an immediate offset
_AHEAD = 4  # steps whose inputs are multiplied at once by weights that it does not keep


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerPlan(Plan):
    """Of inputs and of states: so many `blocks` of 16 codes so many `times`, then `more` codes. Words of a direction:
    `weights` first, then biases and scales, all `words`; `count` of what is computed at a time. Of a GRU that resets
    first these are of update and reset, `new_weights`, all words and `fours` of the new gate after them. The inputs of
    `ahead` steps are multiplied at once, by the first `own` words, 0: of each step by itself.
    """

    blocks: int
    times: int
    more: int
    past_blocks: int
    past_times: int
    past_more: int
    weights: int
    words: int
    count: int
    new_weights: int = 0
    fours: int = 0
    ahead: int = 0
    own: int = 0

    @property
    def input_bytes(self) -> int:
        """Bytes from the codes of a step to those of the next."""
        return in_blocks(self.blocks * self.times * BLOCK + self.more)


def prepare(constants: Arrays, instr: Instr) -> Prepared:
    """Return the streams."""
    ahead = _ahead(instr)
    arrange = _resetting if resets_first(instr) else _in_turn if ahead else _at_once
    streams = [arrange(*parts) for parts in by_cell(constants, instr)]
    own, past = (_blocks(instr.int_(name)) for name in ("in_k", "hidden"))
    first, *rest = streams[0]
    plan = LayerPlan(
        blocks=own[0], times=own[1], more=own[2], past_blocks=past[0], past_times=past[1], past_more=past[2],
        weights=first.weights.size, words=sum(x.weights.size + x.ends.size for x in streams[0]), count=len(first.ends),
        new_weights=rest[0].weights.size if rest else 0, fours=len(rest[0].ends) if rest else 0,
        ahead=ahead, own=instr.int_("hidden") * instr.int_("in_k") if ahead else 0,
    )  # fmt: skip
    arrays = [array.reshape(-1) for parts in streams for x in parts for array in (x.weights, x.ends)]
    return Prepared({**IN_STREAM, "weights": np.concatenate(arrays)}, plan)


def _ahead(instr: Instr) -> int:
    """Return the steps of an LSTM whose inputs are multiplied at once, 0: of each step by itself."""
    inputs, cells, steps = instr.int_("in_k"), instr.int_("hidden"), min(instr.int_("steps"), _AHEAD)
    single = instr.params["cell"] == "lstm" and instr.int_("batch") == 1 and steps > 1 and inputs < _REACH
    return steps if single and 4 * cells * (inputs + cells) > _CACHED_BYTES else 0


def _blocks(codes: int) -> tuple[int, int, int]:
    """Return the blocks at a time, how often, and how many codes are left."""
    return (*in_runs(codes // BLOCK, _MOST_BLOCKS), codes % BLOCK)


@dataclass(frozen=True, slots=True)
class _Stream:
    """Words of the weights of a direction, [H, words] of biases and scales."""

    weights: np.ndarray
    ends: np.ndarray


def _at_once(own: Part, past: Part) -> list[_Stream]:
    """Return the gates of an LSTM or GRU.

    Of a GRU, what the state adds to the new gate stands in front of what it adds to the others.
    """
    order = np.arange(4) if own.weights.shape[1] % 2 == 0 else np.array((2, 0, 1))
    return [_stream(own, past, order)]


def _in_turn(own: Part, past: Part) -> list[_Stream]:
    """Return the gates of an LSTM, the weights of the inputs of all cells in front of those of the state."""
    weights = (weight_bytes(part.weights).reshape(-1) for part in (own, past))
    return [_Stream(np.concatenate(list(weights)).view(np.int32), _at_once(own, past)[0].ends)]


def _resetting(own: Part, past: Part) -> list[_Stream]:
    """Return update and reset of two cells, half of all apart, and new of four."""
    spans = ((0, 2), PAIR), ((2, 3), FOUR)
    return [_stream(own.gates(*span).apart(n), past.gates(*span).apart(n), np.arange(4)) for span, n in spans]


def _stream(own: Part, past: Part, order: np.ndarray) -> _Stream:
    ends = stream_bytes(own.bias, past.bias[:, order], own.scale, past.scale[:, order])
    weights = stream_bytes(weight_bytes(own.weights), weight_bytes(past.weights)).reshape(-1)
    return _Stream(np.pad(weights, (0, -weights.size % 4)).view(np.int32), ends.view(np.int32))


def scratch_bytes(instr: Instr) -> int:
    """Return the bytes of gates, cells and codes, and of sums and codes of `ahead` steps."""
    cells, ahead = instr.int_("hidden"), instr.plan.ahead if isinstance(instr.plan, LayerPlan) else 0
    gates = -(-cells // PAIR) * 2 * PAIR + -(-cells // FOUR) * FOUR if resets_first(instr) else 4 * cells
    codes = max(ahead, 1) * in_blocks(instr.int_("in_k")) + in_blocks(cells)
    return 16 * ahead * cells + 2 * gates + coded_scratch(instr) + codes


_LAYER = replace(
    FAST, header="glow_mve_gates.h", prepare=prepare, scratch_bytes=scratch_bytes, packs=CONSTANTS,
    stated=Stated(macs=0.17, outputs=30),
)  # fmt: skip
VARIANTS = dict.fromkeys(CODED_LAYERS, (_LAYER,))
