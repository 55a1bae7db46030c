"""Tables, normalised rows and softmax of codes on A64 (runtime_c/simd/glow_neon.h, glow_neon_codes16.h)."""

from __future__ import annotations

from dataclasses import replace

from glowc.kernels.base import KernelVariant
from glowc.program.ir import Instr


def _accepts_softmax(instr: Instr) -> bool:
    """Accept rows of at least eight adjacent codes."""
    return instr.int_("inner") == 1 and instr.int_("n") >= 8


_A64 = KernelVariant("a64", rank=30, header="glow_neon.h", in_place=True)

_SOFTMAX = replace(_A64, accepts=_accepts_softmax, scratch_bytes=lambda instr: 4 * instr.int_("n"))

VARIANTS = {
    "layer_norm_s8": (replace(_A64, accepts=lambda instr: instr.int_("n") >= 8),),
    "lut_s8": (replace(_A64, accepts=lambda instr: instr.int_("n") >= 32),),
    "softmax_s16w": (replace(_SOFTMAX, header="glow_neon_codes16.h"),),
    "softmax_s8": (_SOFTMAX,),
    "softmax_s8p": (replace(_SOFTMAX, template="softmax_s8p"),),
}
