"""Functions of floats, softmax and normalised rows, four elements at a time (runtime_c/mve/glow_mve_elementary.h)."""

from __future__ import annotations

from dataclasses import replace

from glowc.kernels.common.elementary import accepts_function, accepts_softmax
from glowc.kernels.mve.shared import FAST

_SHARED = replace(FAST, rank=25, in_place=True, header="glow_mve_elementary.h")

VARIANTS = {
    "layer_norm_f32": (_SHARED,),
    "layer_norm_stats_f32": (_SHARED,),
    "softmax_f32": (replace(_SHARED, accepts=accepts_softmax),),
    "unary": (replace(_SHARED, accepts=accepts_function),),
}
