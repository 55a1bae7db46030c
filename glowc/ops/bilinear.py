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

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from glowc.graph.numerics import F32, round_clamp
from glowc.graph.types import DType, QuantParams
from glowc.ops.spatial import ROW_PARAMS, rows_of, store_rows
from glowc.program.ir import ParamValue
from glowc.program.kernel import Arrays, KernelDef


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


def _tables(arrays: Arrays, p: Mapping[str, ParamValue]) -> tuple[Pairs, Pairs]:
    begin, end = int(p["y_begin"]), int(p["y_end"])
    rows, cols = (
        Pairs(arrays[key].reshape(-1, 2), arrays[f"{key}_weights"].reshape(-1, 2)) for key in ("rows", "cols")
    )
    return Pairs(rows.index[begin:end], rows.weights[begin:end]), cols


def _interpret(arrays: Arrays, p: Mapping[str, ParamValue]) -> None:
    store_rows(arrays["out"], blend(rows_of(arrays["in"], p), *_tables(arrays, p)), p)


def _interpret_quantised(arrays: Arrays, p: Mapping[str, ParamValue]) -> None:
    quants = tuple(QuantParams((float(p[f"{k}_scale"]),), (int(p[f"{k}_zp"]),)) for k in ("in", "out"))
    y = blend_quantised(rows_of(arrays["in"], p), (quants[0], quants[1]), _tables(arrays, p))
    store_rows(arrays["out"], y, p)


def _interpret_codes(arrays: Arrays, p: Mapping[str, ParamValue]) -> None:
    store_rows(arrays["out"], blend_codes(rows_of(arrays["in"], p), int(p["half"]), _tables(arrays, p)), p)


_REAL = ("in in", "in rows:s32", "in rows_weights:f32", "in cols:s32", "in cols_weights:f32", "out out")
_WHOLE = ("in in", "in rows:s32", "in rows_weights:s32", "in cols:s32", "in cols_weights:s32", "out out")
KERNELS = (
    KernelDef("bilinear_f32", _REAL, ROW_PARAMS, _interpret, rows=True, kind="f32", template="bilinear",
              doc="bilinear interpolation"),
    KernelDef("bilinear_s8", _REAL, (*ROW_PARAMS, "in_zp", "out_zp"), _interpret_quantised, rows=True, kind="s8",
              float_params=("in_scale", "out_scale"), template="bilinear",
              doc="bilinear interpolation of the numbers that codes stand for"),
    KernelDef("bilinear_codes_s8", _WHOLE, (*ROW_PARAMS, "half"), _interpret_codes, rows=True, kind="s8",
              doc="bilinear interpolation of codes"),
)  # fmt: skip
