"""Recurrent layers of float32 by the reference's loops, with rows of weights multiplied by the FPU."""

from __future__ import annotations

from dataclasses import replace

from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.common.recurrent import LayerPlan, layer_scratch
from glowc.kernels.features import Stated
from glowc.kernels.fpu.layers import NEEDS

LAYER = KernelVariant(
    "fpu", also=NEEDS, rank=10, header="glow_fpu_row.h", template="ref/{}", scratch_bytes=layer_scratch,
    prepare=lambda _, __: Prepared(plan=LayerPlan(fpu=True)),
)  # fmt: skip

_FUNCTIONS = {"lstm": 540, "gru": 330, "rnn": 120}
"""Instructions of the functions of a cell and step: Sigmoid and Tanh take about a hundred each."""

VARIANTS = {
    f"{kind}_f32": (replace(LAYER, stated=Stated(macs=1.5, outputs=insns)),) for kind, insns in _FUNCTIONS.items()
}
