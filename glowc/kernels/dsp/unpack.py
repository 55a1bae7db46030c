"""unpack_s4 on the DSP extension (runtime_c/dsp/glow_dsp_unpack.h)."""

from __future__ import annotations

from glowc.kernels.base import KernelVariant
from glowc.kernels.common.nibbles import PACKED, stored_by

VARIANTS = {
    "unpack_s4": (KernelVariant("dsp", rank=10, header="glow_dsp_unpack.h", packs=PACKED, prepare=stored_by(1)),),
}
