"""Variants in plain C for cores without FPU and DSP (Cortex-M0, M3): the input's zero point goes into the bias."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from glowc.graph.types import DType
from glowc.instr.ir import Instr, ParamValue
from glowc.ops.base import Arrays, KernelVariant
from glowc.ops.packing_dsp import accepts_matrix, conv_plan

NEEDS = frozenset({"thumb"})
_HEADER = "glow_m3.h"
_MAX_WIDTH = 8


def _int(instr: Instr, key: str) -> int:
    return int(instr.params[key])


def pack(constants: Arrays, instr: Instr) -> Arrays:
    """Fold the zero point into the bias (modulo 2^32, as the sums)."""
    weights = constants["weights"].astype(np.int64).reshape(constants["bias"].size, -1)
    bias = constants["bias"].astype(np.int64) - _int(instr, "in_zp") * weights.sum(1)
    return {"bias": ((bias + (1 << 31)) % (1 << 32) - (1 << 31)).astype(np.int32)}


def plan(instr: Instr) -> Mapping[str, ParamValue]:
    """Tell whether pixels are read in place, and whether the rows of a window are dense."""
    dense = _int(instr, "in_ch") == 1 and _int(instr, "in_col") == _int(instr, "in_c") and _int(instr, "dil_w") == 1
    return {"point": int(conv_plan(instr)["path"] == "point"), "dense": int(dense)}


def scratch(instr: Instr) -> int:
    """Bytes of two windows."""
    return 0 if plan(instr)["point"] else 2 * _int(instr, "k_h") * _int(instr, "k_w") * _int(instr, "in_c")


def accepts_depthwise(instr: Instr) -> bool:
    """Accept int8, one output channel per input channel, adjacent channels."""
    if any(instr.operand(role).type.dtype is not DType.S8 for role in ("in", "weights", "out")):
        return False
    alike = _int(instr, "in_c") == _int(instr, "out_c") == _int(instr, "groups")
    small = max(_int(instr, "k_h"), _int(instr, "k_w")) <= _MAX_WIDTH
    return alike and small and _int(instr, "in_ch") == 1 and _int(instr, "w_zp") == 0


def depthwise_plan(instr: Instr) -> Mapping[str, ParamValue]:
    """The window is printed with literal sizes."""
    return {"k_h": _int(instr, "k_h"), "k_w": _int(instr, "k_w")}


CONV = KernelVariant(
    "m3", NEEDS, rank=5, header=_HEADER, accepts=accepts_matrix, pack=pack, plan=plan, scratch_bytes=scratch
)
DEPTHWISE = KernelVariant("m3", NEEDS, rank=5, header=_HEADER, accepts=accepts_depthwise, plan=depthwise_plan)
FC = KernelVariant("m3", NEEDS, rank=5, header=_HEADER, accepts=accepts_matrix, pack=pack)
