"""Sums of two int8 tensors as TensorFlow Lite computes them: a function of two bytes.

Faster forms give the same codes for all 65,536 pairs, or they are not taken.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowc.graph.fixed_point import scaled
from glowc.program.ir import Instr


@dataclass(frozen=True, slots=True)
class PairSums:
    """`codes` int64[256, 256] of all pairs of codes, by a and b; `ratios`: what a and b are multiplied by, roughly."""

    codes: np.ndarray
    ratios: tuple[float, float]
    bounds: tuple[int, int]


SumKey = tuple[int, ...]
"""The parameters that a sum's codes depend on, the sign of b first."""


def sum_key(instr: Instr) -> SumKey:
    """Return what tells the codes of an add_s8q31 apart."""
    return (1 if instr.params["sign"] == "+" else -1, *(instr.int_(key) for key in (*_FACTORS, *_CODES)))


def pair_sums(key: SumKey) -> PairSums:
    """Return the codes of an add_s8q31 for all pairs."""
    sign, p = key[0], dict(zip((*_FACTORS, *_CODES), key[1:], strict=True))
    codes, bounds = np.arange(-128, 128, dtype=np.int64), (p["out_min"], p["out_max"])
    a, b = (
        scaled((codes - p[f"{x}_zp"]) << p["left"], p[f"{x}_mul"], p[f"{x}_shift"]) for x in ("a", "b")
    )  # fmt: skip
    sums = scaled(a[:, None] + sign * b[None, :], p["out_mul"], p["out_shift"]) + p["out_zp"]
    left, right, whole = (p[f"{x}_mul"] * 2.0 ** (p[f"{x}_shift"] - 31) for x in ("a", "b", "out"))
    whole *= 2.0 ** p["left"]
    return PairSums(np.clip(sums, *bounds), (left * whole, sign * right * whole), bounds)


_FACTORS = ("left", "a_mul", "a_shift", "b_mul", "b_shift", "out_mul", "out_shift")
_CODES = ("a_zp", "b_zp", "out_zp", "out_min", "out_max")
