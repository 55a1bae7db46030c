"""lstm_s8 and gru_s8 on SMLAD, the gates of a cell at a time (runtime_c/dsp/glow_dsp_gates.h)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.common.recurrent import (
    CODED_LAYERS,
    CONSTANTS,
    FOUR,
    IN_STREAM,
    PAIR,
    Part,
    by_cell,
    in_runs,
    resets_first,
)
from glowc.kernels.dsp.needs import FPU
from glowc.kernels.features import Stated
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_UNIT = 8
_EXPANDED = (0, 2, 1, 3)  # the order of four inputs
_MOST_UNITS = {4: 2, 6: 1}  # printed one after the other, by gates at a time: all code fits a cache of 1 KB
_LIMIT = 1 << 23


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerPlan(Plan):
    """`dual`: two gates share a sum. Of inputs and of states: so many `units` at a time, whether `again`, and `more`
    pairs. `words` of the stream of a direction, `first` of them those of update and reset of a GRU that resets first.
    """

    dual: bool = False
    units: int = 0
    again: int = 0
    more: int = 0
    past_units: int = 0
    past_again: int = 0
    past_more: int = 0
    words: int = 0
    first: int = 0


def prepare(constants: Arrays, instr: Instr) -> Prepared:
    """Return the streams where sums of two gates fit one register."""
    directions = by_cell(constants, instr)
    if not all(_fits(part) for parts in directions for part in parts):
        return Prepared(plan=LayerPlan())
    arrange = _resetting if resets_first(instr) else _at_once
    arranged = [arrange(*parts) for parts in directions]
    streams = [[_stream(parts) for parts in direction] for direction in arranged]
    most = _MOST_UNITS[arranged[0][0][0].weights.shape[1]]
    own, past = (_units(instr.int_(name), most) for name in ("in_k", "hidden"))
    plan = LayerPlan(
        dual=True, units=own[0], again=own[1], more=own[2], past_units=past[0], past_again=past[1], past_more=past[2],
        words=sum(map(len, streams[0])), first=len(streams[0][0]),
    )  # fmt: skip
    return Prepared({**IN_STREAM, "weights": np.concatenate([words for parts in streams for words in parts])}, plan)


def _units(inputs: int, most: int) -> tuple[int, int, int]:
    """Return the units at a time, whether there are more, and the pairs of inputs that are left."""
    at_once, times = in_runs(_even(inputs) // _UNIT, most)
    return at_once, int(times > 1), _even(inputs) % _UNIT // 2


def _even(count: int) -> int:
    return count + count % 2


def _fits(part: Part) -> bool:
    """Say whether a halfword holds the weights of two gates, and no sum with its bias leaves 24 bits."""
    most = 128 * np.abs(part.weights).sum(axis=2) + np.abs(part.bias)
    return bool(part.weights.min() >= -127) and bool(most.max() < _LIMIT)


_Parts = tuple[Part, Part]  # of inputs, of the state


def _at_once(own: Part, past: Part) -> list[_Parts]:
    """Return the gates of an LSTM; of a GRU (update, reset) of one cell and of the next, (new, new) of both."""
    if own.weights.shape[1] % 2 == 0:
        return [(own, past)]
    pairs, order = (own.together(PAIR), past.together(PAIR)), np.array((0, 1, 3, 4, 2, 5))
    return [(_ordered(pairs[0], order), _ordered(pairs[1], order))]


def _ordered(part: Part, order: np.ndarray) -> Part:
    return Part(part.weights[:, order], part.bias[:, order], part.scale[:, order])


def _resetting(own: Part, past: Part) -> list[_Parts]:
    """Return (update, reset) of pairs of cells, and new of fours of them."""
    sides = own, past
    first, new = ([part.gates(*span).together(n) for part in sides] for span, n in (((0, 2), PAIR), ((2, 3), FOUR)))
    return [(first[0], first[1]), (new[0], new[1])]


def _stream(parts: _Parts) -> np.ndarray:
    """Return the words of gates that are computed together."""
    return np.concatenate([_words(part) for part in parts], axis=1).reshape(-1)


def _words(part: Part) -> np.ndarray:
    """Return [H, words] of one part, whose gates go two by two."""
    cells, gates, inputs = part.weights.shape
    padded = np.pad(part.weights, ((0, 0), (0, 0), (0, inputs % 2)))
    whole = _even(inputs) // 4 * 4  # the last two are in their own order
    fours = padded[:, :, :whole].reshape(cells, gates, -1, 4)
    padded[:, :, :whole] = fours[..., _EXPANDED].reshape(cells, gates, -1)
    pairs = (256 * padded[:, 0::2] + padded[:, 1::2]).astype(np.int16)  # [H, G / 2, K]
    words = np.ascontiguousarray(pairs).view(np.int32).transpose(0, 2, 1)  # [H, K / 2, G / 2]
    starts = part.bias.copy()
    starts[:, 0::2] = 256 * starts[:, 0::2] + starts[:, 1::2]
    ends = np.ascontiguousarray(part.scale.astype(np.float32)).view(np.int32)
    return np.concatenate((starts.astype(np.int32), words.reshape(cells, -1), ends), axis=1)


def scratch_bytes(instr: Instr) -> int:
    """Return the bytes of a row of inputs, the state and the cells of the batch, all in whole pairs, and of gates."""
    states = _even(instr.int_("hidden"))
    gates = 2 * states + -(-states // FOUR) * FOUR if resets_first(instr) else 0
    return 2 * (_even(instr.int_("in_k")) + (1 + instr.int_("batch")) * states + gates)


_LAYER = KernelVariant(
    "dsp", also=FPU, rank=11, header="glow_dsp_gates.h", prepare=prepare, scratch_bytes=scratch_bytes, packs=CONSTANTS,
    stated=Stated(macs=0.86, outputs=76),
)  # fmt: skip
VARIANTS = dict.fromkeys(CODED_LAYERS, (_LAYER,))
