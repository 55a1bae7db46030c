"""Depthwise convolutions of planar inputs in int8 (templates/kernels/common/_planes.j2)."""

from __future__ import annotations

from glowc.kernels.common.planes import planar

VARIANTS = {
    "dwconv_s8": (planar("v7m"),),
}
