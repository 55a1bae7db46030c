"""TensorFlow Lite's softmax of int16 codes by two tables of 513 entries, and its logarithm and log-softmax in fixed
point, in numpy; arrays are as in `fixed_functions`.

Evidence: 28,814 codes of seeded softmax and 78,242 of seeded log-softmax against the runtime (tests/tflite), 0
differ.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from glowc.graph.fixed_functions import ONE, SOFTMAX_BITS, SUM_BITS, exp_negative, input_radius, reciprocal, shifted_up
from glowc.graph.fixed_point import divided, high, leading_zeros, multiplier, round_away, scaled

_EXP_RANGE = 10.0


def lookup_table(function: Callable[[np.ndarray], np.ndarray], low: float, high_end: float) -> np.ndarray:
    """Return 513 int16 entries of a function of [low, high_end] in units of 2^-15, bent so that middles are near, too.

    Computed in float32, as the runtime does.
    """
    f32 = np.float32
    step = f32((f32(high_end) - f32(low)) / f32(512))
    at = f32(low) + np.arange(513).astype(f32) * step
    y, middle = (function(v).astype(f32) * f32(1 << 15) for v in (at, at[:-1] + step / f32(2)))
    whole = round_away(y)
    bent = round_away((y[1:] + whole[:-1]) / f32(2)) - round_away(middle)
    table = np.append(whole[:-1] - round_away(bent / f32(2)), whole[-1])
    return np.asarray(np.clip(table, -32768, 32767).astype(np.int16))


def softmax16_tables() -> tuple[np.ndarray, np.ndarray]:
    """Return the tables of exp on [-10, 0] and of 1 / (1 + x) on [0, 1]."""
    one = np.float32(1)
    return lookup_table(np.exp, -_EXP_RANGE, 0.0), lookup_table(lambda v: one / (one + v), 0.0, 1.0)


def looked_up(x: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Return table entries at int16 numbers, 128 a step, with linear steps between them."""
    t, at = table.astype(np.int64), 256 + (x >> 7)
    return np.asarray(t[at] + (((t[at + 1] - t[at]) * (x & 127) + 64) >> 7))


def softmax16_factor(scale: float, beta: float) -> tuple[int, int]:
    """Return the factor of differences such that 65535 of them are 10."""
    return multiplier(float(np.float32(scale) * np.float32(beta)) / (_EXP_RANGE / 65535.0))


def softmax16_codes(d: np.ndarray, factor: tuple[int, int], tables: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Return 2^15 times the softmax along axis 1 of differences d <= 0 [outer, n, inner] to the largest."""
    fine = np.clip(scaled(d, *factor) + 32767, -32768, 32767)
    e = looked_up(fine, tables[0])
    total = e.sum(1, keepdims=True)
    zeros = leading_zeros(total)
    part = ((total << (zeros - 1)) + (1 << 13)) >> 14
    inverse = looked_up(np.clip(part - (1 << 15) - (1 << 16), -32768, 32767), tables[1])
    right = 31 - zeros
    return np.asarray(np.clip((e * inverse + (1 << right >> 1)) >> right, 0, 32767))


_LOG_2, _ROOT_HALF, _FOURTH_ROOT_HALF = 1488522236, 1518500250, 1805811301
_ALPHA_N, _ALPHA_D, _ALPHA_I, _ALPHA_F = 117049297, 127690142, 1057819769, 638450708


def log_from_one(x: np.ndarray) -> np.ndarray:
    """Return log(x) of 5 integer bits for x >= 1 of 12: a power of two and a rational function of what is left."""
    integer_bits, accum = SUM_BITS, SOFTMAX_BITS + 1
    quarter = (1 << 29) >> accum
    above = leading_zeros(x)
    r_a = shifted_up(high(shifted_up(x, above - 1), _ROOT_HALF), 1)
    power_a = ((integer_bits - above) << (31 - accum)) + quarter
    headroom = leading_zeros(high(x, _ROOT_HALF)) - 1
    r_b = shifted_up(x, headroom)
    power_b = ((integer_bits - headroom) << (31 - accum)) - quarter
    r, power = np.minimum(r_a, r_b), np.maximum(power_a, power_b)
    p = _half_sum(r, _FOURTH_ROOT_HALF)
    q = 2 * (r - _FOURTH_ROOT_HALF)
    square = high(q, q)
    top = high(q, r) + high(high(q, square), _ALPHA_N)
    bottom = high(p, _ALPHA_I + q + high(square, _ALPHA_D)) + high(q, _ALPHA_F)
    y = high(power, _LOG_2) + high(divided(top, accum), reciprocal(bottom))
    return shifted_up(y, accum - SOFTMAX_BITS)


def _half_sum(a: np.ndarray, b: int) -> np.ndarray:
    """Return (a + b) / 2, half away from zero."""
    total = a + b
    signed = total + np.where(total >= 0, 1, -1)
    return np.asarray(np.where(signed >= 0, signed >> 1, -(-signed >> 1)))


def log_softmax_factors(scale: float) -> tuple[int, int, int, int, int]:
    """Return (mul, shift) of differences, (mul, shift) of the way back, and the least difference that counts."""
    mul, shift = multiplier(min(scale * 2.0 ** (31 - SOFTMAX_BITS), float(ONE)))
    back = multiplier((1 << (31 - shift)) / mul)
    return mul, shift, *back, -input_radius(SOFTMAX_BITS, shift)


def log_softmax_tables(factors: tuple[int, int, int, int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Return exp of 12 integer bits and the difference itself of 5, of differences 0, -1, .. -255 to the largest."""
    mul, shift, _, _, least = factors
    d = -np.arange(256, dtype=np.int64)
    fine = scaled(d, mul, shift)
    e = np.where(d >= least, divided(exp_negative(fine, SOFTMAX_BITS), SUM_BITS), 0)
    return e.astype(np.int32), fine.astype(np.int32)


def log_softmax_codes(
    d: np.ndarray, factors: tuple[int, int, int, int, int], tables: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    """Return sixteenths of the log-softmax along axis 1 of differences d <= 0 [outer, n, inner] to the largest."""
    _, _, back_mul, back_shift, least = factors
    e, fine = (table.astype(np.int64)[-d] for table in tables)
    log = log_from_one(e.sum(1, keepdims=True))
    end = np.maximum(least - 1, scaled(log - (1 << 31), back_mul, back_shift))
    return np.asarray(np.where(d > end, divided(fine - log, 31 - SOFTMAX_BITS - 4), -256))
