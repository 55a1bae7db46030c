"""TensorFlow Lite's integer arithmetic in numpy: multipliers of 31 bits, shifts that round, elementary functions.

A real factor is `mul * 2^(shift - 31)` with 2^30 <= mul < 2^31. `scaled` rounds twice, as TensorFlow Lite Micro is
built: the upper half of the product half up, the division by a power of two half away from zero. All arrays are int64
that hold int32 values, unless said. Sources: gemmlowp's fixedpoint.h (SaturatingRoundingDoublingHighMul,
RoundingDivideByPOT) and tensorflow/lite/kernels/internal/common.h, restated; tests compare with the TFLM runtime.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

_WRAP = 1 << 32


def multiplier(real: float) -> tuple[int, int]:
    """Return (mul, shift) of a factor that is not negative; factors below 2^-32 are 0."""
    if real <= 0:
        return 0, 0
    mantissa, shift = math.frexp(real)
    mul = math.floor(mantissa * (1 << 31) + 0.5)
    if mul == 1 << 31:
        mul, shift = mul // 2, shift + 1
    return (0, 0) if shift < -31 else (mul, shift)


def multipliers(reals: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Return the arrays mul (int32) and shift (int8) of several factors."""
    pairs = [multiplier(real) for real in reals]
    return np.asarray([m for m, _ in pairs], np.int32), np.asarray([s for _, s in pairs], np.int8)


def wrapped(x: np.ndarray) -> np.ndarray:
    """Return x modulo 2^32 as int32 values."""
    return np.asarray((x + _WRAP // 2) % _WRAP - _WRAP // 2)


def high(a: np.ndarray, b: np.ndarray | int) -> np.ndarray:
    """Return (a * b + 2^30) >> 31, saturated for a = b = -2^31."""
    product = np.asarray(a, np.int64) * np.asarray(b, np.int64)
    return np.asarray(np.minimum((product + (1 << 30)) >> 31, (1 << 31) - 1))


def divided(x: np.ndarray, exponent: np.ndarray | int) -> np.ndarray:
    """Return x / 2^exponent, rounded half away from zero; exponents are not negative."""
    exponent = np.asarray(exponent, np.int64)
    half = np.where(exponent > 0, 1 << np.maximum(exponent - 1, 0), 0)
    return np.asarray((x + half - ((x < 0) & (exponent > 0))) >> exponent)


def scaled(x: np.ndarray, mul: np.ndarray | int, shift: np.ndarray | int) -> np.ndarray:
    """Return int32 numbers times mul * 2^(shift - 31)."""
    shift = np.asarray(shift, np.int64)
    left = wrapped(np.asarray(x, np.int64) << np.maximum(shift, 0))
    return divided(high(left, mul), np.maximum(-shift, 0))


def scaled_wide(x: np.ndarray, mul: np.ndarray | int, shift: np.ndarray | int) -> np.ndarray:
    """Return int64 numbers of at most 48 bits times mul * 2^(shift - 31): the multiplier of 16 bits, half up."""
    mul, shift = np.asarray(mul, np.int64), np.asarray(shift, np.int64)
    reduced = np.where(mul < 0x7FFF0000, (mul + (1 << 15)) >> 16, 0x7FFF)
    return np.asarray((np.asarray(x, np.int64) * reduced + (1 << (14 - shift))) >> (15 - shift))


def round_away(x: np.ndarray) -> np.ndarray:
    """Return floats rounded half away from zero, in their own precision."""
    size = np.abs(x)
    whole = np.trunc(size)
    return np.asarray(np.copysign(np.where(size - whole >= 0.5, whole + 1, whole), x).astype(x.dtype))


def leading_zeros(x: np.ndarray) -> np.ndarray:
    """Return the bits above the highest one of 32-bit numbers above 0."""
    return np.asarray(32 - np.frexp(np.maximum(x, 1).astype(np.float64))[1], np.int64)
