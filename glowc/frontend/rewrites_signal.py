"""Spectra: DFT and STFT as fast transforms of floats, where the length is a product of 2, 3 and 5.

Other and short lengths are a product with a matrix (`rewrites_math.dft`). Sources: ONNX DFT-20 (and -17), STFT-17.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from glowc.frontend.builder import Builder
from glowc.frontend.chain import Chain, Rewrites
from glowc.frontend.normalize_shape import axis_of
from glowc.frontend.onnx_model import OnnxNode
from glowc.frontend.problems import NodeError
from glowc.frontend.rewrites_math import dft as dft_by_matrix
from glowc.graph.types import DType, TensorType
from glowc.ops.base import OpError
from glowc.ops.signal_fft import fft_params

SHORTEST = 16  # shorter ones are few products


@dataclass(frozen=True, slots=True)
class Spectrum:
    """What a DFT node asks for: along which axis, of how many points, which way, and which half."""

    axis: int
    have: int
    length: int
    complex_in: bool
    inverse: bool
    onesided: bool

    @property
    def is_fast(self) -> bool:
        """True where the stages of a fast transform can do it."""
        if self.length < SHORTEST or (not self.complex_in and self.inverse):
            return False
        if self.inverse and self.onesided and self.have != self.length // 2 + 1:
            return False
        half = not self.complex_in or (self.inverse and self.onesided)
        return _has_stages(self.length // 2 if half else self.length) and not (half and self.length % 2)


def _has_stages(points: int) -> bool:
    try:
        fft_params(1, 1, points)
    except OpError:
        return False
    return True


def _spectrum(node: OnnxNode, b: Builder, t: TensorType) -> Spectrum:
    axis = node.int_("axis", 1) if node.version < 20 else -2
    if node.version >= 20 and node.input(2):
        axis = int(b.need_value(node.inputs[2], "the axis").reshape(-1)[0])
    axis = axis_of(axis, t.rank)
    inverse, onesided = node.int_("inverse", 0) == 1, node.int_("onesided", 0) == 1
    length = 2 * (t.shape[axis] - 1) if inverse and onesided else t.shape[axis]
    if node.input(1):
        length = int(b.need_value(node.inputs[1], "the length").reshape(-1)[0])
    return Spectrum(axis, t.shape[axis], length, t.shape[-1] == 2, inverse, onesided)


def dft(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """DFT along an axis -> SignalRfft, SignalIrfft or Fft along the last one; a matrix where none of them fits."""
    t = b.type(node.inputs[0])
    if t.rank < 2 or t.dtype is not DType.F32 or t.shape[-1] not in (1, 2):
        return dft_by_matrix(node, b)
    s = _spectrum(node, b, t)
    if s.axis == t.rank - 1 or not s.is_fast:
        return dft_by_matrix(node, b)
    parts, rest = Chain(node, b), [i for i in range(t.rank - 1) if i != s.axis]
    order = (*rest, s.axis, t.rank - 1)
    lines = parts.add("Transpose", node.inputs[0], perm=order)
    if s.have > s.length:
        ends = parts.ints(0), parts.ints(s.length), parts.ints(len(rest))
        lines = parts.add("Slice", lines, *ends)
    shape = [t.shape[i] for i in rest]
    result = _transformed(parts, lines, shape, min(s.have, s.length), s)
    parts.add("Transpose", result, perm=tuple(int(i) for i in np.argsort(order)), out=parts.out)
    return parts.nodes


def _transformed(parts: Chain, lines: str, shape: list[int], have: int, s: Spectrum) -> str:
    """Return the transform [*shape, points, 1 or 2] of lines [*shape, have, 1 or 2]."""
    if s.inverse and s.onesided:
        flat = parts.add("Reshape", lines, parts.ints(*shape, 2 * have))
        samples = parts.add("SignalIrfft", flat, fft_length=s.length)
        return parts.add("Reshape", samples, parts.ints(*shape, s.length, 1))
    if s.complex_in:
        whole = parts.add("Fft", lines, fft_length=s.length, inverse=int(s.inverse))
        return _first(parts, whole, s.length // 2 + 1, len(shape)) if s.onesided else whole
    flat = parts.add("Reshape", lines, parts.ints(*shape, have))
    half = parts.add("SignalRfft", flat, fft_length=s.length)
    half = parts.add("Reshape", half, parts.ints(*shape, s.length // 2 + 1, 2))
    return half if s.onesided else _mirrored(parts, half, s.length // 2, len(shape))


def _first(parts: Chain, value: str, count: int, axis: int) -> str:
    return parts.add("Slice", value, parts.ints(0), parts.ints(count), parts.ints(axis))


def _mirrored(parts: Chain, half: str, middle: int, axis: int) -> str:
    """Return the whole spectrum of real samples: its upper half is the lower one downwards, conjugated."""
    turn = parts.ints(middle - 1), parts.ints(0), parts.ints(axis), parts.ints(-1)
    upper = parts.add("Slice", half, *turn)
    upper = parts.add("Mul", upper, parts.const(np.array([1, -1], np.float32)))
    return parts.add("Concat", half, upper, axis=axis)


def stft(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """STFT -> frames, times the window, and a DFT of each."""
    parts, x = Chain(node, b), node.inputs[0]
    t = b.type(x)
    step = int(b.need_value(node.inputs[1], "the frame step").reshape(-1)[0])
    window = node.input(2)
    if node.input(3):
        size = int(b.need_value(node.inputs[3], "the frame length").reshape(-1)[0])
    elif window:
        size = b.type(window).shape[0]
    else:
        raise NodeError("it has neither a window nor a frame length")
    signal = t if t.rank == 3 else t.with_shape((*t.shape, 1))
    if t.rank not in (2, 3) or signal.shape[-1] not in (1, 2) or not 1 <= size <= signal.shape[1] or step < 1:
        raise NodeError(f"frames of {size} every {step} samples of {t}")
    lines = parts.add("Transpose", parts.add("Reshape", x, parts.ints(*signal.shape)), perm=(0, 2, 1))
    frames = parts.add("Frames", lines, size=size, step=step)
    if window:
        frames = parts.add("Mul", frames, window)
    frames = parts.add("Transpose", frames, perm=(0, 2, 3, 1))
    onesided = node.int_("onesided", 1) if signal.shape[-1] == 1 else 0
    spectrum = node.new("DFT", (frames, parts.ints(size), parts.ints(2)), (parts.out,), onesided=onesided)
    parts.nodes.append(replace(spectrum, version=20))
    return parts.nodes


REWRITES: Rewrites = {
    ("", "DFT"): dft, ("", "STFT"): stft,
}  # fmt: skip
