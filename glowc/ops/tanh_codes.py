"""Tanh and Sigmoid between int16 codes around 0 in integers, the kernel tanh_s16 (glowc/graph/tanh_codes.py).

Evidence: the code of every input equals that of the functions of floats, for the scales of each layer when it is
compiled; layers where more than a few hundred differ before they are corrected are computed in floats.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowc.graph.tanh_codes import FUNCTIONS, results, sums, tanh_codes, tanh_table
from glowc.graph.types import DType
from glowc.ops.base import LowerCtx, Ref
from glowc.ops.params import Elements
from glowc.program.kernel import Arrays, KernelDef


@dataclass(frozen=True, slots=True)
class TanhParams(Elements):
    """Of `tanh_s16`: what the sums are made of, how near to a step codes are looked for, and how many there are."""

    mul: int
    shift: int
    scale: int
    start: int
    near: int
    fixes: int


def emit_tanh(ctx: LowerCtx, x: Ref, y: Ref, function: str, name: str) -> bool:
    """Emit `tanh_s16` where a function is one that it computes, and say whether it is."""
    assert x.type.quant is not None
    assert y.type.quant is not None
    (in_scale, in_zp), (out_scale, out_zp) = x.type.quant.scalar, y.type.quant.scalar
    is_centred = x.type.dtype is DType.S16 and y.type.dtype is DType.S16 and in_zp == out_zp == 0
    made = tanh_codes(function, float(in_scale), float(out_scale)) if is_centred and function in FUNCTIONS else None
    if made is None:
        return False
    table = ctx.const(tanh_table().reshape(-1), "tanh_table")
    fixes = ctx.const(np.asarray(made.fixes or (0,), np.int16), f"{name}_fixes")
    params = TanhParams(
        x.type.elements, made.mul, made.shift, made.scale, made.start, made.near, len(made.fixes)
    )  # fmt: skip
    ctx.emit("tanh_s16", {"in": x, "table": table, "fixes": fixes, "out": y}, params)
    return True


def _interpret(a: Arrays, p: TanhParams) -> None:
    codes = a["in"].reshape(-1)
    total = sums(codes, a["table"].reshape(-1, 4), p.mul, p.shift, p.scale, p.start)
    a["out"].reshape(-1)[:] = results(total, codes, p.near, a["fixes"][: p.fixes])


KERNELS = (
    KernelDef("tanh_s16", ("in in:s16", "in table:s32", "in fixes:s16", "out out:s16"), TanhParams, _interpret,
              in_place=("in",), kind="s16", length="n", doc="tanh or sigmoid of int16 codes around 0, in integers"),
)  # fmt: skip
