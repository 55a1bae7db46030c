"""Kernels between codes and reals on A64 and A32 (runtime_c/simd/glow_neon_codes.h)."""

from __future__ import annotations

from dataclasses import replace

from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant
from glowc.program.ir import Instr

_BYTES = (DType.S8, DType.U8)
_HALFWORDS = (DType.S16, DType.U16)
LEAST = 8  # elements of a vector of codes
_SMALLEST = 2.0**-100  # scales with which no product of a code is denormal: A32 would make it 0


def _kind(instr: Instr, role: str) -> DType:
    return instr.operand(role).type.dtype


def is_normal(instr: Instr, *scales: str) -> bool:
    """Accept scales with which no product of a code is denormal."""
    return all(abs(float(instr.params[key])) >= _SMALLEST for key in scales)


def _accepts_quantize(instr: Instr) -> bool:
    """Accept float32 to bytes."""
    return _kind(instr, "in") is DType.F32 and _kind(instr, "out") in _BYTES and instr.int_("n") >= LEAST


def _accepts_long(instr: Instr) -> bool:
    """Accept float32 to halfwords."""
    return _kind(instr, "in") is DType.F32 and _kind(instr, "out") in _HALFWORDS and instr.int_("n") >= LEAST


def _accepts_dynamic(instr: Instr) -> bool:
    """Accept a vector of floats or more."""
    return instr.int_("n") >= LEAST


def _accepts_dequantize(instr: Instr) -> bool:
    """Accept bytes to float32."""
    return _kind(instr, "in") in _BYTES and instr.int_("n") >= LEAST and is_normal(instr, "scale")


def _accepts_requantize(instr: Instr) -> bool:
    """Accept bytes to bytes."""
    bytes_ = _kind(instr, "in") in _BYTES and _kind(instr, "out") in _BYTES
    return bytes_ and instr.int_("n") >= LEAST and is_normal(instr, "in_scale", "out_scale")


A64 = KernelVariant("a64", rank=30, header="glow_neon_codes.h")
A32 = replace(A64, isa="a32")
_BOTH = (A64, A32)

_LONG = replace(A64, form="long", in_place=True, accepts=_accepts_long)

VARIANTS = {
    "dynamic_quantize": tuple(replace(v, accepts=_accepts_dynamic) for v in _BOTH),
    "dequantize": tuple(replace(v, accepts=_accepts_dequantize) for v in _BOTH),
    "quantize": (*(replace(v, accepts=_accepts_quantize, in_place=True) for v in _BOTH), _LONG),
    "requantize": tuple(replace(v, accepts=_accepts_requantize, in_place=True) for v in _BOTH),
}
