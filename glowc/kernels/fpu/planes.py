"""Depthwise convolutions of planar inputs in float32 (templates/kernels/common/_planes.j2)."""

from __future__ import annotations

from glowc.kernels.common.planes import planar

VARIANTS = {
    "dwconv_f32": (planar("fpu"),),
}
