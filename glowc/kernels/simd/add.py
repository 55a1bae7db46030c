"""Plans of int8 sums on A64 and A32: float32 forms, and fixed point where that is the same function.

A sum is a function of two bytes. It is evaluated on all 65,536 pairs, and where three integers give the same codes by
products of 32 bits (SQRDMULH), those are taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np

from glowc.graph.numerics import fma
from glowc.kernels.base import KernelVariant
from glowc.kernels.simd.mul import accepts_long_rows, row_plan
from glowc.program.ir import Instr, ParamValue

_UNBOUNDED = 1 << 60


@dataclass(frozen=True, slots=True)
class Point:
    """Where codes stand in a lane before they are multiplied, and bits behind the point of a fixed sum."""

    shift: int
    fraction: int


POINTS = {"neon": Point(24, 21), "a32": Point(22, 20)}

Terms = tuple[float, float, float]


def accepts_fused(instr: Instr) -> bool:
    """Accept sums whose value before the rounding stays below 32000."""
    if not accepts_long_rows(instr) or instr.int_("half") not in (0, 128):
        return False
    ratios = abs(float(instr.params["a_ratio"])) + abs(float(instr.params["b_ratio"]))
    return 255.0 * ratios + abs(float(instr.params["fixed"])) <= 32000.0


def _rows(instr: Instr) -> Mapping[str, ParamValue]:
    """Return the operands' steps along a row, and which limits are inside int8."""
    return {**row_plan(instr), "low": int(instr.int_("out_min") > -128), "high": int(instr.int_("out_max") < 127)}


def _fused_codes(terms: Terms, half: int) -> tuple[np.ndarray, bool]:
    """Return the codes of the fused form for all pairs of int8 codes, and whether none of its values leaves +-32000."""
    codes = np.arange(-128 + half, 128 + half, dtype=np.float64)
    value = fma(codes[:, None], terms[0], fma(codes[None, :], terms[1], terms[2]))
    return np.clip(np.rint(value) - half, -128, 127), bool(np.all(np.abs(value) <= 32000.0))


@lru_cache(maxsize=256)
def _plain_sum(sign: str, zero: tuple[int, ...], scales: Terms) -> tuple[np.ndarray, Terms | None, Terms]:
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


def fixed_terms(wanted: np.ndarray, ratios: tuple[float, float], point: Point) -> tuple[int, int, int] | None:
    """Return (a, b, start) of the fixed sum that gives the codes wanted[a, b], if there are any.

    code = floor((start + products(a) + products(b)) / 2^fraction + 1/2), saturated: each pair bounds `start`.
    """
    shift, fraction = point.shift, point.fraction
    if not np.all(np.isfinite(wanted)) or not all(abs(r) < 2.0 ** (shift - fraction) for r in ratios):
        return None
    codes, half = wanted.astype(np.int64) << fraction, 1 << (fraction - 1)
    low = np.where(wanted > -128, codes - half, -_UNBOUNDED)
    high = np.where(wanted < 127, codes + half - 1, _UNBOUNDED)
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
def _fixed_plain(sign: str, zero: tuple[int, ...], scales: Terms, point: Point) -> tuple[int, int, int] | None:
    wanted, _, terms = _plain_sum(sign, zero, scales)
    return fixed_terms(wanted, terms[:2], point)


@lru_cache(maxsize=256)
def _fixed_fused(terms: Terms, half: int, point: Point) -> tuple[int, int, int] | None:
    return fixed_terms(_fused_codes(terms, half)[0], terms[:2], point)


def _fixed_plan(instr: Instr, fixed: tuple[int, int, int]) -> Mapping[str, ParamValue]:
    return {"form": "fixed", **dict(zip(("a_factor", "b_factor", "start"), fixed, strict=True)), **_rows(instr)}


def add_plan(isa: str, instr: Instr) -> Mapping[str, ParamValue]:
    """Return what the template of add_s8 prints with: which of its forms, and the constants."""
    zero = tuple(instr.int_(key) for key in ("a_zp", "b_zp", "out_zp"))
    scales = (float(instr.params["a_scale"]), float(instr.params["b_scale"]), float(instr.params["out_scale"]))
    fixed = _fixed_plain(str(instr.params["sign"]), zero, scales, POINTS[isa])
    if fixed is not None:
        return _fixed_plan(instr, fixed)
    fused = _plain_sum(str(instr.params["sign"]), zero, scales)[1]
    if fused is None:
        return {"form": "sub", "half": 0, **_rows(instr)}
    return {"form": "agreed", "half": 0, "a_ratio": fused[0], "b_ratio": fused[1], "fixed": fused[2], **_rows(instr)}


def fused_plan(isa: str, instr: Instr) -> Mapping[str, ParamValue]:
    """Return what the template of add_s8f prints with."""
    terms = (float(instr.params["a_ratio"]), float(instr.params["b_ratio"]), float(instr.params["fixed"]))
    fixed = _fixed_fused(terms, instr.int_("half"), POINTS[isa])
    if fixed is not None:
        return _fixed_plan(instr, fixed)
    return {"form": "fused", "half": instr.int_("half"), **_rows(instr)}


ADD = KernelVariant(
    "neon", frozenset({"a64", "neon"}), rank=30, in_place=True, accepts=accepts_long_rows, header="glow_neon.h",
    plan=lambda instr: add_plan("neon", instr),
)  # fmt: skip
ADD_FUSED = KernelVariant(
    "neon", frozenset({"a64", "neon"}), rank=30, in_place=True, accepts=accepts_fused, header="glow_neon.h",
    plan=lambda instr: fused_plan("neon", instr),
)  # fmt: skip

VARIANTS = {
    "add_s8": (ADD,),
    "add_s8f": (ADD_FUSED,),
}
