"""The `fpu` variants: float32 kernels whose sums stay in the FPU's registers (runtime_c/fpu/glow_fpu.h)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant
from glowc.program.ir import Instr, ParamValue
from glowc.program.kernel import Arrays

NEEDS = frozenset({"dsp", "fpu", "unaligned"})  # Cortex-M4F, M7, M33, M55
_BLOCK = 4  # outputs
_LARGE = 9  # positions of a window


def _is_planar(instr: Instr) -> bool:
    return instr.int_("in_ch") != 1 and instr.int_("in_c") > 1


def _conv_plan(instr: Instr) -> Mapping[str, ParamValue]:
    return {"path": "planar" if _is_planar(instr) else "rows"}


def _accepts_conv(instr: Instr) -> bool:
    """Accept a window whose rows lie in the input as they are, and at least four outputs."""
    if instr.int_("groups") != 1 or instr.int_("out_c") < _BLOCK:
        return False
    adjacent = instr.int_("in_col") == (1 if _is_planar(instr) else instr.int_("in_c"))
    return adjacent and (instr.int_("dil_w") == 1 or instr.int_("k_w") == 1)


def _pack_conv(constants: Arrays, instr: Instr) -> Arrays:
    """Order the weights of a planar input by channel first."""
    if not _is_planar(instr):
        return {}
    weights = constants["weights"].reshape([instr.int_(key) for key in ("out_c", "k_h", "k_w", "in_c")])
    return {"weights": np.ascontiguousarray(weights.transpose(0, 3, 1, 2)).reshape(-1)}


def _zero_at_zero(instr: Instr) -> bool:
    """Say whether int8 weights have zero point 0."""
    return instr.int_("w_zp") == 0


def _accepts_depthwise(instr: Instr) -> bool:
    """Accept one output a channel, at least eight adjacent channels."""
    dense = instr.int_("in_ch") == 1 and instr.int_("in_col") == instr.int_("in_c")
    return dense and instr.int_("groups") == instr.int_("out_c") == instr.int_("in_c") >= 8


def _accepts_fc(instr: Instr) -> bool:
    return instr.int_("in_k") >= _BLOCK and instr.int_("out_n") >= _BLOCK


def _matmul_plan(instr: Instr) -> Mapping[str, ParamValue]:
    return {"path": "outer" if instr.int_("b_col") == 1 else "dots"}


def _accepts_matmul(instr: Instr) -> bool:
    """Accept adjacent columns of a, adjacent columns or rows of b, and at least two rows and four columns."""
    adjacent = instr.int_("a_col") == 1 and 1 in (instr.int_("b_col"), instr.int_("b_row"))
    return adjacent and instr.int_("m") >= 2 and instr.int_("n") >= _BLOCK


def _accepts_maximum(instr: Instr) -> bool:
    """Accept adjacent channels, at least four."""
    return instr.int_("in_ch") == 1 and instr.int_("in_c") >= _BLOCK


def _accepts_average(instr: Instr) -> bool:
    """Accept as of a maximum, and windows that are worth a loop of their own."""
    return _accepts_maximum(instr) and instr.int_("k_h") * instr.int_("k_w") >= _LARGE


def _binary_plan(instr: Instr) -> Mapping[str, ParamValue]:
    """Which bounds there are, and whether an operand goes on along the last axis or is one number for all."""
    last = int(instr.params["rank"]) - 1
    bounds = [instr.int_("clamp") and abs(float(instr.params[key])) < math.inf for key in ("act_min", "act_max")]
    limit = "" if not any(bounds) else "_between" if bounds[1] else "_from"
    return {"limit": limit, **{f"{name}_step": instr.int_(f"{name}{last}") for name in "ab"}}


def _accepts_binary(instr: Instr) -> bool:
    """Accept float32 arithmetic on rows of at least eight."""
    if instr.params["op"] not in ("add", "sub", "mul", "div") or instr.operand("out").type.dtype is not DType.F32:
        return False
    last = int(instr.params["rank"]) - 1
    steps = {instr.int_(f"{name}{last}") for name in "ab"}
    return last >= 0 and 1 in steps and steps <= {0, 1} and instr.int_(f"d{last}") >= 2 * _BLOCK


_SHARED = KernelVariant("fpu", NEEDS, rank=10, header="glow_fpu.h")
CONV = replace(_SHARED, accepts=_accepts_conv, plan=_conv_plan, pack=_pack_conv, packs=frozenset({"weights"}))
CONV_W8 = replace(CONV, header="glow_fpu_w8.h", accepts=lambda instr: _zero_at_zero(instr) and _accepts_conv(instr))
DEPTHWISE = replace(_SHARED, accepts=_accepts_depthwise)
FC = replace(_SHARED, accepts=_accepts_fc)
FC_W8 = replace(FC, header="glow_fpu_w8.h", accepts=lambda instr: _zero_at_zero(instr) and _accepts_fc(instr))
MATMUL = replace(_SHARED, accepts=_accepts_matmul, plan=_matmul_plan)
MAXIMUM = replace(_SHARED, needs=NEEDS | {"vcvtn"}, accepts=_accepts_maximum, header="glow_fpu_pool.h")  # has VMAXNM
BINARY = replace(_SHARED, in_place=True, accepts=_accepts_binary, plan=_binary_plan, header="glow_fpu_binary.h")
AVERAGE = replace(_SHARED, accepts=_accepts_average, header="glow_fpu_pool.h")

VARIANTS = {
    "avg_pool_f32": (AVERAGE,),
    "binary": (BINARY,),
    "conv_f32": (CONV,),
    "conv_f32w8": (CONV_W8,),
    "dwconv_f32": (DEPTHWISE,),
    "fc_f32": (FC,),
    "fc_f32w8": (FC_W8,),
    "matmul_f32": (MATMUL,),
    "max_pool_f32": (MAXIMUM,),
}
