"""Depthwise convolutions of planar inputs in float32 and int8 (templates/kernels/common/_planes.j2)."""

from __future__ import annotations

from glowc.kernels.common.planes import planar

VARIANTS = {
    "dwconv_f32": (planar("a32"), planar("a64")),
    "dwconv_s8": (planar("a32"), planar("a64")),
}
