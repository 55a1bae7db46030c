"""lstm_s8 and gru_s8 on A64 and A32, all gates of a cell at a time (a64_gates.py, glow_a32_gates.h)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.common.assembly import joined
from glowc.kernels.common.recurrent import (
    BLOCK,
    CODED_LAYERS,
    CONSTANTS,
    FOUR,
    IN_STREAM,
    PAIR,
    Part,
    by_cell,
    in_blocks,
    in_runs,
    resets_first,
    stream_bytes,
    weight_bytes,
)
from glowc.kernels.features import Stated
from glowc.kernels.simd.a64_gates import gates
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_CELLS = 8  # whose functions are computed at a time
_MOST_BLOCKS = 8  # printed one after the other


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerPlan(Plan):
    """`paired`: sums of two products fit int16. `printed`: by a function of the layer's own.

    Of inputs and of states, where it is: a `whole` block of 16 codes, or none, then so many `blocks` so many `times`,
    then `more` codes. `bytes` of a direction; `count` of what is computed at a time. Of a GRU that resets first both
    are of update and reset in `first` and `count`, of new after them in `fours`.
    """

    paired: bool = False
    printed: bool = False
    whole: int = 0
    blocks: int = 0
    times: int = 0
    more: int = 0
    past_whole: int = 0
    past_blocks: int = 0
    past_times: int = 0
    past_more: int = 0
    bytes: int = 0
    count: int = 0
    first: int = 0
    fours: int = 0

    def gates(self, count: int) -> str:
        """Return the assembly of the layer's own function, of so many gates at a time."""
        own = (self.whole, self.blocks, self.times, self.more)
        past = (self.past_whole, self.past_blocks, self.past_times, self.past_more)
        return joined(gates(count, own, past))


def prepare(constants: Arrays, instr: Instr) -> Prepared:
    """Return the streams of A64 where no weight is -128."""
    return _prepared(constants, instr, _at_once, printed=True)


def prepare_a32(constants: Arrays, instr: Instr) -> Prepared:
    """Return the streams of A32 where no weight is -128."""
    return _prepared(constants, instr, lambda own, past: [_stream(own, past)], printed=False)


def _prepared(
    constants: Arrays, instr: Instr, at_once: Callable[[Part, Part], list[np.ndarray]], *, printed: bool
) -> Prepared:  # fmt: skip
    directions = by_cell(constants, instr)
    if min(part.weights.min() for parts in directions for part in parts) < -127:
        return Prepared(plan=LayerPlan())
    arrange = _resetting if resets_first(instr) else at_once
    streams = [arrange(*parts) for parts in directions]
    own, past = (_blocks(instr.int_(name)) for name in ("in_k", "hidden"))
    first, last = streams[0][0], streams[0][-1]
    plan = LayerPlan(
        paired=True, printed=printed, whole=own[0], blocks=own[1], times=own[2], more=own[3], past_whole=past[0],
        past_blocks=past[1], past_times=past[2], past_more=past[3], bytes=sum(x.size for x in streams[0]),
        count=len(first), first=first.size, fours=len(last),
    )  # fmt: skip
    return Prepared({**IN_STREAM, "weights": np.concatenate([x.reshape(-1) for parts in streams for x in parts])}, plan)


def _blocks(codes: int) -> tuple[int, int, int, int]:
    """Return whether there is a first block, how many others at a time, how often, and how many codes are left."""
    blocks, left = divmod(codes, BLOCK)
    return (int(blocks > 0), *in_runs(max(blocks - 1, 0), _MOST_BLOCKS), left)


def _at_once(own: Part, past: Part) -> list[np.ndarray]:
    """Return [H, bytes] of an LSTM; of a GRU [H / 2, bytes], for two cells."""
    if own.weights.shape[1] % 2 == 0:
        return [_stream(own, past)]
    own, past = own.together(PAIR), past.together(PAIR)
    ends = [array for pair in ((own.bias, past.bias), (own.scale, past.scale)) for array in _of_gru(*pair)]
    return [stream_bytes(weight_bytes(own.weights), weight_bytes(past.weights), *ends)]


def _resetting(own: Part, past: Part) -> list[np.ndarray]:
    """Return [H / 2, bytes] of update and reset, [H / 4, bytes] of new."""
    spans = ((0, 2), PAIR), ((2, 3), FOUR)
    return [_stream(own.gates(*span).together(n), past.gates(*span).together(n)) for span, n in spans]


def _stream(own: Part, past: Part) -> np.ndarray:
    """Return [H, bytes] of gates that are sums over inputs and state."""
    ends = own.bias, past.bias, own.scale, past.scale
    return stream_bytes(weight_bytes(own.weights), weight_bytes(past.weights), *ends)


def _of_gru(own: np.ndarray, past: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return update and reset of two cells, of inputs and of the state, and new of inputs and state of both."""
    gates, new = (0, 1, 3, 4), (2, 5)
    return own[:, gates], past[:, gates], np.stack((own[:, new], past[:, new]), axis=2).reshape(-1, 4)


def scratch_bytes(instr: Instr) -> int:
    """Return the bytes of gates and cells, whole eights of them, and of codes."""
    inputs, states = instr.int_("in_k"), instr.int_("hidden")
    eights = -(-states // _CELLS) * _CELLS
    return 2 * eights * (4 + instr.int_("batch")) + in_blocks(inputs) + in_blocks(states)


_A64 = KernelVariant(
    "a64", rank=20, header="glow_neon_gates.h", prepare=prepare, scratch_bytes=scratch_bytes, packs=CONSTANTS,
    stated=Stated(macs=0.23, outputs=33),
)  # fmt: skip
_A32 = replace(
    _A64, isa="a32", header="glow_a32_gates.h", prepare=prepare_a32, stated=Stated(macs=0.45, outputs=69)
)  # fmt: skip
VARIANTS = dict.fromkeys(CODED_LAYERS, (_A64, _A32))
