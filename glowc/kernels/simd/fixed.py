"""Layers that end as TensorFlow Lite does on A64: those with a float32 scale with another ending (glow_a64_q31.h)."""

from __future__ import annotations

from dataclasses import replace

from glowc.kernels.base import KernelVariant
from glowc.kernels.common.factors import with_factors
from glowc.kernels.simd import conv, conv_lane, depthwise, depthwise_taps, fully_connected


def _fixed(plain: KernelVariant) -> KernelVariant:
    return replace(with_factors(plain), header="glow_a64_q31.h")


_LANE = tuple(replace(_fixed(v), header="glow_a64_lane_q31.h") for v in conv_lane.LANE if v.isa != "a32")
_TIGHT = tuple(_fixed(v) for v in conv.TIGHT if v.isa != "a32")

VARIANTS = {
    "conv_s8q31": (*(_fixed(v) for v in conv.A64), *_TIGHT, *_LANE),
    "dwconv_s8q31": tuple(_fixed(v) for v in (depthwise.A64, depthwise.DOT, depthwise_taps.TAPS[1])),
    "fc_s8q31": tuple(_fixed(v) for v in fully_connected.A64),
}
