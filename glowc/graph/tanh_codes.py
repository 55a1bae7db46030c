"""tanh and sigmoid between codes of 16 bits, in integers: every code as the functions of floats give it.

Reals between codes of 16 bits have the bits of runtime_c/glow_same.h on every CPU, which `exact_codes` restates. With
x = 2^28 of one, saturated to 32 bits, tanh is a polynomial of third degree around the next multiple of 1/8, whose
coefficients are the rows of `tanh_table`, times 2^31. sigmoid(x) = 1/2 + tanh(x / 2) / 2. What is added and cut off is
within `near` of 2^16 of a step of a code where it differs from the float: there a list has the codes to correct.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from glowc.graph.numerics import F32

FUNCTIONS = ("tanh", "sigmoid")
STEP_BITS, ONE_BITS = 25, 28  # of a step of the table, of 1
_MIDDLE = 1 << (31 - STEP_BITS)
_LEAST, _MOST = -(1 << 31), (1 << 31) - 1
_UNIT_BITS, _CODE_BITS, _MOST_NEAR, _MOST_FIXES = 15, 16, 1 << 11, 512
CODES = np.arange(-(1 << 15), 1 << 15)


def _parts(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return exp(r) - 1 and 1.5 * 2^23 + n, where x = n ln 2 + r."""
    n = x * F32(1.44269504) + F32(12582912)
    whole = n + F32(-12582912)
    r = (x + whole * F32(-0.693359375)) + whole * F32(2.12194440e-4)
    q = r * F32(0.0013882507) + F32(0.008366596)
    for c in (0.0416672, 0.16666543, 0.49999997):
        q = q * r + F32(c)
    return r + (r * r) * q, n


def _power(n: np.ndarray, bias: int) -> np.ndarray:
    return ((n.view(np.uint32) << np.uint32(23)) + np.uint32(bias)).view(F32)


def _tanh(x: np.ndarray) -> np.ndarray:
    less_one, n = _parts(np.clip(x + x, F32(-20), F32(20)))
    power = _power(n, 0x3F800000)
    e = less_one * power + (power + F32(-1))
    return np.asarray(e / (e + F32(2)))


def _sigmoid(x: np.ndarray) -> np.ndarray:
    less_one, n = _parts(np.clip(-x, F32(-87.33), F32(87)))
    half = (less_one + F32(1)) * _power(n, 0x3F000000)
    return np.asarray(F32(1) / ((half + half) + F32(1)))


def exact_real(function: str, x: np.ndarray) -> np.ndarray:
    """Return a function of float32 with the bits of runtime_c/glow_same.h."""
    return np.asarray((_tanh if function == "tanh" else _sigmoid)(x))


def exact_codes(function: str, in_scale: float, out_scale: float) -> np.ndarray:
    """Return the code of each of CODES by floats, every operation rounded by itself, zero points 0."""
    x = CODES.astype(F32) * F32(in_scale)
    with np.errstate(over="ignore"):
        y = np.rint(exact_real(function, x) / F32(out_scale))
    return np.clip(y, CODES[0], CODES[-1]).astype(np.int64)


def tanh_table() -> np.ndarray:
    """Return int32 [129, 4] of 2^31 tanh around each eighth from -8 to 8: by powers 0 to 3 of the part of a step."""
    places = np.cos(np.arange(1, 8, 2) * np.pi / 8) / 2
    steps = np.arange(-_MIDDLE, _MIDDLE + 1)[:, None]
    values = np.tanh((steps + places) * 2.0 ** (STEP_BITS - ONE_BITS)) * 2.0**31
    return np.rint(values @ np.linalg.inv(np.vander(places, increasing=True)).T).astype(np.int32)


def _upper(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the upper half of a product of 64 bits, rounded half up."""
    return np.asarray((a * b + (1 << 31)) >> 32)


@dataclass(frozen=True, slots=True)
class TanhCodes:
    """x = saturate(code * mul / 2^15 * 2^shift), its tanh times `scale` / 2^31, plus `start`: 2^16 of a code."""

    mul: int
    shift: int
    scale: int
    start: int
    near: int
    fixes: tuple[int, ...]


def sums(codes: np.ndarray, table: np.ndarray, mul: int, shift: int, scale: int, start: int) -> np.ndarray:
    """Return 2^16 of the results of codes, saturated to 32 bits."""
    x = np.clip((codes.astype(np.int64) * mul >> _UNIT_BITS) << shift, _LEAST, _MOST)
    entry = table.astype(np.int64)[((x >> (STEP_BITS - 1)) + 1 >> 1) + _MIDDLE]
    part = (x << (32 - STEP_BITS)).astype(np.int32).astype(np.int64)
    y = entry[:, 3]
    for power in (2, 1, 0):
        y = entry[:, power] + _upper(part, y)
    return np.asarray(np.clip((y * scale >> 31) + start, _LEAST, _MOST))


def results(total: np.ndarray, codes: np.ndarray, near: int, fixes: np.ndarray) -> np.ndarray:
    """Return the codes of sums that have `near` added, of the codes that `fixes` corrects too."""
    part = total & 0xFFFF
    lower = (part < 2 * near) & ((part >= near) == np.isin(codes, fixes))
    return np.asarray((total >> _CODE_BITS) - lower)


def tanh_codes(function: str, in_scale: float, out_scale: float) -> TanhCodes | None:
    """Return how a function of codes is computed, or nothing where integers are too far from it."""
    half = 2 if function == "sigmoid" else 1
    unit, ratio = float(F32(in_scale)) / half, 2.0**-15 / float(F32(out_scale))
    units = unit * 2.0 ** (_UNIT_BITS + ONE_BITS)
    shift = max(0, math.frexp(units)[1] - 30)
    mul, scale = round(units / 2**shift), min(round(ratio / half * 2.0**31), _MOST)
    if ratio > 1 or mul == 0 or shift >= _CODE_BITS:
        return None
    start = (1 << (_CODE_BITS - 1)) + (round(ratio * 2.0**30) if function == "sigmoid" else 0)
    total = sums(CODES, tanh_table(), mul, shift, scale, start)
    wanted, part = exact_codes(function, in_scale, out_scale), total & 0xFFFF
    apart = wanted - (total >> _CODE_BITS)
    near = int(np.max(np.where(apart < 0, part + 1, (1 << _CODE_BITS) - part), where=apart != 0, initial=0))
    fixes = tuple(int(code) for code in CODES[apart != 0])
    if np.any(np.abs(apart) > 1) or near > _MOST_NEAR or len(fixes) > _MOST_FIXES:
        return None
    return TanhCodes(mul, shift, scale, start + near, near, fixes)
