"""Helium variants of kernels whose scales and zero points are known at run time (runtime_c/mve/glow_mve_dynamic.h)."""

from __future__ import annotations

from dataclasses import replace

from glowc.graph.types import DType
from glowc.kernels.mve.shared import FAST, are_codes
from glowc.kernels.mve.stream import GROUP
from glowc.kernels.shapes import FullyConnected
from glowc.program.ir import Instr

_SUM = 4  # bytes


def accepts_fc(instr: Instr) -> bool:
    """Accept rows of bytes and int8 weights."""
    bytes_ = instr.operand("in").type.dtype in (DType.S8, DType.U8)
    return bytes_ and are_codes(instr, "weights") and instr.operand("w_zp").type.dtype is DType.S32


def fc_scratch(instr: Instr) -> int:
    """Bytes of a sum per output, and of one row of inputs."""
    shape = FullyConnected.of(instr)
    return -(-shape.out_n // GROUP) * GROUP * _SUM + shape.in_k


_DYNAMIC = replace(FAST, header="glow_mve_dynamic.h")

VARIANTS = {
    "dynamic_quantize": (_DYNAMIC,),
    "fc_dynamic": (replace(_DYNAMIC, accepts=accepts_fc, scratch_bytes=fc_scratch),),
}
