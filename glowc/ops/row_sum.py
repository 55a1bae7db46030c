"""Kernels of a global mean that is computed row by row: sums in the arena, and what makes codes of them.

sum_rows: acc[c] = sum over rows and columns of (in - in_zp), in int32; the row 0 starts from 0. requant_sums:
out = clamp(rne(float32(acc) * scale) + out_zp), the formula of avg_pool and reduce_mean, so that the bytes are
the same. No operator lowers to them: the streaming of rows puts them in the place of a pooling.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from glowc.graph.numerics import F32, requantize
from glowc.program.ir import ParamValue
from glowc.program.kernel import Arrays, KernelDef


def _interpret_sum(a: Arrays, p: Mapping[str, ParamValue]) -> None:
    width, channels, row = int(p["in_w"]), int(p["in_c"]), int(p["in_row"])
    acc = a["acc"].reshape(-1)
    for y in range(int(p["y_begin"]), int(p["y_end"])):
        if y == 0:
            acc[:] = 0
        at = y % int(p["in_ring"]) * row
        line = a["in"].reshape(-1)[at : at + width * channels].reshape(width, channels)
        acc += (line.astype(np.int64) - int(p["in_zp"])).sum(0).astype(np.int32)


def _interpret_requant(a: Arrays, p: Mapping[str, ParamValue]) -> None:
    bounds = int(p["out_zp"]), int(p["out_min"]), int(p["out_max"])
    a["out"].reshape(-1)[:] = requantize(a["in"].reshape(-1), F32(p["scale"]), *bounds).astype(a["out"].dtype)


KERNELS = (
    *(
        KernelDef(f"sum_rows_{kind}", ("in in", "out acc:s32"), ("in_w", "in_c", "in_row", "in_ring", "in_zp"),
                  _interpret_sum, rows=True, template="sum_rows", kind=kind, doc="adds rows to one sum per channel")
        for kind in ("s8", "s16")
    ),
    *(
        KernelDef(f"requant_sums_{kind}", ("in in:s32", "out out"), ("n", "out_zp", "out_min", "out_max"),
                  _interpret_requant, float_params=("scale",), template="requant_sums", kind=kind,
                  doc="codes of int32 sums")
        for kind in ("s8", "s16")
    ),
)  # fmt: skip
