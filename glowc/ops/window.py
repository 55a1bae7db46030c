"""Planar pooling of 1 to 3 spatial axes: what MaxPool and AveragePool need besides NHWC images, and LpPool, MaxUnpool.

`window`: in[planes, D, H, W] -> out[planes, oD, oH, oW]: maximum, average over the counted positions (padding counts
with include_pad, but never what ceil_mode adds after it), or (sum |x|^p)^(1/p), in index order in the element type.
`window_arg`: index of the first maximum in the flattened input; storage_order 1 counts the last two axes column by
column. Source: ONNX MaxPool-22, AveragePool-22, LpPool-22, MaxUnpool-22.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from glowc.graph.types import DType
from glowc.ops.base import LowerCtx, OpError, Ref
from glowc.ops.params import Spatial
from glowc.program.kernel import Arrays, KernelDef
from glowc.program.params import Params, Printed

Ints = tuple[int, ...]


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


@dataclass(frozen=True, slots=True)
class WindowShape(Params):
    """The planes, sizes and windows along three axes; `end` is the padding after the image."""

    planes: int
    in_: Spatial
    out: Spatial
    k: Spatial
    stride: Spatial
    dil: Spatial
    pad: Spatial
    end: Spatial

    def plane(self, arrays: Arrays) -> np.ndarray:
        """Return the input as [planes, elements]."""
        return arrays["in"].reshape(self.planes, math.prod(self.in_))


@dataclass(frozen=True, slots=True)
class WindowParams(Params):
    """Of `window`: max, average or lp, with the p of the norm."""

    shape: WindowShape
    include_pad: int
    op: str
    p: Printed


@dataclass(frozen=True, slots=True)
class ArgWindowParams(Params):
    """Of `window_arg`."""

    shape: WindowShape
    column_major: Printed


def window_shape(w: Window, planes: int) -> WindowShape:
    """Return the shape of a pooling window; missing axes have length 1."""
    missing = 3 - len(w.kernel)
    if missing < 0:
        raise OpError(f"pooling over {len(w.kernel)} axes")
    ones, zeros = (1,) * missing, (0,) * missing
    return WindowShape(
        planes, (*ones, *w.in_size), (*ones, *w.out_size), (*ones, *w.kernel), (*ones, *w.stride),
        (*ones, *w.dilation), (*zeros, *w.pad_begin), (*zeros, *w.pad_end),
    )  # fmt: skip


def emit_window(ctx: LowerCtx, x: Ref, y: Ref, w: Window, op: str, *, include_pad: int = 0, p: int = 0) -> None:
    """Emit `window` for x[N, C, spatial...]."""
    if x.type.dtype not in (DType.F32, DType.F64) and (op != "max" or x.type.dtype.bits > 8):
        raise OpError(f"planar pooling ({op}) of {x.type}")
    params = WindowParams(window_shape(w, math.prod(x.type.shape[:2])), include_pad, op, p)
    ctx.emit("window", {"in": x, "out": y}, params)


def emit_window_arg(ctx: LowerCtx, x: Ref, y: Ref, w: Window, *, column_major: int) -> None:
    """Emit `window_arg` for x[N, C, spatial...]."""
    params = ArgWindowParams(window_shape(w, math.prod(x.type.shape[:2])), column_major)
    ctx.emit("window_arg", {"in": x, "out": y}, params)


def positions(p: WindowShape) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return, per output place and tap: index in the plane, whether inside of the input, whether counted."""
    size, out, kernel, stride, dil, pad, end = p.in_, p.out, p.k, p.stride, p.dil, p.pad, p.end
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


def pooled(x: np.ndarray, p: WindowParams) -> np.ndarray:
    """Return `window` of x[planes, elements]: [planes, places]."""
    index, inside, counted = positions(p.shape)
    op, norm = p.op, p.p
    lowest = (-math.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min) if op == "max" else 0
    acc = np.full((x.shape[0], index.shape[0]), lowest, x.dtype)
    for k in range(index.shape[1]):
        v = np.where(inside[:, k], x[:, np.where(inside[:, k], index[:, k], 0)], x.dtype.type(lowest))
        if op == "max":
            acc = np.where(v > acc, v, acc)
        else:
            acc = acc + (v if op == "average" else np.abs(v) ** x.dtype.type(norm)).astype(x.dtype)
    if op == "average":
        count = (counted if p.include_pad else inside).sum(1)
        return np.asarray(acc / np.maximum(count, 1).astype(x.dtype))
    return np.asarray(acc ** x.dtype.type(1 / norm)) if op == "lp" else acc


def argument(x: np.ndarray, p: ArgWindowParams) -> np.ndarray:
    """Return `window_arg` of x[planes, elements]."""
    index, inside, _ = positions(p.shape)
    best = np.full((x.shape[0], index.shape[0]), -1, np.int64)
    value = np.zeros(best.shape, x.dtype)
    for k in range(index.shape[1]):
        v = x[:, np.where(inside[:, k], index[:, k], 0)]
        better = inside[:, k] & ((best < 0) | (v > value))
        best, value = np.where(better, index[:, k], best), np.where(better, v, value)
    best = np.maximum(best, 0)
    if p.column_major:
        _, h, w = p.shape.in_
        best = best // (h * w) * (h * w) + best % w * h + best // w % h
    return np.asarray(best + np.arange(x.shape[0])[:, None] * x.shape[1])


def _interpret(arrays: Arrays, p: WindowParams) -> None:
    y = pooled(p.shape.plane(arrays), p)
    arrays["out"].reshape(-1)[: y.size] = y.reshape(-1)


def _interpret_arg(arrays: Arrays, p: ArgWindowParams) -> None:
    y = argument(p.shape.plane(arrays), p)
    arrays["out"].reshape(-1)[: y.size] = y.reshape(-1)


KERNELS = (
    KernelDef("window", ("in in", "out out"), WindowParams, _interpret, needs_math=True,
              doc="planar pooling of up to three axes"),
    KernelDef("window_arg", ("in in", "out out:s64"), ArgWindowParams, _interpret_arg,
              doc="where the maximum of each window is"),
)  # fmt: skip
