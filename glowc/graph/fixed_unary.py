"""Functions of codes as TensorFlow Lite Micro computes them, in numpy: what tables of 256 results are filled from.

Every function takes codes less their zero point (int64), both scales and where the result lies. Each is compared with
the runtime over all codes (tests/tflite). Sources: tensorflow/lite/kernels/internal/reference, restated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from glowc.graph.fixed_point import divided, high, leading_zeros, multiplier, round_away, scaled
from glowc.graph.types import DType, TensorType

F32 = np.float32
_HALF_SQRT_2, _THREE_HALVES = 1518500250, (1 << 28) + (1 << 27)
_NEWTON_STEPS = 5
RSQRT_BITS = 20
_LARGEST_EXP = 700.0


@dataclass(frozen=True, slots=True)
class Range:
    """Of a result: its scale, zero point and the codes that there are."""

    scale: float
    zero_point: int
    low: int
    high: int

    def codes(self, y: np.ndarray) -> np.ndarray:
        """Return codes of numbers less their zero point."""
        return np.asarray(np.clip(y + self.zero_point, self.low, self.high))


def range_of(y: TensorType) -> Range:
    """Return where the codes of a type lie."""
    assert y.quant is not None
    return Range(y.quant.scale[0], y.quant.zero_point[0], y.dtype.qmin, y.dtype.qmax)


def abs_codes(x: np.ndarray, scale: float, y: Range) -> np.ndarray:
    """Return |x| rescaled."""
    return y.codes(scaled(np.abs(x), *multiplier(scale / y.scale)))


def relu_codes(x: np.ndarray, scale: float, y: Range) -> np.ndarray:
    """Return x rescaled, from real zero on."""
    factor = multiplier(float(F32(scale) / F32(y.scale)))
    return np.asarray(np.maximum(y.codes(scaled(x, *factor)), y.zero_point))


def relu6_codes(x: np.ndarray, scale: float, y: Range) -> np.ndarray:
    """Return x between real 0 and 6; input and output have one quantisation."""
    six = int(round_away(np.asarray(F32(6) / F32(scale))))
    return y.codes(np.clip(x, 0, six))


def relu_n1_to_1_codes(x: np.ndarray, scale: float, y: Range) -> np.ndarray:
    """Return x between real -1 and 1; input and output have one quantisation."""
    one = int(round_away(np.asarray(F32(1) / F32(scale))))
    return y.codes(np.clip(x, -one, one))


def relu_0_to_1_codes(x: np.ndarray, scale: float, y: Range) -> np.ndarray:
    """Return x between real 0 and 1; input and output have one quantisation."""
    one = int(round_away(np.asarray(F32(1) / F32(scale))))
    return y.codes(np.clip(x, 0, one))


def _by_floats(x: np.ndarray, scale: float, y: Range, function: Callable[[float], float]) -> np.ndarray:
    """Return a function of reals in float32, rounded to the nearest code."""
    real = x.astype(F32) * F32(scale)
    with np.errstate(over="ignore"):
        found = np.asarray([function(float(v)) for v in real.reshape(-1)], np.float64).astype(F32).reshape(x.shape)
        steps = round_away(found * (F32(1) / F32(y.scale)))
    return y.codes(np.clip(steps, -(1 << 30), 1 << 30).astype(np.int64))


def _exp(x: float) -> float:
    return math.exp(min(x, _LARGEST_EXP))


def exp_codes(x: np.ndarray, scale: float, y: Range) -> np.ndarray:
    """Return exp(x)."""
    return _by_floats(x, scale, y, _exp)


def log_codes(x: np.ndarray, scale: float, y: Range) -> np.ndarray:
    """Return log(x); the lowest code where x is not above 0."""
    found = _by_floats(np.maximum(x, 1), scale, y, math.log)
    return np.where(x > 0, found, y.low)


def gelu_codes(x: np.ndarray, scale: float, y: Range) -> np.ndarray:
    """Return x times the normal distribution's integral."""
    return _by_floats(x, scale, y, lambda v: 0.5 * v * (1.0 + math.erf(v * math.sqrt(0.5))))


def gelu_tanh_codes(x: np.ndarray, scale: float, y: Range) -> np.ndarray:
    """Return x times the normal distribution's integral, nearly."""
    factor = math.sqrt(2.0 / math.pi)
    return _by_floats(x, scale, y, lambda v: 0.5 * v * (1.0 + math.tanh(factor * (v + 0.044715 * v * v * v))))


def elu_codes(x: np.ndarray, scale: float, y: Range) -> np.ndarray:
    """Return x, or exp(x) - 1 below 0, in float32."""
    real = x.astype(F32) * F32(scale)
    found = np.where(real < 0, np.expm1(np.minimum(real, 0).astype(np.float64)).astype(F32), real)
    return y.codes(round_away(found * (F32(1) / F32(y.scale))).astype(np.int64))


def inverse_root(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (mul, shift) of 1 / sqrt(x) = mul * 2^(shift - 31), for whole numbers x from 0 on: 0 counts as 1.

    Five Newton steps in Q3.28 on x brought into [1/2, 2) by even shifts.
    """
    x = np.asarray(x, np.int64)
    right, value = np.full(x.shape, 11, np.int64), x.copy()
    while (value >= 1 << 29).any():
        large = value >= 1 << 29
        value, right = np.where(large, value // 4, value), right + large
    left = (leading_zeros(value) - 1) // 2 - 1
    value, right = value << (2 * left), right - left
    root = _newton_root(value >> 1)
    up = np.maximum(-right, 0)
    small = x <= 1
    mul = np.where(small, (1 << 31) - 1, high(root, _HALF_SQRT_2) << up)
    return mul, np.where(small, 0, -np.maximum(right, 0))


def _newton_root(x: np.ndarray) -> np.ndarray:
    """Return 1 / sqrt(x) of three integer bits for x of three integer bits."""
    y, half = np.full(x.shape, 1 << 28, np.int64), divided(x, 1)
    for _ in range(_NEWTON_STEPS):
        cube = _up(high(high(y, y), y), 6)
        y = _up(high(y, _THREE_HALVES) - high(half, cube), 3)
    return y


def _up(x: np.ndarray, bits: int) -> np.ndarray:
    return np.asarray(np.clip(x << bits, -(1 << 31), (1 << 31) - 1))


def rsqrt_factor(scale: float, y: Range) -> tuple[int, int]:
    """Return the factor 1 / (sqrt(sx) sy), of float64."""
    return multiplier(1.0 / (math.sqrt(scale) * y.scale))


def rsqrt_by(x: np.ndarray, factor: tuple[int, int], y: Range) -> np.ndarray:
    """Return 1 / sqrt(x) for x above 0 times a factor, with 20 bits between both steps; the largest code for others."""
    root_mul, root_shift = inverse_root(np.maximum(x, 0))
    found = scaled(np.ones_like(x), root_mul, root_shift + RSQRT_BITS)
    codes = y.codes(scaled(found, factor[0], factor[1] - RSQRT_BITS))
    return np.where(x <= 0, y.high, codes)


def rsqrt_codes(x: np.ndarray, scale: float, y: Range) -> np.ndarray:
    """Return 1 / sqrt(x)."""
    return rsqrt_by(x, rsqrt_factor(scale, y), y)


def _high16(a: np.ndarray, b: np.ndarray | int) -> np.ndarray:
    """Return a * b / 2^15 of int16 numbers, half away from zero."""
    product = a * b
    y = _truncated(product + np.where(product >= 0, 1 << 14, 1 - (1 << 14)))
    return np.asarray(np.minimum(y, (1 << 15) - 1))


def _truncated(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.where(x >= 0, x >> 15, -(-x >> 15)))


def _sat16(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.clip(x, -(1 << 15), (1 << 15) - 1))


def _factor16(real: float) -> tuple[int, int]:
    mul, shift = multiplier(real)
    return ((mul + (1 << 15)) >> 16 if mul < 0x7FFF0000 else 0x7FFF), shift


def hard_swish_codes(x: np.ndarray, scale: float, y: Range) -> np.ndarray:
    """Return x * min(max(x + 3, 0), 6) / 6, in int16 with 7 more bits of x."""
    fine = F32(F32(1.0 / 128) * F32(scale))
    out_mul, out_shift = _factor16(float(fine / F32(y.scale)))
    relu_mul, relu_shift = _factor16(float(fine / F32(3.0 / 32768)))
    wide = x << 7
    near = _high16(wide, out_mul)
    gate = _sat16(wide << (relu_shift - 1)) if relu_shift > 0 else wide
    gate = _high16(gate, relu_mul)
    gate = _sat16(gate << 1) if relu_shift > 0 else divided(gate, -relu_shift)
    product = _truncated(((gate + (1 << 15)) >> 1) * near)
    return y.codes(divided(product, -min(out_shift, 0)))


def table_of(function: object, x: TensorType, y: TensorType) -> np.ndarray:
    """Return the int8 results of all int8 codes."""
    assert x.quant is not None
    assert x.dtype is DType.S8
    codes = np.arange(-128, 128, dtype=np.int64) - x.quant.zero_point[0]
    return np.asarray(function(codes, x.quant.scale[0], range_of(y)), np.int8)  # type: ignore[operator]
