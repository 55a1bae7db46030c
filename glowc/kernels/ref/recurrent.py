"""The plain variants of recurrent layers, which need scratch."""

from __future__ import annotations

from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.common.recurrent import LayerPlan, dynamic_scratch, layer_scratch

LAYER = KernelVariant("ref", scratch_bytes=layer_scratch, prepare=lambda _, __: Prepared(plan=LayerPlan()))

VARIANTS = {
    "lstm_dynamic": (KernelVariant("ref", scratch_bytes=dynamic_scratch),),
    **{f"{kind}_{dtype}": (LAYER,) for kind in ("lstm", "gru", "rnn") for dtype in ("f32", "f64")},
}
