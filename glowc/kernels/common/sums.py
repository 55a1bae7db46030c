"""Sums of layers on codes over all inputs: what they can reach, and what is the same for every one of them.

Weights less their zero point that leave int8 are int8 plus a shift for each output (glow_window_sums.h):
sum x * (w - w_zp) = sum x * codes + shift * sum x, where x are the codes of the inputs, padding included.

Sums of two int8 tensors as TensorFlow Lite computes them are a function of two bytes: faster forms give the same codes
for all 65,536 pairs, or they are not taken.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowc.graph.fixed_point import scaled
from glowc.program.ir import Instr
from glowc.program.kernel import Arrays


def sums(weights: np.ndarray, instr: Instr) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the greatest sum of weights[O, K], less their zero point, over all inputs."""
    kind = instr.operand("in").type.dtype
    ends = [weights * (x - instr.int_("in_zp")) for x in (kind.qmin, kind.qmax)]
    return np.minimum(*ends).sum(1), np.maximum(*ends).sum(1)


def fit_words(constants: Arrays, weights: np.ndarray, instr: Instr) -> bool:
    """Say whether sums of products with weights[O, K], and of their biases, always fit 32 bits."""
    low, high = sums(weights.astype(np.int64) - instr.int_("w_zp"), instr)
    bias = constants["bias"].astype(np.int64)
    least, greatest = min(low.min(), (low + bias).min()), max(high.max(), (high + bias).max())
    return bool(least >= -(1 << 31) and greatest < 1 << 31)


def bias_around_zero(constants: Arrays, weights: np.ndarray, instr: Instr) -> np.ndarray | None:
    """Return biases int32[O] of weights[O, K], less their zero point, with what the input's zero point takes off.

    The sums are then those of the codes, with that zero point where there is padding. None where sums of products of
    the codes may not fit 32 bits.
    """
    whole, zero = weights.astype(np.int64), instr.int_("in_zp")
    bias = constants["bias"].astype(np.int64) - zero * whole.sum(1)
    reach = np.abs(bias) + (1 << instr.operand("in").type.dtype.bits - 1) * np.abs(whole).sum(1)
    return bias.astype(np.int32) if zero == 0 or reach.max() < 1 << 31 else None


def shifted(weights: np.ndarray, w_zp: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (codes, shift) of int8 weights[O, ...]: int8 codes, without -128 where possible, and int32 shift[O]."""
    if w_zp == 0:
        return weights, np.zeros(len(weights), np.int32)
    wide = weights.reshape(weights.shape[0], -1).astype(np.int32) - w_zp
    least, most = wide.max(axis=1) - 127, wide.min(axis=1) + 127
    shift = np.where(least > most, least, np.clip(0, least, np.maximum(least, most))).astype(np.int32)
    return (wide - shift[:, None]).astype(np.int8).reshape(weights.shape), shift


def in_blocks(shift: np.ndarray, parts: list[tuple[int, int]]) -> np.ndarray:
    """Return the shifts of each block (first output, outputs) after those of the one before, int16."""
    found = np.concatenate([np.resize(shift[begin : begin + width], width) for begin, width in parts])
    return np.ascontiguousarray(found, np.int16)


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
