"""The A64 and A32 variants of pools and of kernels between codes and reals (runtime_c/simd/glow_neon_codes.h)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant
from glowc.program.ir import Instr, ParamValue

_BYTES = (DType.S8, DType.U8)
_LEAST = 8  # elements of a vector of codes
_SMALLEST = 2.0**-100  # scales with which no product of a code is denormal: A32 would make it 0


def _kind(instr: Instr, role: str) -> DType:
    return instr.operand(role).type.dtype


def _is_normal(instr: Instr, *scales: str) -> bool:
    return all(abs(float(instr.params[key])) >= _SMALLEST for key in scales)


def _accepts_quantize(instr: Instr) -> bool:
    """Accept float32 to bytes."""
    return _kind(instr, "in") is DType.F32 and _kind(instr, "out") in _BYTES and instr.int_("n") >= _LEAST


def _accepts_dequantize(instr: Instr) -> bool:
    """Accept bytes to float32."""
    return _kind(instr, "in") in _BYTES and instr.int_("n") >= _LEAST and _is_normal(instr, "scale")


def _accepts_requantize(instr: Instr) -> bool:
    """Accept bytes to bytes."""
    bytes_ = _kind(instr, "in") in _BYTES and _kind(instr, "out") in _BYTES
    return bytes_ and instr.int_("n") >= _LEAST and _is_normal(instr, "in_scale", "out_scale")


def _accepts_mean(instr: Instr) -> bool:
    """Accept eight adjacent sums, or a long one over adjacent codes."""
    return instr.int_("inner") >= _LEAST or (instr.int_("inner") == 1 and instr.int_("n") >= 2 * _LEAST)


def _mean_plan(instr: Instr) -> Mapping[str, ParamValue]:
    return {"path": "row" if instr.int_("inner") == 1 else "columns"}


def _accepts_average(instr: Instr) -> bool:
    """Accept eight adjacent channels."""
    adjacent = instr.int_("in_ch") == 1 and instr.int_("in_c") >= _LEAST
    return adjacent and _is_normal(instr, "in_scale", "out_scale")


def _accepts_floats(instr: Instr) -> bool:
    """Accept four adjacent channels."""
    return instr.int_("in_ch") == 1 and instr.int_("in_c") >= 4


_A64 = KernelVariant("neon", frozenset({"a64", "neon"}), rank=30, header="glow_neon_codes.h")
_A32 = replace(_A64, isa="a32", needs=frozenset({"a32", "neon"}))
QUANTIZE = tuple(replace(v, accepts=_accepts_quantize, in_place=True) for v in (_A64, _A32))
DEQUANTIZE = tuple(replace(v, accepts=_accepts_dequantize) for v in (_A64, _A32))
REQUANTIZE = tuple(replace(v, accepts=_accepts_requantize, in_place=True) for v in (_A64, _A32))
MEAN = tuple(replace(v, accepts=_accepts_mean, plan=_mean_plan) for v in (_A64, _A32))
AVERAGE_REAL = tuple(replace(v, accepts=_accepts_average) for v in (_A64, _A32))
AVERAGE_F32 = tuple(replace(v, accepts=_accepts_floats) for v in (_A64, _A32))
MAXIMUM_F32 = tuple(replace(v) for v in AVERAGE_F32)

VARIANTS = {
    "avg_pool_f32": AVERAGE_F32,
    "avg_pool_s8w": AVERAGE_REAL,
    "dequantize": DEQUANTIZE,
    "max_pool_f32": MAXIMUM_F32,
    "quantize": QUANTIZE,
    "reduce_mean_s8": MEAN,
    "requantize": REQUANTIZE,
}
