"""Functions of floats and softmax by the FPU alone, four elements at a time (runtime_c/fpu/glow_fpu_elementary.h)."""

from __future__ import annotations

from dataclasses import replace

from glowc.kernels.base import KernelVariant
from glowc.kernels.common.elementary import accepts_function, accepts_softmax
from glowc.kernels.fpu.layers import NEEDS
from glowc.program.ir import Instr

_FOUR = 4
_SHARED = KernelVariant("fpu", also=NEEDS, rank=10, in_place=True, header="glow_fpu_elementary.h")


def _accepts_function(instr: Instr) -> bool:
    return accepts_function(instr) and instr.int_("n") >= _FOUR


def _accepts_softmax(instr: Instr) -> bool:
    return accepts_softmax(instr) and instr.int_("n") >= _FOUR


_NORM = replace(_SHARED, header="")

VARIANTS = {
    "layer_norm_f32": (_NORM,),
    "layer_norm_stats_f32": (_NORM,),
    "softmax_f32": (replace(_SHARED, accepts=_accepts_softmax),),
    "unary": (replace(_SHARED, accepts=_accepts_function),),
}
