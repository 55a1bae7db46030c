"""Recurrent layers of float32 by the reference's loops, with rows of weights multiplied by vectors."""

from __future__ import annotations

from dataclasses import replace

from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.common.recurrent import LayerPlan, layer_scratch
from glowc.kernels.features import Stated

LAYER = tuple(
    KernelVariant(isa, rank=30, header="glow_neon_f32.h", template="ref/{}",
                  scratch_bytes=layer_scratch, prepare=lambda _, __: Prepared(plan=LayerPlan(vector=True)))
    for isa in ("a64", "a32")
)  # fmt: skip

_FUNCTIONS = {"lstm": 400, "gru": 250, "rnn": 90}
"""Instructions of the functions of a cell and step: Sigmoid and Tanh take about eighty each."""

VARIANTS = {
    f"{kind}_f32": tuple(replace(one, stated=Stated(macs=0.9, outputs=insns)) for one in LAYER)
    for kind, insns in _FUNCTIONS.items()
}
