"""Constants of the `dsp4` variants of conv_s8 and fc_s8: four pixels or rows times pairs of channels.

runtime_c/dsp/glow_dsp_quad.h tells the form.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from glowc.kernels.base import KernelVariant, Packed
from glowc.kernels.common.constants import EMPTY
from glowc.kernels.common.header_numbers import header_number
from glowc.kernels.common.sums import sums
from glowc.kernels.dsp.forms import dual_blocks, form_of, joined, padded_layer, run_table, runs
from glowc.kernels.dsp.layers import (
    NEEDS,
    accepts_any_zero,
    collected,
    conv_plan,
    conv_scratch,
    ending,
    form,
    halfwords,
)
from glowc.kernels.dsp.shift import short_offset
from glowc.program.ir import Instr, ParamValue
from glowc.program.kernel import Arrays

_PIXELS = 4
_FC_BYTES = 4096  # of scratch for four rows
_SHIFT_BYTES = 8192  # of scratch for four pixels and their sums
_GROUP = 4
_BYTES_COST = 2  # instructions that a pair in bytes takes more for a step of four pixels
_QUAD_COST, _PAIR_COST, _BLOCK_COST = 0.70, 0.75, 9.0  # instructions per multiply-accumulate, and per output


def _groups(instr: Instr) -> int:
    return conv_scratch(instr) // 16


def plan(instr: Instr) -> Mapping[str, ParamValue]:
    """How the inputs are collected, the form of the weights, and how codes are ended."""
    return {**conv_plan(instr), "form": form(instr), "end": ending(instr)}


def _span(instr: Instr) -> int:
    """Bytes of one row under the windows of four pixels."""
    return (3 * instr.int_("stride_w") + instr.int_("k_w")) * instr.int_("in_c")


def scratch_bytes(instr: Instr) -> int:
    """Four pixels of inputs as int16; at the edges of the input also a padded piece of a row."""
    return 8 * _PIXELS * _groups(instr) + (_span(instr) if plan(instr)["path"] == "rows" else 0)


def _pays(instr: Instr) -> bool:
    """Say whether four pixels at a time need fewer instructions than two, the last ones of a row included."""
    width, height = instr.int_("out_w"), instr.int_("out_h")
    if plan(instr)["path"] != "rows":
        width, height = width * height, 1
    inputs = _GROUP * _groups(instr)
    quads = height * -(-width // 4) * 4 * (_QUAD_COST * inputs + _BLOCK_COST)
    pairs = -(-width * height // 2) * 2 * (_PAIR_COST * inputs + _BLOCK_COST)
    return quads < pairs


def accepts(instr: Instr) -> bool:
    """Accept what pays and whose scratch is at most three input rows, or two pixels, as int16."""
    if not _is_possible(instr):
        return False
    rows = 2 * 3 * instr.int_("in_w") * instr.int_("in_c")
    return scratch_bytes(instr) <= max(rows, 2 * 8 * _groups(instr)) and _pays(instr)


def _is_possible(instr: Instr) -> bool:
    if not accepts_any_zero(instr) or instr.int_("out_c") < 2:
        return False
    return conv_plan(instr)["path"] in ("point", "rows", "three")


def pack(constants: Arrays, instr: Instr) -> Packed:
    """Pack the constants of conv_s8."""
    return _packed(collected(constants["weights"], instr), constants, instr)


def _packed(weights: np.ndarray, constants: Arrays, instr: Instr, *, signed: bool = True) -> Packed:
    """Return the stream: per pair of channels two scales, two biases, the steps' words; int16 when wide."""
    layer = padded_layer(weights, constants, instr, channels=2, signed=signed)
    blocks, steps = len(layer.weights) // 2, quad_steps(layer.weights, weights.shape[1]).shape[1]
    found = runs(layer.dual, _BYTES_COST * steps, rest=len(weights) % 2 != 0)
    kind, dual = form_of(layer.narrow, found), dual_blocks(found) & layer.narrow
    layer = layer.negated(dual)
    pairs = quad_steps(layer.weights, weights.shape[1])
    biases, scales = layer.biases.reshape(blocks, 2), layer.scales.view(np.int32).reshape(blocks, 2)
    biases[dual, 0] = 256 * biases[dual, 0] + biases[dual, 1]
    if kind == "wide":
        halves = pairs.reshape(blocks, 2, steps, 2).transpose(0, 2, 1, 3)
    else:
        halves = joined(pairs[0::2], pairs[1::2], dual)
    words = np.concatenate((run_table(kind, found), quad_stream(scales, biases, halves, steps)))
    return Packed({"weights": words.view(np.int16) if kind == "wide" else words, **EMPTY}, {"form": kind})


def quad_stream(scales: np.ndarray, biases: np.ndarray, halves: np.ndarray, steps: int) -> np.ndarray:
    """Return the words of glow_dsp_quad.h: scales[B, 2], biases[B, 2], the halfwords of `steps` steps [B, ...]."""
    biases = ((biases + (1 << 31)) % (1 << 32) - (1 << 31)).astype(np.int32)  # as the sums, modulo 2^32
    words = np.ascontiguousarray(halves.astype(np.int16)).view(np.int32).reshape(len(biases), -1)
    each = words.shape[1] // steps
    before = np.zeros(words_before(steps, each), np.int32)
    return np.concatenate((before, np.concatenate((scales, biases, words), axis=1).reshape(-1)))


def words_before(steps: int, each: int) -> int:
    """Return the words before the first pair of channels, for steps of `each` words (glow_dsp_quad_before)."""
    chunk = header_number("glow_dsp_quad.h", "GLOW_DSP_QUAD_WORDS") // each
    return max(0, (chunk - 1 - (steps - 2) % chunk) * each - 4 - each)


def quad_steps(weights: np.ndarray, inputs: int) -> np.ndarray:
    """Return weights[O, K], K filled up to groups, as steps [O, S, 2]; the last one or two inputs are one step."""
    pairs = halfwords(weights)
    if inputs % _GROUP in (1, 2) and inputs > _GROUP:
        whole = inputs // _GROUP * _GROUP
        pairs = np.concatenate((pairs[:, : whole // 2], weights[:, None, whole : whole + 2]), axis=1)
    elif inputs <= 2:
        pairs = np.stack((weights[:, :2], 0 * weights[:, :2]), axis=1)
    return pairs


def _fc_scratch(instr: Instr) -> int:
    """Four rows of inputs as int16."""
    return 8 * _PIXELS * -(-instr.int_("in_k") // _GROUP)


def _accepts_fc(instr: Instr) -> bool:
    """Accept at least three rows, of which at most one in four is computed in vain."""
    rows = instr.int_("rows")
    few = rows < 3 or 4 * -(-rows // 4) * 3 > 4 * rows
    return not few and accepts_any_zero(instr) and instr.int_("out_n") >= 2 and _fc_scratch(instr) <= _FC_BYTES


def _pack_fc(constants: Arrays, instr: Instr) -> Packed:
    return _packed(constants["weights"].reshape(instr.int_("out_n"), -1), constants, instr)


def _shift_scratch(instr: Instr) -> int:
    """As `scratch_bytes`, and the sums of four pixels."""
    return scratch_bytes(instr) + 4 * _PIXELS * 2 * -(-instr.int_("out_c") // 2)


def _accepts_shift(instr: Instr) -> bool:
    """Accept any number of pixels: no variant for two of them stands behind this one."""
    return _is_possible(instr) and _shift_scratch(instr) <= _SHIFT_BYTES


def _pack_shift(constants: Arrays, instr: Instr) -> Packed:
    """Pack the weights of conv_s8rs; the bias is in its constant `offset`."""
    channels = instr.int_("out_c")
    plain: Arrays = {"bias": np.zeros(channels, np.int64), "scale": np.ones(channels, np.float32)}
    weights = collected(constants["weights"], instr)
    less = weights.astype(np.int64) - instr.int_("w_zp")
    packed = _packed(weights, plain, instr, signed=False)
    offset = short_offset(*sums(less, instr), constants, instr)
    return Packed({"weights": packed.arrays["weights"], **offset}, packed.facts)


FC = KernelVariant(
    "dsp4",
    NEEDS,
    template="{}_quad",
    rank=11,
    header="glow_dsp_quad.h",
    accepts=_accepts_fc,
    pack=_pack_fc,
    scratch_bytes=_fc_scratch,
    plan=lambda instr: {"form": form(instr), "end": ending(instr)},
)
CONV = KernelVariant(
    "dsp4",
    NEEDS,
    template="{}_quad",
    rank=11,
    header="glow_dsp_quad.h",
    accepts=accepts,
    pack=pack,
    scratch_bytes=scratch_bytes,
    plan=plan,
    streams=True,
    row_block=4,
)
SHIFT = replace(
    CONV,
    accepts=_accepts_shift,
    pack=_pack_shift,
    scratch_bytes=_shift_scratch,
    plan=plan,
    header="glow_dsp_shift.h",
)

VARIANTS = {
    "conv_s8": (CONV,),
    "conv_s8rs": (SHIFT,),
    "fc_s8": (FC,),
}
