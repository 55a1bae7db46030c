"""Which form a block of channels takes in the streams of the `dsp` variants: chosen by pairs, proved for all inputs.

dual   two channels share a halfword, 256 * even + odd: one SMLAD sums both, a second one the odd channel alone
bytes  the same bytes, of which both channels are taken out before they are multiplied: slower, for any int8 weights
wide   a halfword each, for layers with weights beyond int8

A pair is dual when its halfwords fit 16 bits and the even sum 24. -128 in the even channel fits beside an odd weight
that is not negative; of the negated channel, whose 128 fits beside a negative one, the scale is negated too: the
product that is rounded is the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from glowc.kernels.dsp.ends import Ends, ends_of
from glowc.program.ir import Instr
from glowc.program.kernel import Arrays

GROUP = 4  # inputs that one word of int8 holds; also output channels of a block
SUMMED = 128  # inputs less their zero point whose sum fits a halfword
_LEAST_SUMMED = 16  # inputs and outputs, from which on sums pay
_MAX_EVEN_SUM = 1 << 23
_RUN_COST = 70  # instructions that one more call takes


@dataclass(frozen=True, slots=True)
class Run:
    """Blocks of channels side by side that have one form."""

    blocks: int
    dual: bool


@dataclass(frozen=True, slots=True)
class Padded:
    """A layer filled up to whole blocks of channels and whole groups of inputs."""

    weights: np.ndarray  # int64 [O, K]
    biases: np.ndarray  # int64 [O]
    ends: Ends
    signs: np.ndarray  # int64 [O]: -1 where a channel is negated when its pair is dual
    narrow: bool  # every weight is int8
    dual: np.ndarray  # bool [O / 2]: the pair may be dual
    low: np.ndarray  # int64 [O]: the least sum of each channel
    high: np.ndarray  # and the greatest
    totals: np.ndarray  # int64 [O]: of the weights that inputs have

    @property
    def sums(self) -> tuple[int, int]:
        """The least and the greatest sum of all channels."""
        return int(self.low.min()), int(self.high.max())

    def negated(self, dual: np.ndarray) -> Padded:
        """Return the layer with the channels negated that are to be so, of those blocks that are `dual`."""
        signs = np.where(np.repeat(dual, len(self.signs) // len(dual)), self.signs, 1)
        weights, ends = self.weights * signs[:, None], self.ends.negated(signs)
        low, high = np.minimum(self.low * signs, self.high * signs), np.maximum(self.low * signs, self.high * signs)
        biases, totals = self.biases * signs, self.totals * signs
        return replace(self, weights=weights, biases=biases, ends=ends, low=low, high=high, totals=totals)


def summed_groups(weights: np.ndarray, instr: Instr, unit: int = 1) -> int:
    """Return the groups of sums of inputs that let weights[O, K] with a zero point be bytes; 0 where they do not pay.

    A sum of SUMMED inputs is one more input; channels whose weights are moved by a number have the negative one there.
    The groups are whole units.
    """
    less = weights.astype(np.int64) - instr.int_("w_zp")
    useful = not _are_bytes(less) and _are_bytes(-_moves(less)) and min(weights.shape) >= _LEAST_SUMMED
    return -(-weights.shape[1] // (SUMMED * GROUP * unit)) * unit if useful else 0


def _moves(weights: np.ndarray) -> np.ndarray:
    """Return what to add to the weights[O, K] of each channel so that they are bytes, if possible not -128."""
    low, high = weights.min(1, initial=0), weights.max(1, initial=0)
    down, up = np.minimum(127 - high, 0), np.maximum(-127 - low, 0)
    return np.asarray(np.where(high - low > 254, 127 - high, down + up))


def _are_bytes(values: np.ndarray) -> bool:
    return bool(values.min(initial=0) >= -128 and values.max(initial=0) <= 127)


def padded_layer(
    weights: np.ndarray, constants: Arrays, instr: Instr, channels: int, unit: int = 1, *, signed: bool = True,
    summed: int = 0,
) -> Padded:  # fmt: skip
    """Fill weights[O, K], less their zero point, up to whole blocks of `channels` and units of groups.

    Constant channels are simplified; with `signed`, channels may be negated where that makes their pair dual. With so
    many groups of `summed` inputs weights are moved to be bytes.
    """
    out_n, k = weights.shape
    blocks, groups = -(-out_n // channels), -(-k // (unit * GROUP)) * unit
    padded = np.zeros((blocks * channels, groups * GROUP), np.int64)
    padded[:out_n, :k] = weights.astype(np.int64) - instr.int_("w_zp")
    biases = np.zeros(blocks * channels, np.int64)
    biases[:out_n] = constants["bias"]
    ends = ends_of(constants, out_n).filled(blocks * channels)
    simplify_constant_channels(padded, biases, ends, instr)
    (low, high), totals = _sums(padded, biases, instr), padded.sum(1)
    if summed:
        moves = _moves(padded)[:, None]
        padded = np.concatenate((padded + moves, np.repeat(-moves, summed * GROUP, axis=1)), axis=1)
    narrow = _are_bytes(padded)
    bounded = np.maximum(-low, high) < 1 << 31  # of -2^31 there is no other sign
    signs = pair_signs(padded, bounded & (signed and ends.may_be_negative))
    dual = dual_pairs(padded * signs[:, None], np.minimum(low, -high)[0::2], np.maximum(high, -low)[0::2])
    return Padded(padded, biases, ends, signs, narrow, dual, low, high, totals)


def _sums(weights: np.ndarray, biases: np.ndarray, instr: Instr) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the greatest sum of each channel over all int8 inputs."""
    ends = [weights * (x - instr.int_("in_zp")) for x in (-128, 127)]
    return np.minimum(*ends).sum(1) + biases, np.maximum(*ends).sum(1) + biases


def simplify_constant_channels(weights: np.ndarray, biases: np.ndarray, ends: Ends, instr: Instr) -> None:
    """Replace, in place, channels whose sums are large and whose output is one code by a small bias."""
    low, high = _sums(weights, biases, instr)
    small = np.clip(low, 1 - _MAX_EVEN_SUM, _MAX_EVEN_SUM - 1)
    codes = [ends.codes(sums, instr) for sums in (low, high, small)]
    one = (codes[0] == codes[1]) & (codes[0] == codes[2]) & (np.maximum(-low, high) >= _MAX_EVEN_SUM)
    weights[one], biases[one] = 0, small[one]


def pair_signs(weights: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Return the signs that let pairs of weights[O, K] fit a halfword; -1 only for channels that are `free`."""
    even, odd = weights[0::2], weights[1::2]
    signs, left = np.ones((len(even), 2), np.int64), free.reshape(-1, 2).all(1) & ~_fits(even, odd)
    for pair in ((-1, 1), (1, -1), (-1, -1)) if left.any() else ():
        fitting = left & _fits(pair[0] * even, pair[1] * odd)
        signs[fitting] = pair
        left &= ~fitting
    return signs.reshape(-1)


def _fits(even: np.ndarray, odd: np.ndarray) -> np.ndarray:
    """Say of which pairs [O / 2, K] 256 * even + odd fits a halfword whose low byte is odd."""
    halves = 256 * even + odd
    is_byte = (odd.min(1, initial=0) >= -128) & (odd.max(1, initial=0) <= 127)
    return np.asarray(is_byte & (halves.min(1, initial=0) >= -(1 << 15)) & (halves.max(1, initial=0) < 1 << 15))


def dual_pairs(weights: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return which pairs of weights[O, K] may be dual; the sums of the even channels lie between `low` and `high`."""
    return np.asarray((low > -_MAX_EVEN_SUM) & (high < _MAX_EVEN_SUM) & _fits(weights[0::2], weights[1::2]))


def joined(even: np.ndarray, odd: np.ndarray, dual: np.ndarray) -> np.ndarray:
    """Return the halfwords of pairs of channels [blocks, ...]: 256 * even + odd where `dual`, else both bytes."""
    low = np.where(dual.reshape(-1, *(1,) * (odd.ndim - 1)), odd, odd & 0xFF)
    return np.asarray(256 * even + low)


def runs(dual: np.ndarray, block_cost: int, *, rest: bool) -> tuple[Run, ...]:
    """Return the runs of blocks, of which `dual` may be so; few dual ones between others take their form.

    `block_cost` are the instructions that a block takes more in bytes; with `rest` the last block is a run by itself.
    """
    found = [Run(len(list(same)), bool(kind)) for kind, same in groupby(dual.tolist())]
    if len(found) > 1:
        found = [Run(r.blocks, r.dual and r.blocks * block_cost > _calls(n, len(found))) for n, r in enumerate(found)]
    joined = [Run(sum(r.blocks for r in same), kind) for kind, same in _alike(found)]
    if rest and joined[-1].blocks > 1:
        joined[-1:] = [Run(joined[-1].blocks - 1, joined[-1].dual), Run(1, joined[-1].dual)]
    return tuple(joined)


def _alike(found: list[Run]) -> list[tuple[bool, list[Run]]]:
    return [(kind, list(same)) for kind, same in groupby(found, key=lambda run: run.dual)]


def _calls(n: int, count: int) -> int:
    """Return what the calls cost that run `n` of `count` makes necessary."""
    return _RUN_COST * (1 if n in (0, count - 1) else 2)


def dual_blocks(found: tuple[Run, ...]) -> np.ndarray:
    """Return which blocks are dual."""
    return np.repeat([run.dual for run in found], [run.blocks for run in found])


def form_of(narrow: bool, found: tuple[Run, ...]) -> str:
    """Return the form of a layer: "mixed" when the stream begins with a table of its runs."""
    if not narrow:
        return "wide"
    return "dual" if all(run.dual for run in found) else "mixed"


def run_table(form: str, found: tuple[Run, ...]) -> np.ndarray:
    """Return the words in front of a mixed stream: the number of runs; of each, 2 * blocks, and 1 when in bytes."""
    words = [len(found), *(2 * run.blocks + (not run.dual) for run in found)] if form == "mixed" else []
    return np.array(words, np.int32)
