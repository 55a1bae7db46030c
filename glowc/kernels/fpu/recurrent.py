"""Recurrent layers of float32 by the reference's loops, with rows of weights multiplied by the FPU."""

from __future__ import annotations

from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.common.recurrent import LayerPlan, layer_scratch
from glowc.kernels.fpu.layers import NEEDS

LAYER = KernelVariant(
    "fpu", also=NEEDS, rank=10, header="glow_fpu_row.h", template="ref/{}", scratch_bytes=layer_scratch,
    prepare=lambda _, __: Prepared(plan=LayerPlan(fpu=True)),
)  # fmt: skip

VARIANTS = {f"{kind}_f32": (LAYER,) for kind in ("lstm", "gru", "rnn")}
