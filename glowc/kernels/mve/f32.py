"""Helium variants of float32 kernels, which read weights as they are (runtime_c/mve/glow_mve_f32.h)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant
from glowc.kernels.mve.layers import accepts_add
from glowc.program.ir import Instr, ParamValue

_GROUP = 4
_FAST = KernelVariant("mve", frozenset({"mve", "mve-fp"}), rank=25, header="glow_mve_f32.h")


def _has_weights(instr: Instr) -> bool:
    """Say whether the weights are float32, or int8 with zero point 0."""
    kind = instr.operand("weights").type.dtype
    return kind is DType.F32 or (kind is DType.S8 and instr.int_("w_zp") == 0)


def _are_floats(instr: Instr, *roles: str) -> bool:
    return all(instr.operand(role).type.dtype is DType.F32 for role in roles)


def accepts_conv(instr: Instr) -> bool:
    """Accept one group of float32 with four outputs or more."""
    plain = _are_floats(instr, "in", "out") and instr.int_("groups") == 1
    return plain and _has_weights(instr) and instr.int_("out_c") >= _GROUP


def conv_scratch(instr: Instr) -> int:
    """Bytes of four windows."""
    return 16 * instr.int_("k_h") * instr.int_("k_w") * instr.int_("in_c")


def conv_plan(instr: Instr) -> Mapping[str, ParamValue]:
    """Say whether the rows of a window can be read in place."""
    dense = instr.int_("in_ch") == 1 and instr.int_("in_col") == instr.int_("in_c")
    return {"direct": int(dense and (instr.int_("dil_w") == 1 or instr.int_("k_w") == 1))}


def accepts_depthwise(instr: Instr) -> bool:
    """Accept one output channel per input channel, channels adjacent."""
    same = instr.int_("in_c") == instr.int_("out_c") == instr.int_("groups")
    return _are_floats(instr, "in", "weights", "out") and same and instr.int_("in_ch") == 1


def accepts_fc(instr: Instr) -> bool:
    """Accept four outputs or more."""
    return _are_floats(instr, "in", "out") and _has_weights(instr) and instr.int_("out_n") >= _GROUP


def accepts_matmul(instr: Instr) -> bool:
    """Accept adjacent columns on the left."""
    return _are_floats(instr, "a", "b", "out") and (instr.int_("a_col") == 1 or instr.int_("k") == 1)


def accepts_binary(instr: Instr) -> bool:
    """Accept sums, differences and products of adjacent elements, of which rows may be repeated."""
    return instr.params["op"] in ("add", "sub", "mul") and _are_floats(instr, "a", "b", "out") and accepts_add(instr)


def rank_plan(instr: Instr) -> Mapping[str, ParamValue]:
    """Print the rank."""
    return {"rank": instr.int_("rank")}


def accepts_pool(instr: Instr) -> bool:
    """Accept adjacent channels."""
    return instr.int_("in_ch") == 1


MAXIMUM = AVERAGE = replace(_FAST, accepts=accepts_pool)
BINARY = replace(_FAST, in_place=True, accepts=accepts_binary, plan=rank_plan)
CONV = replace(_FAST, accepts=accepts_conv, scratch_bytes=conv_scratch, plan=conv_plan)
DEPTHWISE = replace(_FAST, accepts=accepts_depthwise)
FC = replace(_FAST, accepts=accepts_fc)
MATMUL = replace(_FAST, accepts=accepts_matmul)

VARIANTS = {
    "avg_pool_f32": (AVERAGE,),
    "binary": (BINARY,),
    "conv_f32": (CONV,),
    "conv_f32w8": (CONV,),
    "dwconv_f32": (DEPTHWISE,),
    "fc_f32": (FC,),
    "fc_f32w8": (FC,),
    "matmul_f32": (MATMUL,),
    "max_pool_f32": (MAXIMUM,),
}
