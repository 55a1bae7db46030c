"""Helium variants of sums of two int8 tensors, as two fused multiply-adds where these give every code
(runtime_c/mve/glow_mve_elementwise.h).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, lru_cache

import numpy as np

from glowc.graph.numerics import fma
from glowc.kernels.base import UNFIT, Prepared
from glowc.kernels.common.sums import SumKey, pair_sums, sum_key
from glowc.kernels.mve.shared import PAIRWISE, PairwisePlan, accepts_rows, are_codes
from glowc.program.ir import Instr
from glowc.program.kernel import Arrays

_HARD = 2.0**-8  # near enough to a rounding boundary for float32 to go wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class SumPlan(PairwisePlan):
    """`short`: codes are rne(a * va + (b * vb + vc)), else computed step by step, as no such form is exact."""

    short: bool = False
    va: float = 0.0
    vb: float = 0.0
    vc: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedPlan(PairwisePlan):
    """`half`: what is added to the codes."""

    half: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftedSumPlan(PairwisePlan):
    """A sum that ends in a shift: rne(a * v + (b * v + start)); the operand `mul` is float32 (v, start), its bits."""

    path: str = "fused"


def prepare(_: Arrays, instr: Instr) -> Prepared:
    """Return the factors of a sum."""
    scales = tuple(float(instr.params[key]) for key in ("a_scale", "b_scale", "out_scale"))
    codes = tuple(instr.int_(key) for key in ("a_zp", "b_zp", "out_zp", "out_min", "out_max"))
    form = short_sum(scales, codes, str(instr.params["sign"]))
    if form is None:
        return Prepared(plan=SumPlan(rank=instr.int_("rank")))
    return Prepared(plan=SumPlan(rank=instr.int_("rank"), short=True, va=form[0], vb=form[1], vc=form[2]))


@cache
def short_sum(scales: tuple[float, ...], codes: tuple[int, ...], sign: str) -> tuple[float, float, float] | None:
    """Return float32 (va, vb, vc) so that two fused multiply-adds give every code of add_s8; None when none do."""
    sa, sb, sy = (np.float32(s) for s in scales)
    a_zp, b_zp, *bounds = codes
    a, b = _pairs()
    left, right = (a - np.float32(a_zp)) * sa, (b - np.float32(b_zp)) * sb
    sums = left + right if sign == "+" else left - right
    want = _bounded(sums / sy, *bounds)
    va, vb = float(sa) / float(sy), (1 if sign == "+" else -1) * float(sb) / float(sy)
    return _fused_form(want, (va, vb), codes)


def _pairs() -> tuple[np.ndarray, np.ndarray]:
    """Return all pairs of codes as float32."""
    a, b = np.meshgrid(np.arange(-128, 128), np.arange(-128, 128))
    return a.reshape(-1).astype(np.float32), b.reshape(-1).astype(np.float32)


def _fused_form(
    want: np.ndarray, ratios: tuple[float, float], codes: tuple[int, ...]
) -> tuple[float, float, float] | None:
    """Return float32 (va, vb, vc) so that two fused multiply-adds give the codes that all pairs want.

    Candidates are tried on the pairs of codes near a rounding boundary; the first one that gets those right is
    compared on all 65536.
    """
    (a, b), (va, vb) = _pairs(), ratios
    a_zp, b_zp, *bounds = codes
    exact = a.astype(np.float64) * va + b.astype(np.float64) * vb - (a_zp * va + b_zp * vb)
    hard = np.abs(exact - np.floor(exact) - 0.5) < _HARD
    steps = [
        np.asarray([_next(v, i) for i in sorted(range(-n, n + 1), key=abs)])
        for v, n in ((va, 2), (vb, 2), (-(a_zp * va + b_zp * vb), 12))
    ]
    grid = np.stack([g.reshape(-1, 1) for g in np.meshgrid(*steps, indexing="ij")])
    right_ones = (_bounded(_fused(a[hard], b[hard], *grid), *bounds) == want[hard]).all(1)
    for index in np.flatnonzero(right_ones)[:4]:
        form = (float(grid[0][index, 0]), float(grid[1][index, 0]), float(grid[2][index, 0]))
        if (_bounded(fma(a, form[0], fma(b, form[1], form[2])), *bounds) == want).all():
            return form
    return None


def _next(value: float, steps: int) -> np.float32:
    near = np.float32(value)
    return np.float32(near + steps * np.spacing(near))


def _fused(
    a: np.ndarray, b: np.ndarray, va: np.ndarray | float, vb: np.ndarray | float, vc: np.ndarray | float
) -> np.ndarray:
    """Two fused multiply-adds in float32, but for what float64 leaves out of a sum."""
    inner = np.asarray(b.astype(np.float64) * vb + vc).astype(np.float32).astype(np.float64)
    return np.asarray(a.astype(np.float64) * va + inner).astype(np.float32)


def _bounded(real: np.ndarray, zp: int, low: int, high: int) -> np.ndarray:
    return np.asarray(np.clip(np.rint(real.astype(np.float64)) + zp, low, high))


@lru_cache(maxsize=64)
def _q31_form(key: SumKey) -> tuple[float, float, float] | None:
    """Return the factors of a sum as TensorFlow Lite computes it; None where none give all codes."""
    sums = pair_sums(key)
    return _fused_form(sums.codes.T.reshape(-1), sums.ratios, key[-5:])


def accepts_q31(instr: Instr) -> bool:
    """Accept rows of sums that two fused multiply-adds give."""
    return accepts_rows(instr) and _q31_form(sum_key(instr)) is not None


def prepare_q31(_: Arrays, instr: Instr) -> Prepared:
    """Return the factors of a sum as TensorFlow Lite computes it."""
    form = _q31_form(sum_key(instr))
    assert form is not None
    return Prepared(plan=SumPlan(rank=instr.int_("rank"), short=True, va=form[0], vb=form[1], vc=form[2]))


def prepare_fused(_: Arrays, instr: Instr) -> Prepared:
    """Return the plan of a sum on codes moved by `half`."""
    return Prepared(plan=FusedPlan(rank=instr.int_("rank"), half=instr.int_("half")))


def accepts_shifted(instr: Instr) -> bool:
    """Accept rows of int8 whose outputs are int8."""
    return accepts_rows(instr) and are_codes(instr, "out")


def prepare_shifted(constants: Arrays, instr: Instr) -> Prepared:
    """Return the numbers of a sum that ends in a shift, or UNFIT where none give every pair of codes."""
    form = shifted_sum(int(constants["mul"][0]), int(constants["offset"][0]), instr)
    if form is None:
        return UNFIT
    return Prepared({"mul": np.asarray(form, np.float32).view(np.int32)}, ShiftedSumPlan(rank=instr.int_("rank")))


def shifted_sum(mul: int, offset: int, instr: Instr) -> tuple[np.float32, np.float32] | None:
    """Return float32 (v, start) so that a * v + (b * v + start), half to even, is the code less the zero point."""
    shift = instr.int_("shift")
    a_zp, b_zp, zp, low, high = (instr.int_(key) for key in ("a_zp", "b_zp", "out_zp", "out_min", "out_max"))
    sign = 1 if instr.params["sign"] == "+" else -1
    a, b = (v.reshape(-1) for v in np.meshgrid(np.arange(-128, 128), np.arange(-128, 128)))
    want = np.clip(((((a - a_zp) + sign * (b - b_zp)) * mul + offset) >> shift) + zp, low, high)
    factor = np.float32(mul / 2.0**shift)
    exact = (offset - (1 << shift >> 1)) / 2.0**shift - (a_zp + sign * b_zp) * float(factor)
    for steps in range(4):
        start = np.float32(exact) + np.float32(steps) * np.spacing(np.float32(abs(exact) + 1))
        inner = np.float32(sign * b.astype(np.float64) * factor + start).astype(np.float64)
        sums = np.float32(a.astype(np.float64) * factor + inner).astype(np.float64)
        if np.array_equal(np.clip(np.rint(sums) + zp, low, high), want):
            return factor, start
    return None


_SUM = replace(PAIRWISE, prepare=prepare, header="glow_mve_elementwise.h")

VARIANTS = {
    "add_s8": (_SUM,),
    "add_s8q31": (replace(_SUM, accepts=accepts_q31, prepare=prepare_q31),),
    "add_s8f": (replace(_SUM, prepare=prepare_fused),),
    "add_s8rs": (replace(_SUM, accepts=accepts_shifted, prepare=prepare_shifted, packs=frozenset({"mul", "offset"})),),
}
