"""Recurrent layers of float32 by the reference's loops, with rows of weights multiplied by vectors."""

from __future__ import annotations

from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.common.recurrent import LayerPlan, layer_scratch

LAYER = tuple(
    KernelVariant(isa, rank=30, header="glow_neon_f32.h", template="ref/{}",
                  scratch_bytes=layer_scratch, prepare=lambda _, __: Prepared(plan=LayerPlan(vector=True)))
    for isa in ("a64", "a32")
)  # fmt: skip

VARIANTS = {f"{kind}_f32": LAYER for kind in ("lstm", "gru", "rnn")}
