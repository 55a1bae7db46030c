"""Constants of layers on SMLAD as one stream: weights, biases and scales (glow_dsp_gemm.h, glow_dsp_quad.h).

The forms of its blocks, and when two channels share a halfword, are told in forms.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from glowc.graph.types import DType
from glowc.kernels.common.constants import EMPTY
from glowc.kernels.common.factors import Ends
from glowc.kernels.common.header_numbers import header_number
from glowc.kernels.common.straight import straight
from glowc.kernels.dsp.common_factor import Search, common_factor
from glowc.kernels.dsp.ends import LEAST_LINES, Scales, line
from glowc.kernels.dsp.forms import GROUP, Padded, dual_blocks, form_of, joined, padded_layer, run_table, runs
from glowc.kernels.records import Records, equal_records
from glowc.program.ir import Instr
from glowc.program.kernel import Arrays

_BYTES_COST = 3  # instructions that a block in bytes takes more for two inputs of two pixels
_QUAD_BYTES_COST = 2  # that a pair in bytes takes more for a step of four pixels
_MOST_REAL = 1 << 20  # of a code before it is limited


@dataclass(frozen=True, slots=True)
class Stream:
    """The words of a layer, and their form: dual, mixed, bytes or wide, whose words are shown as int16."""

    words: np.ndarray
    form: str
    common: bool = False  # one factor for all channels, in front of the blocks
    summed: int = 0  # groups of sums of inputs
    lined: bool = False  # most pairs end by lines (glow_dsp_quads_line.h)

    @property
    def constants(self) -> Arrays:
        """The constants of a layer that has everything in its stream."""
        return {"weights": self.words.view(np.int16) if self.form == "wide" else self.words, **EMPTY}


def halfwords(weights: np.ndarray) -> np.ndarray:
    """Return weights[O, K] as [O, K / 2, 2] in the order of SXTB16: of four inputs 0 and 2, then 1 and 3."""
    pairs = weights.reshape(len(weights), -1, GROUP)[..., (0, 2, 1, 3)]
    return pairs.reshape(len(weights), -1, 2)


def fours(
    weights: np.ndarray, constants: Arrays, instr: Instr, unit: int = 1, *, fold: bool = False, crossed: bool = False,
    search: Search | None = None, summed: int = 0,
) -> Stream:  # fmt: skip
    """Return the stream of weights[O, K] by blocks of four channels, K filled up to units of groups.

    With `fold` the inputs' zero point is in the biases, for inputs that are multiplied as they are. With `crossed` the
    odd sums of dual blocks are as runtime_c/dsp/glow_dsp_fc.h tells: less products of weights. `search` looks for a
    factor that all channels of a dual layer have. `summed`: groups of sums of inputs (forms.py).
    """
    layer = padded_layer(weights, constants, instr, GROUP, unit, summed=summed)
    blocks, steps = len(layer.weights) // GROUP, layer.weights.shape[1] // 2
    whole = np.asarray(layer.dual.reshape(blocks, 2).all(1))
    found = runs(whole, _BYTES_COST * steps, rest=len(weights) % GROUP != 0)
    kind, dual = form_of(layer.narrow, found), dual_blocks(found) & layer.narrow
    layer = layer.negated(dual)
    pairs = halfwords(layer.weights).reshape(blocks, GROUP, -1, 2).transpose(0, 2, 1, 3)
    first = _first_sums(layer, dual, instr.int_("in_zp") if fold else 0, crossed=crossed)
    common = None
    if search is not None and kind == "dual" and len(weights) % GROUP == 0:
        common = common_factor(layer.ends, layer.sums, instr, search)
    first[:, :2] += common.more if common is not None else 0
    first = _wrapped(first)
    halves = pairs if kind == "wide" else joined(pairs[:, :, 0::2], pairs[:, :, 1::2], dual)
    parts = [first, _words(halves), *([layer.ends.words(GROUP)] if common is None else [])]
    lead = run_table(kind, found) if common is None else common.words
    words = np.concatenate((lead, np.concatenate(parts, axis=1).reshape(-1)))
    return Stream(words, kind, common=common is not None, summed=summed)


def _first_sums(layer: Padded, dual: np.ndarray, in_zp: int, *, crossed: bool) -> np.ndarray:
    """Return what the sums of each block begin with, int64[B, 4], those of even channels first."""
    first = (layer.biases - in_zp * layer.totals).reshape(-1, GROUP)[:, (0, 2, 1, 3)]
    first[dual, :2] = 256 * first[dual, :2] + first[dual, 2:]
    if crossed:
        first[dual, 2:] -= products_by_twos(layer.weights[1::2]).reshape(-1, 2)[dual]
    return np.asarray(first)


def products_by_twos(weights: np.ndarray) -> np.ndarray:
    """Return the sums over weights[O, K] of the products of two beside each other."""
    return np.asarray((weights[:, 0::2] * weights[:, 1::2]).sum(1))


def _words(halves: np.ndarray) -> np.ndarray:
    """Return pairs of halfwords along the last axis as int32 words, one row per block."""
    return np.ascontiguousarray(halves.astype(np.int16)).view(np.int32).reshape(len(halves), -1)


def pairs(
    weights: np.ndarray, constants: Arrays, instr: Instr, *, signed: bool = True, lines: bool = False, summed: int = 0
) -> Stream:  # fmt: skip
    """Return the stream of weights[O, K] by pairs of channels: their ends, two biases, the words of the steps.

    With `lines` dual pairs end by those where most have any: then begins and multipliers stand for biases and ends.
    `summed`: groups of sums of inputs (forms.py).
    """
    layer = padded_layer(weights, constants, instr, channels=2, signed=signed, summed=summed)
    blocks, steps = len(layer.weights) // 2, quad_steps(layer.weights, weights.shape[1]).shape[1]
    found = runs(layer.dual, _QUAD_BYTES_COST * steps, rest=len(weights) % 2 != 0)
    kind, dual = form_of(layer.narrow, found), dual_blocks(found) & layer.narrow
    layer = layer.negated(dual)
    steps_of = quad_steps(layer.weights, weights.shape[1])
    if kind == "wide":
        halves = steps_of.reshape(blocks, 2, steps, 2).transpose(0, 2, 1, 3)
    else:
        halves = joined(steps_of[0::2], steps_of[1::2], dual)
    lined = _lines(layer, instr) if lines and kind == "dual" else None
    if lined is not None:
        return Stream(quad_stream(*lined, halves, steps), kind, lined=True)
    biases, ends = layer.biases.reshape(blocks, 2), layer.ends.words(2)
    biases[dual, 0] = 256 * biases[dual, 0] + biases[dual, 1]
    words = np.concatenate((run_table(kind, found), quad_stream(ends, biases, halves, steps)))
    return Stream(words, kind)


def _lines(layer: Padded, instr: Instr) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the four words that pairs begin with, two [B, 2] each, where most end by lines.

    None where few do, or others are not told apart. Codes of others, with the fraction of lines, fit 32 bits.
    """
    assert isinstance(layer.ends, Scales)
    scales, bounds = layer.ends.scales, (instr.int_("out_min"), instr.int_("out_max"))
    ends, (low, high) = Ends.of({"scale": scales}, len(scales)), (layer.low, layer.high)
    found = straight(line(), ends, (low, high), instr.int_("out_zp"), bounds)
    most = header_number("glow_dsp_quads_line.h", "GLOW_DSP_LINE_MUL_BITS")
    pair = (found.found & (found.mul < 1 << most)).reshape(-1, 2).all(1)
    lined, told = np.repeat(pair, 2), ends.words.view(np.uint32)[0::2] >> most != 0
    large = np.maximum(-low, high)[~lined] * np.abs(scales[~lined].astype(np.float64)) >= _MOST_REAL
    if pair.mean() < LEAST_LINES or not told[~pair].all() or large.any():
        return None
    begin = np.where(lined, (layer.biases << line().shift) + found.offset, layer.biases).reshape(-1, 2)
    begin[~pair, 0] <<= line().shift
    mul = np.where(lined, found.mul, ends.words).reshape(-1, 2)
    return _wrapped(np.stack((begin[:, 1], mul[:, 0]), axis=1)), np.stack((mul[:, 1], begin[:, 0]), axis=1)


def _wrapped(sums: np.ndarray) -> np.ndarray:
    """Return sums as registers have them, modulo 2^32."""
    return np.asarray((sums + (1 << 31)) % (1 << 32) - (1 << 31), np.int32)


def quad_stream(ends: np.ndarray, biases: np.ndarray, halves: np.ndarray, steps: int) -> np.ndarray:
    """Return the words of glow_dsp_quad.h: ends[B, 2], biases[B, 2], the halfwords of `steps` steps [B, ...]."""
    biases = _wrapped(biases)
    words = np.ascontiguousarray(halves.astype(np.int16)).view(np.int32).reshape(len(biases), -1)
    each = words.shape[1] // steps
    before = np.zeros(words_before(steps, each), np.int32)
    return np.concatenate((before, np.concatenate((ends, biases, words), axis=1).reshape(-1)))


def words_before(steps: int, each: int) -> int:
    """Return the words before the first pair of channels, for steps of `each` words (glow_dsp_quad_before)."""
    chunk = header_number("glow_dsp_quad.h", "GLOW_DSP_STREAM_WORDS") // each
    return max(0, (chunk - 1 - (steps - 2) % chunk) * each - 4 - each)


def block_records(instr: Instr, form: str, channels: int, ends_bytes: int, lead: int = 0) -> Records | None:
    """Return where the weights of a stream by `fours` lie, in a form that weights of 4 bits have."""
    found = equal_records(instr, -(-channels // GROUP), head=GROUP, tail=ends_bytes // 4 - GROUP, lead=lead)
    return replace(found, joined=True) if found is not None and form == "dual" else None


def pair_records(instr: Instr, form: str, channels: int, inputs: int, head: int = 4) -> Records | None:
    """Return where the weights of a stream by `pairs` lie, in a form that weights of 4 bits have."""
    lead = words_before(quad_step_count(inputs), 1)
    found = equal_records(instr, -(-channels // 2), head=head, lead=lead)
    return replace(found, joined=True) if found is not None and form == "dual" else None


def quad_step_count(inputs: int) -> int:
    """Return the steps for `inputs` inputs (glow_dsp_quad_steps)."""
    return max(2, (inputs + 1) // 2)


def quad_steps(weights: np.ndarray, inputs: int) -> np.ndarray:
    """Return weights[O, K], K filled up to groups, as steps [O, S, 2]; the last one or two inputs are one step.

    Whole groups may follow.
    """
    pairs = halfwords(weights)
    if inputs % GROUP in (1, 2) and inputs > GROUP:
        whole = inputs // GROUP * GROUP
        last = weights[:, None, whole : whole + 2]
        pairs = np.concatenate((pairs[:, : whole // 2], last, pairs[:, (whole + GROUP) // 2 :]), axis=1)
    elif inputs <= 2:
        pairs = np.stack((weights[:, :2], 0 * weights[:, :2]), axis=1)
    return pairs


def ending(instr: Instr) -> str:
    """Tell how codes are ended: u8, v8: zero point -128; u8, n8: without limits; v8: with an upper one only."""
    limits = instr.int_("out_min") > -128, instr.int_("out_max") < 127
    if instr.int_("out_zp") == -128 and not limits[0]:
        return "v8" if limits[1] else "u8"
    return "s8" if any(limits) else "n8"


def accepts_any_zero(instr: Instr) -> bool:
    """Accept int8 layers without groups; weights less their zero point may need a halfword each."""
    if any(instr.operand(role).type.dtype is not DType.S8 for role in ("in", "weights", "out")):
        return False
    return int(instr.params.get("groups", 1)) == 1
