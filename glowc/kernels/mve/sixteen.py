"""Helium variants of layers with inputs of 16 bits and int8 weights (runtime_c/mve/glow_mve_wide.h)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from glowc.graph.types import DType
from glowc.kernels.base import UNFIT, KernelVariant, Prepared, plan_in
from glowc.kernels.common.constants import EMPTY, WEIGHTED
from glowc.kernels.common.factors import high_factors
from glowc.kernels.common.float_shift import columns, rows
from glowc.kernels.common.sums import bias_around_zero, fit_words
from glowc.kernels.mve.shared import FAST
from glowc.kernels.mve.stream import group_records
from glowc.kernels.shapes import Conv
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_GROUP, _BLOCK = 4, 8  # channels, inputs
_SCRATCH_BYTES = 16384


@dataclass(frozen=True, slots=True, kw_only=True)
class WidePlan(Plan):
    """path: "point", one input pixel is the window; "rows", the columns of a kernel row are adjacent; "taps".

    `high`: codes are upper words of products with factors in place of scales. `filled`: padding has the zero point of
    the inputs, which is in the biases.
    """

    high: bool = False
    filled: bool = False


def _are_kinds(instr: Instr) -> bool:
    """Say whether weights have zero point 0."""
    kinds = [instr.operand(role).type.dtype for role in ("in", "weights", "out")]
    return kinds == [DType.S16, DType.S8, DType.S16] and instr.int_("w_zp") == 0


def _accepts_fc(instr: Instr) -> bool:
    """Accept inputs around 0."""
    return _are_kinds(instr) and instr.int_("in_zp") == 0


def _path(shape: Conv) -> str:
    padded = shape.pad_top or shape.pad_left or (shape.out_w - 1) * shape.stride_w >= shape.in_w
    adjacent = shape.in_ch == 1 or shape.in_c == 1
    if adjacent and shape.taps == 1 and not padded and (shape.out_h - 1) * shape.stride_h < shape.in_h:
        return "point"
    dense = adjacent and shape.in_col == shape.in_c and (shape.dil_w == 1 or shape.k_w == 1)
    return "rows" if dense else "taps"


def _scratch(instr: Instr) -> int:
    """Two windows."""
    shape = Conv.of(instr)
    return 0 if _path(shape) == "point" else 4 * shape.inputs


def _accepts_conv(instr: Instr) -> bool:
    """Accept one group."""
    return _are_kinds(instr) and instr.int_("groups") == 1 and _scratch(instr) <= _SCRATCH_BYTES


def _accepts_depthwise(instr: Instr) -> bool:
    """Accept one output channel per adjacent input channel, eight or more; of factors only codes around 0."""
    shape = Conv.of(instr)
    alike = shape.in_c == shape.out_c == shape.groups >= _BLOCK and shape.in_ch == 1
    around_zero = instr.int_("in_zp") == instr.int_("out_zp") == 0
    return _are_kinds(instr) and alike and (around_zero or instr.kernel == "dwconv_s16")


def stream(weights: np.ndarray, bias: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return weights[O, K], biases and scales (one, or O) as glow_mve_wide.h reads them."""
    channels = len(weights)
    rest = -channels % _GROUP
    padded = np.pad(weights, ((0, rest), (0, -weights.shape[1] % _BLOCK)))
    blocks = padded.reshape(-1, _GROUP, padded.shape[1] // _BLOCK, _BLOCK).transpose(0, 2, 1, 3)
    numbers = [
        np.pad(np.broadcast_to(array, channels), (0, rest)).reshape(-1, _GROUP).view(np.int8) for array in (bias, scale)
    ]
    return np.concatenate((blocks.reshape(len(blocks), -1), *numbers), axis=1).reshape(-1).view(np.int32)


def _streamed(constants: Arrays, channels: int, plan: Plan, instr: Instr) -> Prepared:
    weights = constants["weights"].reshape(channels, -1)
    bias = bias_around_zero(constants, weights, instr)
    if bias is None:
        return UNFIT
    words = stream(weights, bias, constants["scale"])
    return Prepared({**EMPTY, "weights": words}, plan)


def _fixed(plain: KernelVariant, by_channel: Callable[[np.ndarray], np.ndarray], template: str) -> KernelVariant:
    """Return a variant as `plain` for layers of TensorFlow Lite whose codes are upper words of products."""
    assert plain.prepare is not None
    prepare_plain = plain.prepare

    def prepare_fixed(constants: Arrays, instr: Instr) -> Prepared:
        high = high_factors(constants, constants["bias"].size, 32)
        if high is None or not fit_words(constants, by_channel(constants["weights"]), instr):
            return UNFIT
        found = {"weights": constants["weights"], "bias": high["bias"], "scale": high["mul"]}
        done = prepare_plain(found, instr)
        packed = {"mul" if role == "scale" else role: array for role, array in done.constants.items()}
        return replace(done, constants=packed, plan=replace(plan_in(done, WidePlan), high=True))

    return replace(plain, prepare=prepare_fixed, packs=frozenset({"weights", "bias", "mul"}), template=template)


def prepare_conv(constants: Arrays, instr: Instr) -> Prepared:
    """Return the stream of constants."""
    shape = Conv.of(instr)
    return _streamed(constants, shape.out_c, WidePlan(path=_path(shape)), instr)


def prepare_fc(constants: Arrays, instr: Instr) -> Prepared:
    """Return the stream of constants."""
    return _streamed(constants, instr.int_("out_n"), WidePlan(), instr)


def prepare_depthwise(constants: Arrays, instr: Instr) -> Prepared:
    """Put the even ones of eight channels' biases and scales in front of the odd ones."""
    channels, bias = constants["bias"].size, bias_around_zero(constants, columns(constants["weights"]), instr)
    if bias is None:
        return UNFIT
    starts = np.minimum(np.arange(0, channels, _BLOCK), channels - _BLOCK)  # the last eight overlap those before
    order = (starts[:, None] + np.array([0, 2, 4, 6, 1, 3, 5, 7])).reshape(-1)

    def parted(array: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(np.broadcast_to(array, channels)[order])

    ends = {"bias": parted(bias), "scale": parted(constants["scale"])}
    return Prepared(ends, WidePlan(filled=instr.int_("in_zp") != 0))


_LAYER = replace(FAST, packs=WEIGHTED, header="glow_mve_wide.h", streams=True)
CONV = replace(
    _LAYER, accepts=_accepts_conv, prepare=prepare_conv, scratch_bytes=_scratch, row_block=2,
    records=lambda instr: group_records(instr, instr.int_("out_c")),
)  # fmt: skip
DEPTHWISE = replace(_LAYER, accepts=_accepts_depthwise, prepare=prepare_depthwise)
FC = replace(
    _LAYER, accepts=_accepts_fc, prepare=prepare_fc, records=lambda instr: group_records(instr, instr.int_("out_n"))
)

VARIANTS = {
    "conv_s16": (CONV,),
    "conv_s16q15": (_fixed(CONV, rows, "conv_s16"),),
    "dwconv_s16": (DEPTHWISE,),
    "dwconv_s16q15": (_fixed(DEPTHWISE, columns, "dwconv_s16"),),
    "fc_s16": (FC,),
    "fc_s16q15": (_fixed(FC, rows, "fc_s16"),),
}
