"""Variants for cores without FPU and DSP of int8 layers that end in a multiplication and a shift (RequantShift).

(sum * mul + offset) >> shift is a sum rounded half up after a product with the scale mul / 2^shift, once the offset's
multiples of mul are in the bias: the kernels of the ordinary layers (packing_m3), whose factor is exact here.
What is left of an offset, below mul, matters where the product is that near below a half; there, and in channels whose
multiplier is no such scale, the definition is computed (glow_thumb_slow).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant
from glowc.kernels.thumb import layers as packing_m3
from glowc.program.ir import Instr, ParamValue
from glowc.program.kernel import Arrays

_WIDE_BYTES = 2048
_LEAST, _BELOW = 2.0**-32, 0.25  # of a scale: factors for both instruction sets
_EXACT = 1 << 24  # multipliers below it; and sums, for Armv6-M
_WIDE_SUM = 1 << 30  # of int16 inputs, for Armv7-M


def fold_shift(weights: np.ndarray, constants: Arrays, instr: Instr) -> Arrays:
    """Return `mul`: bits of the scales (0: by the definition), biases, the distance from a tie, multipliers; and
    `offset`: what is left of it. `weights` are [O, taps]."""
    channels, shift = len(weights), instr.int_("shift")
    apart = weights.astype(np.int64) - instr.int_("w_zp")
    start = -instr.int_("in_zp") * apart.sum(1)
    mul, offset = (np.broadcast_to(constants[key], (channels,)).astype(np.int64) for key in ("mul", "offset"))
    half = 1 << shift >> 1
    scale = mul / 2.0**shift
    whole = np.floor_divide(offset - half, np.maximum(mul, 1))
    wide = instr.operand("in").type.dtype is DType.S16
    sums = np.abs(start) + np.abs(whole) + (1 << 15 if wide else 128) * np.abs(apart).sum(1)
    bounded = sums < (_WIDE_SUM if wide else _EXACT)
    fast = (scale >= _LEAST) & (scale < _BELOW) & (mul < _EXACT) & bounded & (0 < shift <= 32)
    whole[~fast] = 0
    rest = (offset - whole * mul).astype(np.int64)
    near = int(((rest - half) << max(32 - shift, 0))[fast].max(initial=0))
    bits = np.where(fast, scale, 0.0).astype(np.float32).view(np.int32)
    words = np.concatenate((bits, packing_m3.wrapped(start + whole), [near], mul)).astype(np.int32)
    return {"mul": words, "offset": np.ascontiguousarray(rest)}


def pack_conv(constants: Arrays, instr: Instr) -> Arrays:
    """Return the constants of conv_s8rs."""
    weights = packing_m3.conv_weights(constants["weights"], instr)
    folded = fold_shift(weights.reshape(len(weights), -1), constants, instr)
    return {**folded, **packing_m3.conv_order(weights, instr)}


def pack_depthwise(constants: Arrays, instr: Instr) -> Arrays:
    """Return the constants of dwconv_s8rs."""
    weights = packing_m3.depthwise_weights(constants["weights"], instr)
    return {"weights": weights, **fold_shift(weights, constants, instr)}


def pack_fc(constants: Arrays, instr: Instr) -> Arrays:
    """Return the constants of fc_s8rs."""
    weights = constants["weights"].reshape(instr.int_("out_n"), instr.int_("in_k"))
    return {"weights": packing_m3.fc_order(weights), **fold_shift(weights, constants, instr)}


def pack_fc_rows(constants: Arrays, instr: Instr) -> Arrays:
    """Return the constants of fc_s8rs of several rows."""
    return fold_shift(constants["weights"].reshape(instr.int_("out_n"), instr.int_("in_k")), constants, instr)


def _both(variants: tuple[KernelVariant, ...], pack: Callable[[Arrays, Instr], Arrays]) -> tuple[KernelVariant, ...]:
    return tuple(replace(variant, pack=pack) for variant in variants)


def _accepts_wide(instr: Instr) -> bool:
    """Accept int16 inputs without groups, weights without zero point, and windows of which the scratch is small."""
    kinds = tuple(instr.operand(role).type.dtype for role in ("in", "weights", "out"))
    plain = instr.int_("groups") == 1 and instr.int_("w_zp") == 0
    return kinds == (DType.S16, DType.S8, DType.S8) and plain and _wide_scratch(instr) <= _WIDE_BYTES


def _wide_scratch(instr: Instr) -> int:
    """Four words per tap."""
    return 16 * instr.int_("k_h") * instr.int_("k_w") * instr.int_("in_c")


def _wide_plan(instr: Instr) -> Mapping[str, ParamValue]:
    return {"point": 0, "dense": 0, "planar": int(instr.int_("in_ch") != 1)}


CONV = _both(packing_m3.CONV, pack_conv)
CONV_WIDE = replace(
    CONV[0],
    header="glow_thumb_wide.h",
    accepts=_accepts_wide,
    plan=_wide_plan,
    scratch_bytes=_wide_scratch,
)
DEPTHWISE = _both(packing_m3.DEPTHWISE, pack_depthwise)
FC = (*_both(packing_m3.FC[:2], pack_fc), *_both(packing_m3.FC[2:], pack_fc_rows))

VARIANTS = {
    "conv_s16rs": (CONV_WIDE,),
    "conv_s8rs": CONV,
    "dwconv_s8rs": DEPTHWISE,
    "fc_s8rs": FC,
}
