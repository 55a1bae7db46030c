"""Helium variants of kernels that have no weights: products of activations, softmax, normalised rows, conversions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant
from glowc.kernels.mve.layers import accepts_add
from glowc.program.ir import Instr, ParamValue

_LEAST = 2.0**-40
_STEPS = 1 << 13  # bytes between elements of a column: eight of them fit a 16-bit offset
_FAST = KernelVariant("mve", frozenset({"mve", "mve-fp"}), rank=20)


def _are_codes(instr: Instr, *roles: str) -> bool:
    return all(instr.operand(role).type.dtype is DType.S8 for role in roles)


def _is_packed(instr: Instr) -> bool:
    """Say whether the columns of the right operand must be copied to lie in rows."""
    return instr.int_("b_row") != 1 and instr.int_("k") > 1


def accepts_matmul(instr: Instr) -> bool:
    """Accept int8 products whose left operand has adjacent columns."""
    adjacent = instr.int_("a_col") == 1 or instr.int_("k") == 1
    return _are_codes(instr, "a", "b", "out") and adjacent and instr.int_("b_row") < _STEPS


def matmul_scratch(instr: Instr) -> int:
    """Bytes of a sum per column, and of the columns where they are copied."""
    columns = -(-instr.int_("n") // 4) * 4
    return columns * (4 + (instr.int_("k") if _is_packed(instr) else 0))


def matmul_plan(instr: Instr) -> Mapping[str, ParamValue]:
    """Print whether the columns are copied."""
    return {"packed": int(_is_packed(instr))}


def accepts_softmax(instr: Instr) -> bool:
    """Accept an axis whose elements are adjacent."""
    return instr.int_("inner") == 1


def _is_moderate(*scales: float) -> bool:
    """Say whether quotients of products of codes and scales are far from the ends of float32."""
    return all(_LEAST < abs(scale) < 1 / _LEAST for scale in scales)


def accepts_quantize(instr: Instr) -> bool:
    """Accept float32 to bytes."""
    bytes_ = instr.operand("out").type.dtype in (DType.S8, DType.U8)
    return bytes_ and instr.operand("in").type.dtype is DType.F32 and _is_moderate(float(instr.params["scale"]))


def accepts_requantize(instr: Instr) -> bool:
    """Accept bytes to bytes."""
    bytes_ = all(instr.operand(role).type.dtype in (DType.S8, DType.U8) for role in ("in", "out"))
    return bytes_ and _is_moderate(float(instr.params["in_scale"]), float(instr.params["out_scale"]))


def accepts_mul(instr: Instr) -> bool:
    """Accept adjacent int8 operands, and rows of them of which one may be the same for all rows of the output."""
    return _are_codes(instr, "a", "b", "out") and accepts_add(instr)


def mul_plan(instr: Instr) -> Mapping[str, ParamValue]:
    """Print the rank."""
    return {"rank": instr.int_("rank")}


def accepts_average(instr: Instr) -> bool:
    """Accept adjacent channels, and scales whose quotients are exact."""
    scales = float(instr.params["in_scale"]), float(instr.params["out_scale"])
    return _are_codes(instr, "in", "out") and instr.int_("in_ch") == 1 and _is_moderate(*scales)


def accepts_dynamic(instr: Instr) -> bool:
    """Accept rows of bytes and int8 weights."""
    bytes_ = instr.operand("in").type.dtype in (DType.S8, DType.U8)
    return bytes_ and _are_codes(instr, "weights") and instr.operand("w_zp").type.dtype is DType.S32


def dynamic_scratch(instr: Instr) -> int:
    """Bytes of a sum per output, and of one row of inputs."""
    return -(-instr.int_("out_n") // 4) * 16 + instr.int_("in_k")


_REALS = replace(_FAST, in_place=True, header="glow_mve_reals.h")
SOFTMAX = replace(_REALS, accepts=accepts_softmax)
LAYER_NORM = _REALS
QUANTIZE = replace(_REALS, accepts=accepts_quantize)
REQUANTIZE = replace(_REALS, accepts=accepts_requantize)
MULTIPLY = replace(_REALS, accepts=accepts_mul, plan=mul_plan)
AVERAGE_REAL = replace(_FAST, accepts=accepts_average, header="glow_mve_pool.h")
DYNAMIC_QUANTIZE = replace(_FAST, header="glow_mve_dynamic.h")
DYNAMIC_FC = replace(_FAST, accepts=accepts_dynamic, scratch_bytes=dynamic_scratch, header="glow_mve_dynamic.h")
MATMUL = replace(
    _FAST, accepts=accepts_matmul, scratch_bytes=matmul_scratch, plan=matmul_plan, header="glow_mve_matmul.h"
)

VARIANTS = {
    "avg_pool_s8w": (AVERAGE_REAL,),
    "dynamic_quantize": (DYNAMIC_QUANTIZE,),
    "fc_dynamic": (DYNAMIC_FC,),
    "layer_norm_s8": (LAYER_NORM,),
    "matmul_s8": (MATMUL,),
    "mul_s8": (MULTIPLY,),
    "mul_s8u": (MULTIPLY,),
    "quantize": (QUANTIZE,),
    "requantize": (REQUANTIZE,),
    "softmax_s8": (SOFTMAX,),
}
