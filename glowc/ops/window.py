"""Planar pooling of 1 to 3 spatial axes: what MaxPool and AveragePool need besides NHWC images, and LpPool, MaxUnpool.

`window`: in[planes, D, H, W] -> out[planes, oD, oH, oW]: maximum, average over the counted positions (padding counts
with include_pad, but never what ceil_mode adds after it), or (sum |x|^p)^(1/p), in index order in the element type.
`window_arg`: index of the first maximum in the flattened input; storage_order 1 counts the last two axes column by
column. Source: ONNX MaxPool-22, AveragePool-22, LpPool-22, MaxUnpool-22.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from glowc.graph.types import DType
from glowc.ops.base import LowerCtx, OpError, Ref
from glowc.program.ir import ParamValue
from glowc.program.kernel import Arrays, KernelDef

Ints = tuple[int, ...]
AXES = ("d", "h", "w")
_KEYS = ("in", "out", "k", "stride", "dil", "pad", "end")
KEYS = tuple(f"{key}_{axis}" for key in _KEYS for axis in AXES)


@dataclass(frozen=True, slots=True)
class Window:
    """Geometry of a pooling along its spatial axes."""

    in_size: Ints
    out_size: Ints
    kernel: Ints
    stride: Ints
    dilation: Ints
    pad_begin: Ints
    pad_end: Ints


def window_params(w: Window, planes: int) -> dict[str, ParamValue]:
    """Return the parameters of a pooling window; missing axes have length 1."""
    missing = 3 - len(w.kernel)
    if missing < 0:
        raise OpError(f"pooling over {len(w.kernel)} axes")
    ones, zeros = (1,) * missing, (0,) * missing
    values = (
        (*ones, *w.in_size), (*ones, *w.out_size), (*ones, *w.kernel), (*ones, *w.stride), (*ones, *w.dilation),
        (*zeros, *w.pad_begin), (*zeros, *w.pad_end),
    )  # fmt: skip
    return {"planes": planes, **dict(zip(KEYS, itertools.chain(*values), strict=True))}


def emit_window(ctx: LowerCtx, x: Ref, y: Ref, w: Window, op: str, *, include_pad: int = 0, p: int = 0) -> None:
    """Emit `window` for x[N, C, spatial...]."""
    if x.type.dtype not in (DType.F32, DType.F64) and (op != "max" or x.type.dtype.bits > 8):
        raise OpError(f"planar pooling ({op}) of {x.type}")
    params = window_params(w, math.prod(x.type.shape[:2])) | {"include_pad": include_pad, "p": p, "op": op}
    ctx.emit("window", {"in": x, "out": y}, params)


def emit_window_arg(ctx: LowerCtx, x: Ref, y: Ref, w: Window, *, column_major: int) -> None:
    """Emit `window_arg` for x[N, C, spatial...]."""
    params = window_params(w, math.prod(x.type.shape[:2])) | {"column_major": column_major}
    ctx.emit("window_arg", {"in": x, "out": y}, params)


def positions(p: Mapping[str, ParamValue]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return, per output place and tap: index in the plane, whether inside of the input, whether counted."""

    def three(key: str) -> list[int]:
        return [int(p[f"{key}_{axis}"]) for axis in AXES]

    size, out, kernel, stride, dil, pad, end = (three(key) for key in _KEYS)
    index = np.zeros((*out, *kernel), np.int64)
    inside = np.ones((*out, *kernel), np.bool_)
    counted = np.ones((*out, *kernel), np.bool_)
    for i in range(3):
        at = (np.arange(out[i]) * stride[i] - pad[i])[:, None] + np.arange(kernel[i])[None, :] * dil[i]
        at = at.reshape([out[i] if j == i else kernel[i] if j == i + 3 else 1 for j in range(6)])
        index = index * size[i] + at
        inside &= (at >= 0) & (at < size[i])
        counted &= (at >= -pad[i]) & (at < size[i] + end[i])
    shape = (math.prod(out), math.prod(kernel))
    return index.reshape(shape), inside.reshape(shape), counted.reshape(shape)


def pooled(x: np.ndarray, p: Mapping[str, ParamValue]) -> np.ndarray:
    """Return `window` of x[planes, elements]: [planes, places]."""
    index, inside, counted = positions(p)
    op, norm = str(p["op"]), int(p["p"])
    lowest = (-math.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min) if op == "max" else 0
    acc = np.full((x.shape[0], index.shape[0]), lowest, x.dtype)
    for k in range(index.shape[1]):
        v = np.where(inside[:, k], x[:, np.where(inside[:, k], index[:, k], 0)], x.dtype.type(lowest))
        if op == "max":
            acc = np.where(v > acc, v, acc)
        else:
            acc = acc + (v if op == "average" else np.abs(v) ** x.dtype.type(norm)).astype(x.dtype)
    if op == "average":
        count = (counted if int(p["include_pad"]) else inside).sum(1)
        return np.asarray(acc / np.maximum(count, 1).astype(x.dtype))
    return np.asarray(acc ** x.dtype.type(1 / norm)) if op == "lp" else acc


def argument(x: np.ndarray, p: Mapping[str, ParamValue]) -> np.ndarray:
    """Return `window_arg` of x[planes, elements]."""
    index, inside, _ = positions(p)
    best = np.full((x.shape[0], index.shape[0]), -1, np.int64)
    value = np.zeros(best.shape, x.dtype)
    for k in range(index.shape[1]):
        v = x[:, np.where(inside[:, k], index[:, k], 0)]
        better = inside[:, k] & ((best < 0) | (v > value))
        best, value = np.where(better, index[:, k], best), np.where(better, v, value)
    best = np.maximum(best, 0)
    if int(p["column_major"]):
        h, w = int(p["in_h"]), int(p["in_w"])
        best = best // (h * w) * (h * w) + best % w * h + best // w % h
    return np.asarray(best + np.arange(x.shape[0])[:, None] * x.shape[1])


def _plane(arrays: Arrays, p: Mapping[str, ParamValue]) -> np.ndarray:
    return arrays["in"].reshape(int(p["planes"]), math.prod(int(p[f"in_{axis}"]) for axis in AXES))


def _interpret(arrays: Arrays, p: Mapping[str, ParamValue]) -> None:
    y = pooled(_plane(arrays, p), p)
    arrays["out"].reshape(-1)[: y.size] = y.reshape(-1)


def _interpret_arg(arrays: Arrays, p: Mapping[str, ParamValue]) -> None:
    y = argument(_plane(arrays, p), p)
    arrays["out"].reshape(-1)[: y.size] = y.reshape(-1)


KERNELS = (
    KernelDef("window", ("in in", "out out"), ("planes", *KEYS, "include_pad"), _interpret, print_params=("op", "p"),
              needs_math=True, doc="planar pooling of up to three axes"),
    KernelDef("window_arg", ("in in", "out out:s64"), ("planes", *KEYS), _interpret_arg, print_params=("column_major",),
              doc="where the maximum of each window is"),
)  # fmt: skip
