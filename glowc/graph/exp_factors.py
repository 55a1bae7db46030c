"""The 256 float32 exponentials of an int8 softmax as products of two entries of small tables, bit for bit.

Entry d is a[d / 16] * b[d % 16]. The mantissas of both are 32 bits wide, so their product is exact enough to round as
the entry did; where it is not at once, the mantissas move within the intervals that all their products allow. The
exponent falls by the same amount from entry to entry: floor(top - d * fall), as fixed point. 136 bytes, not 1,024.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from glowc.graph.numerics import softmax_exp_table, softmax_exponentials

FRACTION_BITS = 20  # of `top` and `fall`
_SIDE = 16
_WORD = 1 << 32
_ROUNDS = 20
_MAX_FALL = 1 << 23  # lest 255 of them leave int32
_BIAS = 127
_TINY = 1e-300  # below, the power is free: 0 in float32

Span = tuple[int, int]
"""First and last value that the upper half of a product may have."""


def exp_factors(scale: float, n: int) -> np.ndarray | None:
    """Return uint32 [a[16], b[16], top, fall] that give `softmax_exp_table(scale, n)`, None when none are found."""
    exact, table = softmax_exponentials(scale, n), softmax_exp_table(scale, n)
    powers = _powers(float(np.float32(scale)), exact)
    if powers is None:
        return None
    a = [_mantissa(exact[0], scale, d) for d in range(0, 256, _SIDE)]
    b = [_mantissa(1.0, scale, d) for d in range(_SIDE)]
    top, fall = powers
    ideal = [x * y for x in a for y in b]
    spans = [_span(float(table[d]), (top - d * fall) >> FRACTION_BITS, ideal[d]) for d in range(256)]
    for _ in range(_ROUNDS):
        factors = np.asarray([*a, *b, top, fall], np.int64).astype(np.uint32)
        if exp_entries(factors).tobytes() == table.tobytes():
            return factors
        a = [_inside(a[i], spans[_SIDE * i : _SIDE * (i + 1)], b) for i in range(_SIDE)]
        b = [_inside(b[j], spans[j::_SIDE], a) for j in range(_SIDE)]
    return None


def exp_entries(factors: np.ndarray) -> np.ndarray:
    """Return the 256 float32 entries: the arithmetic of templates/kernels/ref/softmax_s8.c.j2."""
    d = np.arange(256)
    words = factors.astype(np.uint64)
    high = (words[d // _SIDE] * words[_SIDE + d % _SIDE]) >> np.uint64(32)
    top, fall = (int(v) for v in factors[2 * _SIDE :])
    power = (top - d * fall) >> FRACTION_BITS
    shift = 7 + (high >> np.uint64(31)).astype(np.int64) + np.maximum(1 - power, 0)
    rounded = ((high >> np.minimum(shift - 1, 63).astype(np.uint64)) + np.uint64(1)) >> np.uint64(1)
    bits = rounded.astype(np.int64) + (np.maximum(power - 1, 0) << 23)
    return np.asarray(bits, np.uint32).view(np.float32)


def _mantissa(first: float, scale: float, d: int) -> int:
    """Return the mantissa of first * exp(-d * scale) as 32 bits."""
    log = math.log2(first) - d * float(np.float32(scale)) * math.log2(math.e)
    return min(round(math.exp2(log - math.floor(log) + 31)), _WORD - 1)


def _powers(step: float, exact: Sequence[float]) -> tuple[int, int] | None:
    """Return (top, fall) of which every entry's biased exponent is the whole part, where there are such."""
    wanted = [math.frexp(e)[1] - 1 + _BIAS if e > _TINY else None for e in exact]
    near = round(step * math.log2(math.e) * (1 << FRACTION_BITS))
    for fall in sorted(range(max(near - 4, 0), near + 5), key=lambda f: abs(f - near)):
        starts = [(power << FRACTION_BITS) + d * fall for d, power in enumerate(wanted) if power is not None]
        first, last = max(starts), min(starts) + (1 << FRACTION_BITS) - 1
        if first <= last and fall < _MAX_FALL:
            return (first + last) // 2, fall
    return None


def _span(entry: float, power: int, product: int) -> Span:
    """Return which upper halves of a product round to the entry, in the binade of `product`."""
    large = product >= _WORD * _WORD // 2
    shift = 7 + large + max(1 - power, 0)
    rounded = int(math.ldexp(entry, 23 + _BIAS - max(power, 1)))
    half = 1 << (shift - 1)
    least, most = (_WORD // 2, _WORD - 1) if large else (_WORD // 4, _WORD // 2 - 1)
    return max((rounded << shift) - half, least), min((rounded << shift) + half - 1, most)


def _inside(factor: int, spans: Sequence[Span], others: Sequence[int]) -> int:
    """Return the middle of what `factor` may be for all products with `others`."""
    first = max(-(-(low * _WORD) // other) for (low, _), other in zip(spans, others, strict=True))
    last = min(((high + 1) * _WORD - 1) // other for (_, high), other in zip(spans, others, strict=True))
    return min(max((first + last) // 2, _WORD // 2), _WORD - 1) if first <= last else factor
