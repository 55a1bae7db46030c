"""FixedAveragePool: TensorFlow Lite's averages of codes over the n positions of a window inside of the image.

With s the sum of the codes as the file has them: (s + n / 2) / n above zero and (s - n / 2) / n below, cut off and
clamped; input and output have one scale. Evidence: seeded cases, 0 codes differ.
Source: tensorflow/lite/kernels/internal/reference/integer_ops/pooling.h, restated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowc.graph.attrs import Int, IntList
from glowc.graph.graph import Node
from glowc.kernels.shapes import Pool
from glowc.ops.base import CLAMP, LAYOUT, LowerCtx, OpDef, clamp_of
from glowc.ops.derived import derived
from glowc.ops.integer import result_codes
from glowc.ops.pool import counts, geometry, infer, taps
from glowc.ops.spatial import WINDOW, rows_of, store_rows, window_rows
from glowc.ops.window import Window
from glowc.program.kernel import Arrays, KernelDef
from glowc.program.params import Params


@dataclass(frozen=True, slots=True)
class WholeAverage(Params):
    """Of `avg_pool_*q31`: what is added to codes for those of the file (128 for uint8), and the bounds."""

    shape: Pool
    include_pad: int
    half: int
    out_min: int
    out_max: int


def lower(node: Node, ctx: LowerCtx) -> None:
    """One `avg_pool_*q31`."""
    x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
    shape, (_, low, high) = geometry(node, x.type, y.type), result_codes(y.type, *clamp_of(node)).bounds
    params = WholeAverage(shape, 0, 128 * node.int_("unsigned"), low, high)
    ctx.emit(f"avg_pool_{x.type.dtype.value}q31", {"in": x, "out": y}, params, rows=(0, shape.out_h))


def _interpret(arrays: Arrays, p: WholeAverage, rows: range) -> None:
    s = p.shape
    window = Window((s.in_h, s.in_w), (len(rows), s.out_w), (s.k_h, s.k_w), (s.stride_h, s.stride_w),
                    (s.dil_h, s.dil_w), (s.pad_top, s.pad_left), (s.pad_bottom, s.pad_right))  # fmt: skip
    parts = taps(rows_of(arrays["in"], s).astype(np.int64) + p.half, window, 0, rows.start)
    n = np.maximum(counts(window, False, rows.start), 1)[..., None].astype(np.int64)
    total = np.sum(np.stack(parts), axis=0)
    y = np.where(total > 0, (total + n // 2) // n, -((n // 2 - total) // n))
    store_rows(arrays["out"], np.clip(y - p.half, p.out_min, p.out_max), s, rows)


def _window_rows(p: WholeAverage, y: int) -> tuple[int, int]:
    return window_rows(p.shape, y)


KERNELS = tuple(
    KernelDef(f"avg_pool_{kind}q31", ("in in", "out out"), WholeAverage, interpret_rows=_interpret,
              row_window=_window_rows, template="avg_pool_q31", kind=kind,
              doc="average of windows of codes, half away from zero")
    for kind in ("s8", "s16")
)  # fmt: skip

OP = OpDef(
    "FixedAveragePool", infer, derived, lower,
    {**WINDOW, "kernel_shape": IntList(), "ceil_mode": Int(0), "unsigned": Int(0), **CLAMP, "layout": LAYOUT},
    doc="average of windows of codes as TensorFlow Lite computes it (internal)",
)  # fmt: skip
