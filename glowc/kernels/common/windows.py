"""What variants ask of the windows of a layer."""

from __future__ import annotations

from glowc.kernels.shapes import Conv


def is_point(shape: Conv) -> bool:
    """Say whether each output reads one pixel of adjacent channels, which lies inside of the image."""
    one = shape.k_h == shape.k_w == 1 and shape.pad_top == shape.pad_left == 0
    inside = (shape.out_h - 1) * shape.stride_h < shape.in_h and (shape.out_w - 1) * shape.stride_w < shape.in_w
    return one and inside and shape.in_ch == 1
