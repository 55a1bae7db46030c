"""The plain variants of recurrent layers, which need scratch."""

from __future__ import annotations

from dataclasses import replace

from glowc.kernels.base import PLAIN, Prepared
from glowc.kernels.common.recurrent import LayerPlan, dynamic_scratch, layer_scratch
from glowc.kernels.features import Stated

LAYER = replace(PLAIN, scratch_bytes=layer_scratch, prepare=lambda _, __: Prepared(plan=LayerPlan()))

_FUNCTIONS = {"lstm": 600, "gru": 360, "rnn": 130}
"""Instructions of the functions of a cell and step, where there is an FPU."""

VARIANTS = {
    "lstm_dynamic": (replace(PLAIN, scratch_bytes=dynamic_scratch),),
    **{
        f"{kind}_{dtype}": (replace(LAYER, stated=Stated(macs=25, outputs=insns)),)
        for kind, insns in _FUNCTIONS.items()
        for dtype in ("f32", "f64")
    },
}
