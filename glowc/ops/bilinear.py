"""Bilinear interpolation of rows and columns by tables made at compile time, for Resize.

out[n, y, x, c] = (a0 * in(r0, c0) + a1 * in(r0, c1) + a2 * in(r1, c0)) + a3 * in(r1, c1), summed from left to right in
float32, with a0 = cw0 * rw0, a1 = cw1 * rw0, a2 = cw0 * rw1, a3 = cw1 * rw1: rows r0, r1 with weights rw0, rw1, columns
likewise. Order and coordinates are onnxruntime's, and so are the weights of 0.5 on both sides of a coordinate on the
last row or column. `bilinear_f32` does that on numbers; `bilinear_s8` on (q - zx) * sx, and stores rne(v / sy) + zy.
Evidence: Resize of onnxruntime 1.31 between DequantizeLinear and QuantizeLinear, every coordinate transformation: 0 of
the outputs differ (`tests/ops/test_bilinear.py`).

`bilinear_codes_s8` resizes codes as they are: weights and sums in units of 2^-10 and 2^-20, the end without fraction.
That is onnxruntime's kernel for int8 and uint8 [N, H, W, C], the layout that it gives to networks of QLinearConv
(`half` is what was taken off uint8 codes). Alone, on [N, C, H, W], it computes in float, still without the fraction:
one step in up to 8 of 100 outputs (seen, on random codes) where weights are no multiples of 2^-10, none elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowc.graph.numerics import F32, round_clamp
from glowc.graph.types import DType, QuantParams
from glowc.kernels.shapes import Rows
from glowc.ops.params import one_quant
from glowc.ops.spatial import rows_of, store_rows
from glowc.program.kernel import Arrays, KernelDef
from glowc.program.params import Params


@dataclass(frozen=True, slots=True)
class Pairs:
    """Two source lines and their weights, for each output line."""

    index: np.ndarray
    weights: np.ndarray


def pairs_of(x: np.ndarray, length: int) -> Pairs:
    """Return the table of real coordinates `x` on an axis."""
    x = np.clip(x.astype(F32), F32(0), F32(length - 1))
    first = np.minimum(x.astype(np.int64), length - 1)
    second = np.minimum(first + 1, length - 1)
    near, far = np.abs(x - first.astype(F32)), np.abs(x - second.astype(F32))
    same = first == second
    weights = np.stack([np.where(same, F32(0.5), far), np.where(same, F32(0.5), near)], 1)
    return Pairs(np.stack([first, second], 1).astype(np.int32), weights.astype(F32))


def blend(x: np.ndarray, rows: Pairs, cols: Pairs) -> np.ndarray:
    """Return float32 x[N,H,W,C] interpolated."""
    y = np.zeros((x.shape[0], len(rows.index), len(cols.index), x.shape[3]), F32)
    for i in (0, 1):
        for j in (0, 1):
            weight = cols.weights[None, :, j] * rows.weights[:, i, None]
            y = y + weight[None, :, :, None] * x[:, rows.index[:, i]][:, :, cols.index[:, j]]
    return y


def blend_quantised(x: np.ndarray, quants: tuple[QuantParams, QuantParams], tables: tuple[Pairs, Pairs]) -> np.ndarray:
    """Return the codes of the interpolated real numbers."""
    (sx, zx), (sy, zy) = quants[0].scalar, quants[1].scalar
    y = blend((x.astype(np.int64) - zx).astype(F32) * sx, *tables)
    return round_clamp(y / sy, zy, DType.S8.qmin, DType.S8.qmax)


FIXED = 10  # bits after the point of a weight


def fixed_pairs_of(x: np.ndarray, length: int) -> Pairs:
    """Return the table of real coordinates `x` with weights in units of 2^-10."""
    one = 1 << FIXED
    place = (np.clip(x.astype(F32), F32(0), F32(length - 1)) * F32(one)).astype(np.int64)
    first = np.minimum(place // one, length - 1)
    second = np.minimum(first + 1, length - 1)
    far, near = np.abs(place - second * one), np.abs(place - first * one)
    same = first == second
    weights = np.stack([np.where(same, one // 2, far), np.where(same, one // 2, near)], 1)
    return Pairs(np.stack([first, second], 1).astype(np.int32), weights.astype(np.int32))


def blend_codes(x: np.ndarray, half: int, tables: tuple[Pairs, Pairs]) -> np.ndarray:
    """Return the interpolated codes without their fraction; `tables` are those of `fixed_pairs_of`."""
    rows, cols = tables
    codes = x.astype(np.int64) + half
    y = np.zeros((x.shape[0], len(rows.index), len(cols.index), x.shape[3]), np.int64)
    for i in (0, 1):
        for j in (0, 1):
            weight = cols.weights[None, :, j].astype(np.int64) * rows.weights[:, i, None]
            y += weight[None, :, :, None] * codes[:, rows.index[:, i]][:, :, cols.index[:, j]]
    return np.asarray(np.sign(y) * (np.abs(y) >> (2 * FIXED)) - half)


@dataclass(frozen=True, slots=True)
class BilinearCodes(Params):
    """Of `bilinear_s8`: the quantisation of both sides."""

    shape: Rows
    in_zp: int
    out_zp: int
    in_scale: float
    out_scale: float


@dataclass(frozen=True, slots=True)
class BilinearPlainCodes(Params):
    """Of `bilinear_codes_s8`: what was taken off the model's codes."""

    shape: Rows
    half: int


def _tables(arrays: Arrays, span: range) -> tuple[Pairs, Pairs]:
    rows, cols = (
        Pairs(arrays[key].reshape(-1, 2), arrays[f"{key}_weights"].reshape(-1, 2)) for key in ("rows", "cols")
    )
    chosen = slice(span.start, span.stop)
    return Pairs(rows.index[chosen], rows.weights[chosen]), cols


def _interpret(arrays: Arrays, p: Rows, rows: range) -> None:
    store_rows(arrays["out"], blend(rows_of(arrays["in"], p), *_tables(arrays, rows)), p, rows)


def _interpret_quantised(arrays: Arrays, p: BilinearCodes, rows: range) -> None:
    quants = one_quant(p.in_scale, p.in_zp), one_quant(p.out_scale, p.out_zp)
    y = blend_quantised(rows_of(arrays["in"], p.shape), quants, _tables(arrays, rows))
    store_rows(arrays["out"], y, p.shape, rows)


def _interpret_codes(arrays: Arrays, p: BilinearPlainCodes, rows: range) -> None:
    y = blend_codes(rows_of(arrays["in"], p.shape), p.half, _tables(arrays, rows))
    store_rows(arrays["out"], y, p.shape, rows)


_REAL = ("in in", "in rows:s32", "in rows_weights:f32", "in cols:s32", "in cols_weights:f32", "out out")
_WHOLE = ("in in", "in rows:s32", "in rows_weights:s32", "in cols:s32", "in cols_weights:s32", "out out")
KERNELS = (
    KernelDef("bilinear_f32", _REAL, Rows, interpret_rows=_interpret, kind="f32", template="bilinear",
              doc="bilinear interpolation"),
    KernelDef("bilinear_s8", _REAL, BilinearCodes, interpret_rows=_interpret_quantised, kind="s8", template="bilinear",
              doc="bilinear interpolation of the real values of codes"),
    KernelDef("bilinear_codes_s8", _WHOLE, BilinearPlainCodes, interpret_rows=_interpret_codes, kind="s8",
              doc="bilinear interpolation of codes"),
)  # fmt: skip
