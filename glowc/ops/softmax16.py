"""Softmax of int16 codes, the kernel softmax_s16w.

e = exp((x - max) * sx) is the float32 product of two entries of tables of 256 float32: exp(-256 i sx) of the high byte
i of the difference max - x, and exp(-j sx) of its low byte j. y = rne((e * (1 / sy)) / sum) + zy, the sum in index
order, each operation in float32. onnxruntime has no integer kernel and computes in float: at most one step of 65,536
differs (tests/ops/test_softmax.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowc.graph.graph import Node
from glowc.graph.numerics import F32, round_clamp
from glowc.graph.types import DType
from glowc.ops.base import LowerCtx, Ref
from glowc.ops.params import Along
from glowc.program.kernel import Arrays, KernelDef

KINDS = (DType.S16, DType.U16)


@dataclass(frozen=True, slots=True)
class SoftmaxWide(Along):
    """Of softmax_s16w: what the exponentials are multiplied by."""

    out_zp: int
    steps: float


def tables(scale: float) -> np.ndarray:
    """Return exp(-256 * i * scale) of 256 i, then exp(-j * scale) of 256 j, as float32."""
    index = np.arange(256, dtype=np.float64) * np.float64(F32(scale))
    return np.asarray(np.exp(-np.concatenate((256 * index, index))), np.float64).astype(F32)


def softmax_wide(x: np.ndarray, table: np.ndarray, steps: F32, zero: int) -> np.ndarray:
    """Return the int16 softmax along axis 1 of x[outer, n, inner]."""
    codes = x.astype(np.int64)
    difference = codes.max(1, keepdims=True) - codes
    e = table[difference >> 8] * table[256 + (difference & 255)]
    total = np.zeros_like(e[:, :1])
    for i in range(e.shape[1]):
        total = total + e[:, i : i + 1]
    return round_clamp((e * steps) / total, zero, DType.S16.qmin, DType.S16.qmax)


def emit(node: Node, ctx: LowerCtx, x: Ref, y: Ref, dims: tuple[int, int, int]) -> None:
    """Emit softmax_s16w."""
    qx, qy = x.type.quant, y.type.quant
    assert qx is not None and qy is not None  # noqa: PT018
    table = ctx.const(tables(qx.scale[0]), f"{node.name}_exp")
    params = SoftmaxWide(*dims, qy.zero_point[0], float(F32(1) / F32(qy.scale[0])))
    ctx.emit("softmax_s16w", {"in": x, "table": table, "out": y}, params)


def _interpret(a: Arrays, p: SoftmaxWide) -> None:
    p.view(a["out"])[:] = softmax_wide(p.view(a["in"]), a["table"], F32(p.steps), p.out_zp)


KERNELS = (
    KernelDef("softmax_s16w", ("in in", "in table:f32", "out out"), SoftmaxWide, _interpret, in_place=("in",),
              kind="s16", doc="int16 softmax by products of two table entries"),
)  # fmt: skip
