"""Constants with which faster forms of int8 sums give the codes of the definition on A64 and A32.

A sum is a function of two bytes. It is evaluated on all 65,536 pairs, and where three integers give the same codes by
products of 32 bits (SQRDMULH), those are taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np

from glowc.graph.numerics import fma

_UNBOUNDED = 1 << 60


@dataclass(frozen=True, slots=True)
class Point:
    """Where codes stand in a lane before they are multiplied, and bits after the point of a fixed sum."""

    shift: int
    fraction: int


_A64, _A32 = Point(24, 21), Point(22, 20)


def point_of(*, a32: bool) -> Point:
    """Return where codes stand on a core."""
    return _A32 if a32 else _A64


Terms = tuple[float, float, float]
Fixed = tuple[int, int, int]


def _fused_codes(terms: Terms, half: int) -> tuple[np.ndarray, bool]:
    """Return the codes of the fused form for all pairs of int8 codes, and whether none of its values leaves +-32000."""
    codes = np.arange(-128 + half, 128 + half, dtype=np.float64)
    value = fma(codes[:, None], terms[0], fma(codes[None, :], terms[1], terms[2]))
    return np.clip(np.rint(value) - half, -128, 127), bool(np.all(np.abs(value) <= 32000.0))


@lru_cache(maxsize=256)
def plain_sum(sign: str, zero: tuple[int, ...], scales: Terms) -> tuple[np.ndarray, Terms | None, Terms]:
    """Return the codes of add_s8 for all pairs, the terms of the fused form if it gives the same, and its terms."""
    a = (np.arange(-128, 128, dtype=np.float32) - np.float32(zero[0]))[:, None]
    b = (np.arange(-128, 128, dtype=np.float32) - np.float32(zero[1]))[None, :]
    sa, sb, sy = (np.float32(scale) for scale in scales)
    sb = sb if sign == "+" else -sb
    with np.errstate(all="ignore"):
        wanted = np.clip(np.rint((a * sa + b * sb) / sy) + zero[2], -128, 127)
        ra, rb = np.float32(sa / sy), np.float32(sb / sy)
        fixed = np.float32(zero[2] - float(zero[0]) * float(ra) - float(zero[1]) * float(rb))
        terms = float(ra), float(rb), float(fixed)
        codes, bounded = _fused_codes(terms, 0)
    return wanted, terms if bounded and sy > 0 and np.array_equal(codes, wanted) else None, terms


def _products(factor: int, shift: int) -> np.ndarray:
    """Return what SQRDMULH gives for all codes moved by `shift` bits."""
    codes = np.arange(-128, 128, dtype=np.int64) << shift
    return (codes * factor + (1 << 30)) >> 31


def fixed_terms(
    wanted: np.ndarray, ratios: tuple[float, float], point: Point, bounds: tuple[int, int] = (-128, 127)
) -> Fixed | None:
    """Return (a, b, start) of the fixed sum that, clamped to `bounds`, gives the codes wanted[a, b], if there are any.

    code = floor((start + products(a) + products(b)) / 2^fraction + 1/2), saturated: each pair bounds `start`.
    """
    shift, fraction = point.shift, point.fraction
    if not np.all(np.isfinite(wanted)) or not all(abs(r) < 2.0 ** (shift - fraction) for r in ratios):
        return None
    codes, half = wanted.astype(np.int64) << fraction, 1 << (fraction - 1)
    low = np.where(wanted > bounds[0], codes - half, -_UNBOUNDED)
    high = np.where(wanted < bounds[1], codes + half - 1, _UNBOUNDED)
    nearest = [round(r * 2.0 ** (31 + fraction - shift)) for r in ratios]
    for steps in sorted(product((0, -1, 1), repeat=2), key=lambda s: abs(s[0]) + abs(s[1])):
        a, b = (n + step for n, step in zip(nearest, steps, strict=True))
        left, right = _products(a, shift)[:, None], _products(b, shift)[None, :]
        sums = left + right
        first, last = int((low - sums).max()), int((high - sums).min())
        start = (first + last) // 2
        if first <= last and np.all(np.abs(sums + start) < 1 << 31) and np.all(np.abs(left + start) < 1 << 31):
            return a, b, start
    return None


@lru_cache(maxsize=256)
def fixed_plain(sign: str, zero: tuple[int, ...], scales: Terms, point: Point) -> Fixed | None:
    """Return the fixed sum that gives the codes of add_s8."""
    wanted, _, terms = plain_sum(sign, zero, scales)
    return fixed_terms(wanted, terms[:2], point)


@lru_cache(maxsize=256)
def fixed_fused(terms: Terms, half: int, point: Point) -> Fixed | None:
    """Return the fixed sum that gives the codes of the fused form."""
    return fixed_terms(_fused_codes(terms, half)[0], terms[:2], point)


@lru_cache(maxsize=256)
def rounded_twice(terms: Terms, half: int) -> Terms | None:
    """Return constants with which products and sums rounded one by one give the codes of the fused form, if any do.

    All pairs of codes are evaluated, for constants some units in the last place from those of the fused form.
    """
    a_ratio, b_ratio, fixed = terms
    a = np.arange(-128 + half, 128 + half, dtype=np.float64)[:, None]
    b = np.arange(-128 + half, 128 + half, dtype=np.float64)[None, :]
    low, high = -128 + half, 127 + half
    inner = (b * _single(b_ratio) + _single(fixed)).astype(np.float32)
    wanted = np.clip(np.rint((a * _single(a_ratio) + inner).astype(np.float32)), low, high)
    x, y = a.astype(np.float32), b.astype(np.float32)
    for steps in sorted(product((0, -1, 1, -2, 2), repeat=3), key=lambda s: sum(map(abs, s))):
        ra, rb, start = (_moved(v, n) for v, n in zip(terms, steps, strict=True))
        if np.array_equal(np.clip(np.rint(x * ra + (y * rb + start)), low, high), wanted):
            return float(ra), float(rb), float(start)
    return None


def _single(value: float) -> float:
    """Return the float32 nearest to `value`."""
    return float(np.float32(value))


def _moved(value: float, steps: int) -> np.float32:
    """Return the float32 `steps` units in the last place from `value`."""
    return np.float32(np.float32(value) + np.float32(steps) * np.spacing(np.float32(value)))
