"""Biases for cores without FPU and DSP: int8 layers, the zero point in the bias (glow_thumb.h, glow_m3.h).

A sum s becomes a code by one integer product with the scale, s * floor(scale * 2^32), whose lower half is the
fraction. What was cut off moves it by less than |s|, and the rounding of the definition to float32 moves codes, which
are below 512, by 2^-16 at most: only fractions that near to a tie need the definition itself. The bias carries that
distance as its last element; 2^31 (always) when float32(s) may round.

Layers that end in a multiplication and a shift (RequantShift): (sum * mul + offset) >> shift is a sum rounded half up
after a product with the scale mul / 2^shift, once the offset's multiples of mul are in the bias: the kernels of the
ordinary layers, whose factor is exact here. What is left of an offset, below mul, matters where the product is that
near below a half; there, and in channels whose multiplier is no such scale, the definition is computed
(glow_thumb_slow). Those that end as TensorFlow Lite does are computed exactly (glow_thumb_q31).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from glowc.graph.fixed_point import scaled
from glowc.graph.numerics import requantize
from glowc.graph.types import DType
from glowc.program.ir import Instr
from glowc.program.kernel import Arrays

_ALWAYS = 1 << 31
_EXACT_SUM = 1 << 24  # float32 holds every integer up to it
_LEAST, _BELOW = 2.0**-32, 0.25  # of a scale: factors for both instruction sets
_DOUBLED_BELOW = 256.0  # of a depthwise layer's that is halved until it is below, and its sums doubled
_EXACT = 1 << 24  # multipliers below it; and sums, for Armv6-M
_WIDE_SUM = 1 << 30  # of int16 inputs, for Armv7-M


def near_tie(sums: int) -> int:
    """Return how near to a tie, in 2^-32, codes of sums up to `sums` in magnitude may be misjudged."""
    return sums + (1 << 16) + 1 if sums <= _EXACT_SUM else _ALWAYS


def fold(weights: np.ndarray, constants: Arrays, instr: Instr) -> np.ndarray:
    """Return the biases of weights[O, taps] with the zero point folded in (modulo 2^32), and `near_tie`."""
    scale = np.broadcast_to(constants["scale"], len(weights))
    args = scale, instr.int_("out_zp"), instr.int_("out_min"), instr.int_("out_max")
    bias, sums = _folded(weights, constants, instr, lambda sums: requantize(sums, *args))
    return wrapped(np.append(bias, near_tie(int(sums.max(initial=0)))))


def fold_fixed(weights: np.ndarray, constants: Arrays, instr: Instr) -> Arrays:
    """Return the constants of a layer that ends as TensorFlow Lite does: `bias` as of `fold`, and after it 0, or 2^31
    (by the definition) where a sum is not below 2^24.
    """
    mul, shift = (np.broadcast_to(constants[key], len(weights)).astype(np.int64) for key in ("mul", "shift"))
    bounds = instr.int_("out_min"), instr.int_("out_max")
    bias, sums = _folded(
        weights, constants, instr, lambda sums: np.clip(scaled(sums, mul, shift) + instr.int_("out_zp"), *bounds)
    )
    near = _ALWAYS if sums.max(initial=0) >= _EXACT else 0
    return {"bias": wrapped(np.append(bias, near)), "mul": mul.astype(np.int32), "shift": shift.astype(np.int8)}


def has_large(constants: Arrays, folded: Arrays, channels: int) -> bool:
    """Say whether scales of a channel, in the constants or their bits in what was folded, are 1/4 or more."""
    scales = folded["mul"].view(np.float32)[:channels] if "mul" in folded else constants["scale"]
    return bool((scales >= _BELOW).any())


def _folded(
    weights: np.ndarray, constants: Arrays, instr: Instr, codes: Callable[[np.ndarray], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the biases with the zero point folded in, and how large sums get; `codes` are those of sums.

    The large bias of a channel without weights becomes a smaller one of the same code.
    """
    weights = weights.astype(np.int64) - instr.int_("w_zp")
    bias = constants["bias"].astype(np.int64) - instr.int_("in_zp") * weights.sum(1)
    small = np.clip(bias, 1 - _EXACT_SUM, _EXACT_SUM - 1)
    alike = ~weights.any(1) & (codes(bias) == codes(small))
    bias[alike] = small[alike]
    return bias, np.abs(bias) + 128 * np.abs(weights).sum(1)


def wrapped(values: np.ndarray) -> np.ndarray:
    """Return values modulo 2^32 as int32."""
    return ((values + (1 << 31)) % (1 << 32) - (1 << 31)).astype(np.int32)


def accepts_matrix(instr: Instr) -> bool:
    """Accept int8 layers without groups; the zero point of weights takes part in sums of 32 bits."""
    bytes_only = all(instr.operand(role).type.dtype is DType.S8 for role in ("in", "weights", "out"))
    return bytes_only and int(instr.params.get("groups", 1)) == 1


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
    below = _DOUBLED_BELOW if instr.kernel == "dwconv_s8rs" else _BELOW
    fast = (scale >= _LEAST) & (scale < below) & (mul < _EXACT) & bounded & (0 < shift <= 32)
    fast &= offset - half - whole * mul < _BELOW * 2**shift
    whole[~fast] = 0
    rest = (offset - whole * mul).astype(np.int64)
    near = int(((rest - half) << max(32 - shift, 0))[fast].max(initial=0))
    bits = np.where(fast, scale, 0.0).astype(np.float32).view(np.int32)
    words = np.concatenate((bits, wrapped(start + whole), [near], mul)).astype(np.int32)
    return {"mul": words, "offset": np.ascontiguousarray(rest)}
