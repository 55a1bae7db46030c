"""The plain variants of recurrent layers, which need scratch."""

from __future__ import annotations

from dataclasses import replace

from glowc.kernels.base import PLAIN, Prepared
from glowc.kernels.common.recurrent import LayerPlan, dynamic_scratch, layer_scratch

LAYER = replace(PLAIN, scratch_bytes=layer_scratch, prepare=lambda _, __: Prepared(plan=LayerPlan()))

VARIANTS = {
    "lstm_dynamic": (replace(PLAIN, scratch_bytes=dynamic_scratch),),
    **{f"{kind}_{dtype}": (LAYER,) for kind in ("lstm", "gru", "rnn") for dtype in ("f32", "f64")},
}
