"""The plain variants of recurrent layers, which need scratch."""

from __future__ import annotations

from glowc.kernels.base import KernelVariant
from glowc.kernels.common.recurrent import dynamic_scratch, layer_scratch

LAYER = KernelVariant("ref", scratch_bytes=layer_scratch)

VARIANTS = {
    "lstm_dynamic": (KernelVariant("ref", scratch_bytes=dynamic_scratch),),
    **{f"{kind}_{dtype}": (LAYER,) for kind in ("lstm", "gru", "rnn") for dtype in ("f32", "f64")},
}
