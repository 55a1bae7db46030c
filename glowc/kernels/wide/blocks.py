"""fc_f32_blocks on x86-64 (runtime_c/wide/glow_wide_digits.h): eight outputs."""

from __future__ import annotations

from glowc.kernels.base import KernelVariant
from glowc.kernels.common.digits import Lanes, by_digits
from glowc.kernels.wide.codes import X86

VARIANTS = {
    "fc_f32_blocks": (
        by_digits(
            KernelVariant("wide", rank=40, also=X86),
            Lanes(8, signed=False, call="glow_wide_digits"), "glow_wide_digits.h", macs=0.4,
        ),
    ),
}  # fmt: skip
