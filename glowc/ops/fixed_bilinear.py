"""FixedBilinear: TensorFlow Lite's RESIZE_BILINEAR of int8 codes, in whole numbers of 2^-10 of a row or column.

scale = (1024 in + out / 2) / out, of corners (1024 (in - 1) + (out - 1) / 2) / (out - 1), cut off; position y is
y scale, of half pixels y scale + scale / 2 - 512. Its neighbours are position / 1024 (at least 0) and the next one up
(at most the last). The four products of codes and weights, rounded half away from zero by 2^20. Zero points do not
count. Evidence: seeded cases against the runtime, 0 differ.
Source: tensorflow/lite/kernels/internal/reference/resize_bilinear.h, restated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowc.graph.attrs import Int, IntList
from glowc.graph.graph import Node
from glowc.graph.types import DType, TensorType
from glowc.ops.base import LowerCtx, MaybeTypes, OpDef, OpError, Types
from glowc.ops.derived import derived
from glowc.ops.strided import present
from glowc.program.kernel import Arrays, KernelDef
from glowc.program.params import Params

_ONE = 1 << 10


@dataclass(frozen=True, slots=True)
class Bilinear(Params):
    """Of `bilinear_q20`: sizes of images [batch, in_h, in_w, channels] and of the result."""

    batch: int
    in_h: int
    in_w: int
    out_h: int
    out_w: int
    channels: int


def infer(node: Node, in_types: MaybeTypes) -> Types:
    """Rows and columns as attr `sizes` has them."""
    (x,) = present(in_types[:1])
    if x.rank != 4 or x.dtype is not DType.S8:
        raise OpError(f"resizes images of int8, not {x}")
    return (TensorType((x.shape[0], *node.ints("sizes"), x.shape[3]), x.dtype, None, "nhwc"),)


def positions(size: int, to: int, align: bool, half: bool) -> np.ndarray:
    """Return (first neighbour, second, weight of the first, of the second) of every position, [to, 4]."""
    scale = (_ONE * size + to // 2) // to
    if align and to > 1:
        scale = (_ONE * (size - 1) + (to - 1) // 2) // (to - 1)
    at = np.arange(to, dtype=np.int64) * scale + (scale // 2 - _ONE // 2 if half else 0)
    first = np.maximum(np.where(at >= 0, at // _ONE, -(-at // _ONE)), 0)
    up = at + _ONE - 1
    second = np.minimum(np.where(up >= 0, up // _ONE, -(-up // _ONE)), size - 1)
    part = at - _ONE * first
    return np.stack((first, second, _ONE - part, part), axis=-1).astype(np.int32)


def _tables(node: Node, x: TensorType) -> tuple[np.ndarray, np.ndarray]:
    flags = bool(node.int_("align")), bool(node.int_("half"))
    rows, columns = (positions(n, to, *flags) for n, to in zip(x.shape[1:3], node.ints("sizes"), strict=True))
    return rows, columns


def resized(x: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return images [N, H, W, C] resized by both tables."""
    r, c, x = rows.astype(np.int64), columns.astype(np.int64), x.astype(np.int64)
    total = sum(
        x[:, r[:, i]][:, :, c[:, j]] * r[:, 2 + i].reshape(1, -1, 1, 1) * c[:, 2 + j].reshape(1, 1, -1, 1)
        for i in (0, 1)
        for j in (0, 1)
    )
    total = np.asarray(total)
    away = total + np.where(total > 0, 1 << 19, -(1 << 19))
    return np.asarray(np.where(away >= 0, away >> 20, -(-away >> 20)))


def lower(node: Node, ctx: LowerCtx) -> None:
    """One `bilinear_q20`."""
    x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
    rows, columns = _tables(node, x.type)
    n, h, w, c = x.type.shape
    operands = {
        "in": x, "rows": ctx.const(rows, f"{node.name}_rows"), "cols": ctx.const(columns, f"{node.name}_cols"),
        "out": y,
    }  # fmt: skip
    ctx.emit("bilinear_q20", operands, Bilinear(n, h, w, y.type.shape[1], y.type.shape[2], c))


def _interpret(a: Arrays, p: Bilinear) -> None:
    x = a["in"].reshape(p.batch, p.in_h, p.in_w, p.channels)
    y = resized(x, a["rows"].reshape(p.out_h, 4), a["cols"].reshape(p.out_w, 4))
    a["out"].reshape(-1)[: y.size] = y.reshape(-1)


KERNELS = (
    KernelDef("bilinear_q20", ("in in:s8", "in rows:s32", "in cols:s32", "out out:s8"), Bilinear, _interpret,
              kind="s8", doc="images of codes resized in TensorFlow Lite's fixed point"),
)  # fmt: skip

OP = OpDef("FixedBilinear", infer, derived, lower, {"sizes": IntList(), "align": Int(0), "half": Int(0)},
           doc="images of codes resized as TensorFlow Lite does (internal)")  # fmt: skip
