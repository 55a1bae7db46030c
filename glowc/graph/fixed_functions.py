"""Elementary functions of TensorFlow Lite in fixed point, in numpy: exp, logistic, tanh, reciprocals.

Arrays are int64 that hold int32 numbers. A number of n integer bits stands for raw * 2^(n - 31). Source: gemmlowp's
fixedpoint.h, restated; every step rounds as `glowc.graph.fixed_point.high` and `divided` do, and saturates.
"""

from __future__ import annotations

import math

import numpy as np

from glowc.graph.fixed_point import divided, high, multiplier, scaled

ONE = (1 << 31) - 1
_EXP_EIGHTH, _THIRD = 1895147668, 715827883  # exp(-1/8), 1/3
_FACTORS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)  # exp(-2^k), k = -2 .. 4
_48_OVER_17, _MINUS_32_OVER_17 = 1515870810, -1010580540  # of 2 integer bits
_NEWTON_STEPS = 3
_SOFTMAX_BITS, _SUM_BITS, _LOGISTIC_BITS = 5, 12, 4


def shifted_up(x: np.ndarray, bits: int) -> np.ndarray:
    """Return x * 2^bits, saturated to int32."""
    return np.asarray(np.clip(x << bits, -(1 << 31), ONE))


def exp_negative(a: np.ndarray, integer_bits: int) -> np.ndarray:
    """Return exp(a) of no integer bits, for a <= 0 of `integer_bits`."""
    fraction = 31 - integer_bits
    quarter = 1 << (fraction - 2)
    part = (a & (quarter - 1)) - quarter
    result = _exp_quarter(shifted_up(part, integer_bits))
    rest = part - a
    for k, factor in enumerate(_FACTORS, start=-2):
        if integer_bits > k:
            result = np.where(rest >> (fraction + k) & 1, high(result, factor), result)
    if integer_bits > _SOFTMAX_BITS:
        result = np.where(a < -(32 << fraction), 0, result)
    return np.asarray(np.where(a == 0, ONE, result))


def _exp_quarter(a: np.ndarray) -> np.ndarray:
    """Return exp(a) for a in [-1/4, 0), both of no integer bits: a polynomial of fourth order around -1/8."""
    x = a + (1 << 28)
    x2 = high(x, x)
    x3, x4 = high(x2, x), high(x2, x2)
    higher = divided(high(divided(x4, 2) + x3, _THIRD) + x2, 1)
    return _EXP_EIGHTH + high(x + higher, _EXP_EIGHTH)


def _newton(a: np.ndarray) -> np.ndarray:
    """Return 2 / (1 + a) of 2 integer bits, for a in [0, 1) of none."""
    half = (a + ONE + 1) >> 1
    x = _48_OVER_17 + high(half, _MINUS_32_OVER_17)
    for _ in range(_NEWTON_STEPS):
        x = x + shifted_up(high(x, (1 << 29) - high(half, x)), 2)
    return np.asarray(x)


def reciprocal(a: np.ndarray) -> np.ndarray:
    """Return 1 / (1 + a), both of no integer bits, for a in [0, 1)."""
    return shifted_up(_newton(a), 1)


def logistic(a: np.ndarray) -> np.ndarray:
    """Return 1 / (1 + exp(-a)) of no integer bits, for a of 4."""
    positive = reciprocal(exp_negative(-np.abs(a), _LOGISTIC_BITS))
    return np.asarray(np.where(a == 0, 1 << 30, np.where(a > 0, positive, ONE - positive)))


def tanh(a: np.ndarray) -> np.ndarray:
    """Return tanh(a) of no integer bits, for a of 4."""
    positive = shifted_up(_newton(exp_negative(-np.abs(a), _LOGISTIC_BITS + 1)) - (1 << 29), 2)
    return np.asarray(np.where(a == 0, 0, np.where(a > 0, positive, -positive)))


def input_radius(integer_bits: int, shift: int) -> int:
    """Return the largest code, less its zero point, that a factor of `shift` brings into a number of integer bits."""
    return math.floor(((1 << integer_bits) - 1) * 2.0 ** (31 - integer_bits) / 2.0**shift)


def saturating_codes(
    codes: np.ndarray, scale: float, function: str, out_bits: int, low: int, high_code: int, offset: int
) -> np.ndarray:
    """Return the int8 codes of logistic or tanh, of codes less their zero point with a scale; saturated far from 0."""
    mul, shift = multiplier(scale * 2.0 ** (31 - _LOGISTIC_BITS))
    radius = input_radius(_LOGISTIC_BITS, shift)
    inner = scaled(np.clip(codes, -radius, radius), mul, shift)
    y = divided((logistic if function == "logistic" else tanh)(inner), 31 - out_bits) + offset
    y = np.clip(y, low, high_code)
    return np.asarray(np.where(codes <= -radius, low, np.where(codes >= radius, high_code, y)))


def softmax_table(scale: float, beta: float) -> np.ndarray:
    """Return exp of the differences 0, -1, .. of int8 codes to the largest, int32; a shorter table: 0 from there on."""
    mul, shift = multiplier(min(scale * beta * 2.0 ** (31 - _SOFTMAX_BITS), float(ONE)))
    least = input_radius(_SOFTMAX_BITS, shift)
    d = -np.arange(min(least, 255) + 1, dtype=np.int64)
    return exp_negative(high(d << max(shift, 0), mul), _SOFTMAX_BITS).astype(np.int32)


def softmax_parts(differences: np.ndarray, table: np.ndarray, out_bits: int) -> np.ndarray:
    """Return the softmax along axis 1 of differences [outer, n, inner] to the largest, in units of 2^-out_bits."""
    inside = differences < table.size
    e = np.where(inside, table.astype(np.int64)[np.minimum(differences, table.size - 1)], 0)
    total = divided(e, _SUM_BITS).sum(1, keepdims=True)
    headroom = 32 - np.floor(np.log2(total)).astype(np.int64) - 1
    factor = reciprocal((total << headroom) - (1 << 31))
    y = divided(high(e, factor), (_SUM_BITS - headroom) + 31 - out_bits)
    return np.asarray(np.where(inside, y, 0))
