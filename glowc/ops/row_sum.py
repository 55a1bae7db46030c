"""Kernels of a global mean that is computed row by row: sums in the arena, and what makes codes of them.

sum_rows: acc[c] = sum over rows and columns of (in - in_zp), in int32; the row 0 starts from 0. requant_sums:
out = clamp(rne(float32(acc) * scale) + out_zp), the formula of avg_pool and reduce_mean, so that the bytes are
the same. No operator lowers to them: the streaming of rows puts them in the place of a pooling.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowc.graph.numerics import F32, requantize
from glowc.ops.params import Elements, OutCodes
from glowc.program.kernel import Arrays, KernelDef
from glowc.program.params import Params


@dataclass(frozen=True, slots=True)
class SumRows(Params):
    """Of `sum_rows_<kind>`: one image."""

    in_w: int
    in_c: int
    in_row: int
    in_ring: int
    in_zp: int


@dataclass(frozen=True, slots=True)
class RequantSums(Elements):
    """Of `requant_sums_<kind>`."""

    out: OutCodes
    scale: float


def _interpret_sum(a: Arrays, p: SumRows, rows: range) -> None:
    acc = a["acc"].reshape(-1)
    for y in rows:
        if y == 0:
            acc[:] = 0
        at = y % p.in_ring * p.in_row
        line = a["in"].reshape(-1)[at : at + p.in_w * p.in_c].reshape(p.in_w, p.in_c)
        acc += (line.astype(np.int64) - p.in_zp).sum(0).astype(np.int32)


def _interpret_requant(a: Arrays, p: RequantSums) -> None:
    a["out"].reshape(-1)[:] = requantize(a["in"].reshape(-1), F32(p.scale), *p.out.bounds).astype(a["out"].dtype)


KERNELS = (
    *(
        KernelDef(f"sum_rows_{kind}", ("in in", "out acc:s32"), SumRows,
                  interpret_rows=_interpret_sum, template="sum_rows", kind=kind, doc="adds rows to one sum per channel")
        for kind in ("s8", "s16")
    ),
    *(
        KernelDef(f"requant_sums_{kind}", ("in in:s32", "out out"), RequantSums,
                  _interpret_requant, template="requant_sums", kind=kind,
                  doc="codes of int32 sums")
        for kind in ("s8", "s16")
    ),
)  # fmt: skip
