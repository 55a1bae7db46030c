"""Helium variants of softmax and of normalised rows (runtime_c/mve/glow_mve_reals.h, glow_mve_softmax16.h)."""

from __future__ import annotations

from dataclasses import replace

from glowc.kernels.mve.shared import FAST, is_moderate
from glowc.program.ir import Instr


def accepts_softmax(instr: Instr) -> bool:
    """Accept an axis whose elements are adjacent."""
    return instr.int_("inner") == 1


def accepts_wide_softmax(instr: Instr) -> bool:
    """Accept the same where what is not 0 in the end is far from the ends of float32."""
    return accepts_softmax(instr) and is_moderate(float(instr.params["steps"]))


_REALS = replace(FAST, in_place=True, header="glow_mve_reals.h")

VARIANTS = {
    "layer_norm_s8": (_REALS,),
    "softmax_s16w": (replace(_REALS, accepts=accepts_wide_softmax, header="glow_mve_softmax16.h"),),
    "softmax_s8": (replace(_REALS, accepts=accepts_softmax),),
}
