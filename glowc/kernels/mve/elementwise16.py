"""Helium variants of sums and products of int16 codes around 0 (runtime_c/mve/glow_mve_reals16.h)."""

from __future__ import annotations

from dataclasses import replace

from glowc.kernels.common.rows import are_centred
from glowc.kernels.mve.shared import PAIRWISE, accepts_rows, is_moderate
from glowc.program.ir import Instr


def _is_centred(instr: Instr) -> bool:
    """Accept zero points 0, adjacent codes, and rows of them of which one may be the same for all of the output."""
    return accepts_rows(instr) and are_centred(instr)


def accepts_sum(instr: Instr) -> bool:
    """Accept scales whose quotients are far from the ends of float32."""
    return _is_centred(instr) and is_moderate(*(float(instr.params[f"{name}_scale"]) for name in ("a", "b", "out")))


_LAYER = replace(PAIRWISE, header="glow_mve_reals16.h")

VARIANTS = {
    "add_s16": (replace(_LAYER, accepts=accepts_sum),),
    "mul_s16": (replace(_LAYER, accepts=_is_centred),),
}
