"""Helium variants of int8 layers and sums that end in a multiplication and a shift: packing_float_shift."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from glowc.graph.types import DType
from glowc.kernels.common.float_shift import as_scaled, columns, rows
from glowc.kernels.mve import layers as packing_mve
from glowc.program.ir import Instr, ParamValue
from glowc.program.kernel import Arrays


def _streamed(packed: Arrays) -> Arrays:
    """Biases and scales are in the stream of weights."""
    return {"weights": packed["weights"], "mul": np.zeros(1, np.int32), "offset": packed["bias"]}


CONV = as_scaled(packing_mve.CONV, 4, rows, _streamed)
DEPTHWISE = as_scaled(packing_mve.DEPTHWISE, 3, columns, _streamed)
FC = as_scaled(packing_mve.FC, 2, rows, _streamed)


def _pack_add(constants: Arrays, instr: Instr) -> Arrays:
    """Return `mul` as the bits of float32 (v, start): a * v + (b * v + start), half to even, is the code less the zero
    point, or nothing when that is not so for all pairs of codes."""
    shift, mul, offset = instr.int_("shift"), int(constants["mul"][0]), int(constants["offset"][0])
    a_zp, b_zp, zp, low, high = (instr.int_(key) for key in ("a_zp", "b_zp", "out_zp", "out_min", "out_max"))
    sign = 1 if instr.params["sign"] == "+" else -1
    a, b = (v.reshape(-1) for v in np.meshgrid(np.arange(-128, 128), np.arange(-128, 128)))
    want = np.clip(((((a - a_zp) + sign * (b - b_zp)) * mul + offset) >> shift) + zp, low, high)
    factor = np.float32(mul / 2.0**shift)
    exact = (offset - (1 << shift >> 1)) / 2.0**shift - (a_zp + sign * b_zp) * float(factor)
    for steps in range(4):
        start = np.float32(exact) + np.float32(steps) * np.spacing(np.float32(abs(exact) + 1))
        inner = np.float32(sign * b.astype(np.float64) * factor + start).astype(np.float64)
        sums = np.float32(a.astype(np.float64) * factor + inner).astype(np.float64)
        if np.array_equal(np.clip(np.rint(sums) + zp, low, high), want):
            return {"mul": np.asarray([factor, start], np.float32).view(np.int32)}
    return {}


def _plan_add(instr: Instr) -> Mapping[str, ParamValue]:
    packed = instr.operand("mul").type.elements == 2
    return {"path": "fused" if packed else "ref", "rank": instr.int_("rank")}


def _accepts_add(instr: Instr) -> bool:
    return packing_mve.accepts_add(instr) and instr.operand("out").type.dtype is DType.S8


ADD = replace(packing_mve.ADD, accepts=_accepts_add, pack=_pack_add, plan=_plan_add)

VARIANTS = {
    "add_s8rs": (ADD,),
    "conv_s8rs": (CONV,),
    "dwconv_s8rs": (DEPTHWISE,),
    "fc_s8rs": (FC,),
}
