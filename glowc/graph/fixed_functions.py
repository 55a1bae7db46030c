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
SOFTMAX_BITS, SUM_BITS, _LOGISTIC_BITS = 5, 12, 4
_RAISED = (
    4, 8, 12, 14, 15, 16, 17, 19, 20, 21, 22, 25, 27, 28, 29, 30, 31, 33, 34, 35, 37, 39, 40, 41, 43, 44, 45, 46, 49,
    50, 54, 62, 63, 64, 66, 82, 86, 93, 100, 103, 112, 116, 135, 255,
)  # fmt: skip


def shifted_up(x: np.ndarray, bits: np.ndarray | int) -> np.ndarray:
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
    if integer_bits > SOFTMAX_BITS:
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
    mul, shift = multiplier(min(scale * beta * 2.0 ** (31 - SOFTMAX_BITS), float(ONE)))
    least = input_radius(SOFTMAX_BITS, shift)
    d = -np.arange(min(least, 255) + 1, dtype=np.int64)
    return exp_negative(high(d << max(shift, 0), mul), SOFTMAX_BITS).astype(np.int32)


def softmax_parts(differences: np.ndarray, table: np.ndarray, out_bits: int) -> np.ndarray:
    """Return the softmax along axis 1 of differences [outer, n, inner] to the largest, in units of 2^-out_bits."""
    inside = differences < table.size
    e = np.where(inside, table.astype(np.int64)[np.minimum(differences, table.size - 1)], 0)
    total = divided(e, SUM_BITS).sum(1, keepdims=True)
    headroom = 32 - np.floor(np.log2(total)).astype(np.int64) - 1
    factor = reciprocal((total << headroom) - (1 << 31))
    y = divided(high(e, factor), (SUM_BITS - headroom) + 31 - out_bits)
    return np.asarray(np.where(inside, y, 0))


def sigmoid_table() -> np.ndarray:
    """Return 65536 / (1 + exp(-i / 24)), uint16: nearest, but one more at some places, as the runtime's table has them.

    Evidence: all int16 codes of LOGISTIC and TANH at ten scales; tanh of a multiple of 2^8 shows the entry itself.
    """
    table = np.floor(65536 / (1 + np.exp(-np.arange(256) / 24)) + 0.5).astype(np.int64)
    table[list(_RAISED)] += 1
    return table.astype(np.uint16)


def lookup_factor(scale: float, function: str) -> tuple[int, int]:
    """Return (mul, right shift) from int16 codes of a scale to numbers of which the table has 512 a step."""
    mantissa, exponent = math.frexp(scale)
    left = 12 + exponent - 1
    if mantissa == 0.5 and left in ((0,) if function == "logistic" else (0, 1)):
        return 3 << left, 0
    real, shift = scale * 4096.0 * 3.0, 0
    while real <= 32767 / 2 and shift <= 30:
        real, shift = real * 2, shift + 1
    return int(real), shift


def _interpolated(size: np.ndarray, bits: int, most: int) -> np.ndarray:
    table, whole = sigmoid_table().astype(np.int64), size >> bits
    at = np.minimum(whole, 254)
    between = (table[at] << bits) + (size & ((1 << bits) - 1)) * (table[at + 1] - table[at])
    return np.asarray(np.where(whole >= 255, most << bits, between))


def logistic_by_table(codes: np.ndarray, mul: int, shift: int) -> np.ndarray:
    """Return 2^15 / (1 + exp(-x)) of int16 codes x * 24 * 512 = codes * mul / 2^shift, between entries linear."""
    x = (codes.astype(np.int64) * mul + (1 << shift >> 1)) >> shift
    y = _interpolated(np.abs(x), 9, 0xFFFE)
    return np.asarray(np.where(x >= 0, y + 512, (1 << 25) - y + 511) >> 10)


def tanh_by_table(codes: np.ndarray, mul: int, shift: int) -> np.ndarray:
    """Return 2^15 tanh(x) of int16 codes, by tanh(x) = 2 logistic(2 x) - 1."""
    x = (codes.astype(np.int64) * mul + (1 << shift >> 1)) >> shift
    y = _interpolated(np.abs(x), 8, 0xFFFF) - (1 << 23)
    return np.asarray(np.where(x >= 0, y + 128, 127 - y) >> 8)
