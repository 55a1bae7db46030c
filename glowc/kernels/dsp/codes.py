"""The `dsp` variants of kernels that turn codes into codes or reals, elementwise or by windows (glow_dsp_codes.h)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant
from glowc.kernels.dsp.layers import NEEDS, accepts_add_rows
from glowc.program.ir import Instr, ParamValue

_BYTES = (DType.S8, DType.U8)
_NARROW = (*_BYTES, DType.S16, DType.U16)
_LEAST = 8  # elements for which a loop over words pays


def _kind(instr: Instr, role: str) -> DType:
    return instr.operand(role).type.dtype


def _is_long(instr: Instr) -> bool:
    return instr.int_("n") >= _LEAST


def _accepts_dequantize(instr: Instr) -> bool:
    """Accept bytes."""
    return _kind(instr, "in") in _BYTES and _is_long(instr)


def _accepts_quantize(instr: Instr) -> bool:
    """Accept float32 to bytes and halfwords."""
    return _kind(instr, "in") is DType.F32 and _kind(instr, "out") in _NARROW


def _accepts_requantize(instr: Instr) -> bool:
    """Accept bytes and halfwords."""
    return _kind(instr, "in") in _NARROW and _kind(instr, "out") in _NARROW


def _accepts_pool(instr: Instr) -> bool:
    """Accept adjacent channels, at least four."""
    return instr.int_("in_ch") == 1 and instr.int_("in_c") >= 4


def _accepts_mean(instr: Instr) -> bool:
    """Accept four adjacent sums, or a long one over adjacent codes."""
    return instr.int_("inner") >= 4 or (instr.int_("inner") == 1 and _is_long(instr))


def _mean_plan(instr: Instr) -> Mapping[str, ParamValue]:
    return {"path": "row" if instr.int_("inner") == 1 else "columns"}


_CODES = KernelVariant("dsp", NEEDS, rank=10, header="glow_dsp_codes.h")
LUT = FLIP = replace(_CODES, in_place=True, accepts=_is_long)
MULTIPLY = replace(_CODES, in_place=True, accepts=accepts_add_rows)
QUANTIZE = replace(_CODES, in_place=True, accepts=_accepts_quantize)
DEQUANTIZE = replace(_CODES, accepts=_accepts_dequantize)
REQUANTIZE = replace(_CODES, in_place=True, accepts=_accepts_requantize)
MEAN = replace(_CODES, accepts=_accepts_mean, plan=_mean_plan)
MAXIMUM = AVERAGE_REAL = replace(_CODES, accepts=_accepts_pool)

VARIANTS = {
    "avg_pool_s8w": (AVERAGE_REAL,),
    "dequantize": (DEQUANTIZE,),
    "flip_sign": (FLIP,),
    "lut_s8": (LUT,),
    "max_pool_s8": (MAXIMUM,),
    "mul_s8": (MULTIPLY,),
    "mul_s8u": (MULTIPLY,),
    "quantize": (QUANTIZE,),
    "reduce_mean_s8": (MEAN,),
    "requantize": (REQUANTIZE,),
}
