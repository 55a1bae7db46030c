"""conv_integer on A64 and A32: zero points known at run time (runtime_c/simd/glow_neon_integer.h)."""

from __future__ import annotations

from dataclasses import replace

from glowc.kernels.base import KernelVariant
from glowc.program.ir import Instr


def _accepts(instr: Instr) -> bool:
    """Accept NHWC without groups, two outputs or more, at least a vector of adjacent inputs."""
    plain = instr.int_("nhwc") == instr.int_("groups") == 1 and instr.int_("out_c") >= 2
    return plain and instr.int_("dil_w") == 1 and instr.int_("k_w") * instr.int_("in_c") >= 8


_A32 = KernelVariant("a32", rank=30, header="glow_neon_integer.h", accepts=_accepts)

VARIANTS = {"conv_integer": (_A32, replace(_A32, isa="a64"))}
