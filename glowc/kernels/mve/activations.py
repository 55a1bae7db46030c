"""Helium variants of softmax and of normalised rows (runtime_c/mve/glow_mve_reals.h)."""

from __future__ import annotations

from dataclasses import replace

from glowc.kernels.mve.shared import FAST
from glowc.program.ir import Instr


def accepts_softmax(instr: Instr) -> bool:
    """Accept an axis whose elements are adjacent."""
    return instr.int_("inner") == 1


_REALS = replace(FAST, in_place=True, header="glow_mve_reals.h")

VARIANTS = {
    "layer_norm_s8": (_REALS,),
    "softmax_s8": (replace(_REALS, accepts=accepts_softmax),),
}
