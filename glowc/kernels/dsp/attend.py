"""The `dsp` variant of attend_f32: int8 caches in integers, by SMLAD."""

from __future__ import annotations

from glowc.kernels.base import KernelVariant
from glowc.kernels.common.attend import of_codes
from glowc.kernels.features import Stated

VARIANTS = {
    "attend_f32": (
        of_codes(
            KernelVariant("dsp", rank=11, header="glow_dsp_attend.h", stated=Stated(macs=2.2, outputs=20.0)),
            "dsp_attend",
            4,
        ),
    ),
}
