"""Where an output of Resize lies on its input axis, in float64 and in float32 as onnxruntime rounds it.

Where the texts differ, ONNX's own words, onnxruntime and PyTorch agree and are followed: the length of the result is
the whole number of its elements. ONNX's reference evaluator takes scale * length instead, and -0.5 for the only output
of pytorch_half_pixel. Source: ONNX Resize-19.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowc.graph.numerics import F32
from glowc.ops.base import OpError


@dataclass(frozen=True, slots=True)
class Axis:
    """How one axis is resized: lengths, scale, region of interest."""

    length: int
    out: int
    scale: float
    roi: tuple[float, float] = (0.0, 1.0)


def coordinates(transform: str, axis: Axis) -> np.ndarray:
    """Return the real input coordinate of each output index, in float64."""
    x, n, s = np.arange(axis.out, dtype=np.float64), axis.length, axis.scale
    if transform == "align_corners":
        return np.zeros(axis.out) if axis.out == 1 else np.asarray(x * (n - 1) / (axis.out - 1))
    if transform == "asymmetric":
        return np.asarray(x / s)
    if transform == "tf_crop_and_resize":
        begin, end = axis.roi
        if axis.out == 1:
            return np.full(axis.out, (end - begin) * (n - 1) / 2 + begin * (n - 1))
        return np.asarray(x * (end - begin) * (n - 1) / (axis.out - 1) + begin * (n - 1))
    if transform == "pytorch_half_pixel" and axis.out == 1:
        return np.zeros(axis.out)
    if transform in ("half_pixel", "pytorch_half_pixel"):
        return np.asarray((x + 0.5) / s - 0.5)
    if transform == "half_pixel_symmetric":
        return np.asarray(n / 2 * (1 - axis.out / (s * n)) + (x + 0.5) / s - 0.5)
    raise OpError(f"coordinate_transformation_mode {transform!r} is not supported")


def rounded_coordinates(transform: str, axis: Axis) -> np.ndarray:
    """Return the real input coordinate of each output index as float32, rounded where onnxruntime rounds."""
    x, n, s, half = np.arange(axis.out, dtype=F32), F32(axis.length), F32(axis.scale), F32(0.5)
    if transform == "align_corners":
        return np.asarray(x * (n - F32(1)) / F32(axis.out - 1)) if axis.out > 1 else np.zeros(1, F32)
    if transform == "asymmetric":
        return np.asarray(x / s)
    if transform == "tf_crop_and_resize":
        (begin, end), last = map(F32, axis.roi), n - F32(1)
        if axis.out == 1:
            return np.full(1, half * (begin + end) * last)
        return np.asarray(begin * last + x * (end - begin) * last / F32(axis.out - 1))
    if transform == "tf_half_pixel_for_nn":
        return np.asarray((x + half) / s)
    if transform == "pytorch_half_pixel" and axis.out == 1:
        return np.zeros(1, F32)
    if transform == "half_pixel_symmetric":
        offset = n * half * (F32(1) - F32(axis.out) / (s * n))
        return np.asarray((np.arange(axis.out) + 0.5) / float(s) - 0.5 + float(offset), F32)
    if transform in ("half_pixel", "pytorch_half_pixel"):
        return np.asarray((x + half) / s - half)
    raise OpError(f"coordinate_transformation_mode {transform!r} is not supported")
