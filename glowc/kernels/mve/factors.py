"""Layers that end as TensorFlow Lite does on Helium: those with a float32 scale with another end
(runtime_c/mve/glow_mve_dot_q31.h).
"""

from __future__ import annotations

from dataclasses import replace

from glowc.kernels.base import KernelVariant
from glowc.kernels.common.factors import with_factors
from glowc.kernels.mve import conv, depthwise, fully_connected


def _fixed(plain: KernelVariant, header: str) -> tuple[KernelVariant, ...]:
    return (replace(with_factors(plain), header=header),)


VARIANTS = {
    "conv_s8q31": _fixed(conv.LAYER, "glow_mve_gather_q31.h"),
    "dwconv_s8q31": _fixed(depthwise.LAYER, "glow_mve_dw_q31.h"),
    "fc_s8q31": _fixed(fully_connected.LAYER, "glow_mve_dot_q31.h"),
}
