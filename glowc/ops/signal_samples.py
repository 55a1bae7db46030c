"""Operators on frames of samples, as TensorFlow Lite Micro's signal library computes them.

SignalWindow: y = clamp((x * w) >> shift) of int16, the window along the last axis. SignalScaleBits: how many bits all
samples can move up, 15 - bits of the largest magnitude, at least 0; 0 of silence. SignalScale moves them: x * 2^bits.
SignalEnergy: re^2 + im^2 of the frequencies [start, end) of a spectrum in uint32; the others are 0, where the runtime
leaves whatever its memory held.
OverlapAdd: frames[..., f, n] and the tail[..., n - step] of the frames before -> the line[..., f * step + n - step]
that their sum is when each frame begins `step` later; int16 saturates frame by frame.
Evidence: seeded cases (tests/tflite), 0 differ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from glowc.graph.attrs import Int
from glowc.graph.graph import Node
from glowc.graph.types import DType, TensorType
from glowc.ops.base import LowerCtx, MaybeTypes, OpDef, OpError, Types
from glowc.ops.derived import derived
from glowc.ops.params import Elements
from glowc.ops.strided import present
from glowc.program.kernel import Arrays, KernelDef
from glowc.program.params import Params

_LOW, _HIGH = -32768, 32767


@dataclass(frozen=True, slots=True)
class WindowParams(Params):
    """Of `signal_window`: frames, samples of each, and the shift."""

    outer: int
    n: int
    shift: int


@dataclass(frozen=True, slots=True)
class EnergyParams(Params):
    """Of `signal_energy`: frequencies, and which of them count."""

    n: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class OverlapParams(Params):
    """Of `overlap_add`: lines, frames of each, samples of a frame, and how much later each begins."""

    outer: int
    frames: int
    n: int
    step: int

    @property
    def line(self) -> int:
        """Samples of a line of the result."""
        return self.frames * self.step + self.n - self.step


def windowed(x: np.ndarray, window: np.ndarray, shift: int) -> np.ndarray:
    """Return samples times a window."""
    product = (x.astype(np.int64) * window.astype(np.int64)) >> shift
    return np.asarray(np.clip(product, _LOW, _HIGH).astype(np.int16))


def free_bits(x: np.ndarray) -> int:
    """Return how many bits the samples can move up."""
    largest = int(np.abs(x.astype(np.int64)).max(initial=0))
    return max(0, 15 - largest.bit_length()) if largest else 0


def scaled_up(x: np.ndarray, bits: int) -> np.ndarray:
    """Return samples moved up."""
    return (x.astype(np.int64) << bits).astype(np.int16)


def energies(spectrum: np.ndarray, start: int, end: int) -> np.ndarray:
    """Return the squared magnitudes of some frequencies."""
    parts = spectrum.reshape(-1, 2).astype(np.int64)
    found = np.zeros(parts.shape[0], np.uint32)
    found[start:end] = (parts[start:end] ** 2).sum(-1)
    return found


def overlapped(frames: np.ndarray, tail: np.ndarray, step: int) -> np.ndarray:
    """Return the sums [outer, line] of frames [outer, f, n] on top of a tail."""
    outer, count, n = frames.shape
    integer = frames.dtype.kind == "i"
    line = np.zeros((outer, count * step + n - step), np.int64 if integer else frames.dtype)
    line[:, : n - step] = tail
    for f in range(count):
        line[:, f * step : f * step + n] += frames[:, f]
        line = np.clip(line, _LOW, _HIGH) if integer else line
    return line.astype(frames.dtype)


def infer_window(_: Node, in_types: MaybeTypes) -> Types:
    """The samples' type."""
    x, window = present(in_types[:2])
    if (x.dtype, window.dtype) != (DType.S16, DType.S16) or x.rank < 1 or window.elements != x.shape[-1]:
        raise OpError(f"samples {x}, window {window}")
    return (x,)


def infer_bits(_: Node, in_types: MaybeTypes) -> Types:
    """One number."""
    (x,) = present(in_types[:1])
    if x.dtype is not DType.S16:
        raise OpError(f"samples {x}: needs s16")
    return (TensorType((), DType.S32),)


def infer_scale(_: Node, in_types: MaybeTypes) -> Types:
    """The samples' type."""
    x, bits = present(in_types[:2])
    if x.dtype is not DType.S16 or bits.dtype is not DType.S32 or bits.elements != 1:
        raise OpError(f"samples {x}, bits {bits}")
    return (x,)


def infer_energy(node: Node, in_types: MaybeTypes) -> Types:
    """One number for each frequency."""
    (x,) = present(in_types[:1])
    start, end = node.int_("start"), node.int_("end")
    if x.dtype is not DType.S16 or x.rank < 1 or x.shape[-1] % 2 or not 0 <= start <= end <= x.elements // 2:
        raise OpError(f"energies {start} to {end} of the spectrum {x}")
    return (TensorType((*x.shape[:-1], x.shape[-1] // 2), DType.U32),)


def infer_overlap(node: Node, in_types: MaybeTypes) -> Types:
    """The line that the frames become."""
    x, tail = present(in_types[:2])
    step = node.int_("step")
    fits = x.rank >= 2 and 1 <= step <= x.shape[-1] and tail.shape == (*x.shape[:-2], x.shape[-1] - step)
    if not fits or x.dtype not in (DType.S16, DType.F32) or tail.dtype != x.dtype:
        raise OpError(f"frames {x}, tail {tail}, step {step}")
    return (TensorType((*x.shape[:-2], x.shape[-2] * step + x.shape[-1] - step), x.dtype),)


def _overlap_params(node: Node, types: MaybeTypes) -> OverlapParams:
    (x,) = present(types[:1])
    return OverlapParams(math.prod(x.shape[:-2]), x.shape[-2], x.shape[-1], node.int_("step"))


def lower(node: Node, ctx: LowerCtx) -> None:
    """One kernel for each."""
    x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
    n = x.type.elements
    if node.op == "SignalWindow":
        width = x.type.shape[-1]
        params = WindowParams(n // width, width, node.int_("shift"))
        ctx.emit("signal_window", {"in": x, "window": ctx.read(node.inputs[1]), "out": y}, params)
    elif node.op == "SignalScaleBits":
        ctx.emit("signal_scale_bits", {"in": x, "out": y}, Elements(n))
    elif node.op == "SignalScale":
        ctx.emit("signal_scale", {"in": x, "bits": ctx.read(node.inputs[1]), "out": y}, Elements(n))
    elif node.op == "SignalEnergy":
        ctx.emit("signal_energy", {"in": x, "out": y}, EnergyParams(n // 2, node.int_("start"), node.int_("end")))
    else:
        operands = {"in": x, "tail": ctx.read(node.inputs[1]), "out": y}
        ctx.emit("overlap_add", operands, _overlap_params(node, (x.type,)))


def _window(a: Arrays, p: WindowParams) -> None:
    y = windowed(a["in"].reshape(p.outer, p.n), a["window"].reshape(-1), p.shift)
    a["out"].reshape(-1)[:] = y.reshape(-1)


def _bits(a: Arrays, _: Elements) -> None:
    a["out"].reshape(-1)[0] = free_bits(a["in"])


def _scale(a: Arrays, _: Elements) -> None:
    a["out"].reshape(-1)[:] = scaled_up(a["in"].reshape(-1), int(a["bits"].reshape(-1)[0]))


def _energy(a: Arrays, p: EnergyParams) -> None:
    a["out"].reshape(-1)[:] = energies(a["in"], p.start, p.end)


def _overlap(a: Arrays, p: OverlapParams) -> None:
    frames, tail = a["in"].reshape(p.outer, p.frames, p.n), a["tail"].reshape(p.outer, p.n - p.step)
    a["out"].reshape(-1)[:] = overlapped(frames, tail, p.step).reshape(-1)


KERNELS = (
    KernelDef("signal_window", ("in in", "in window", "out out"), WindowParams, _window, in_place=("in",), kind="s16",
              doc="samples times a window"),
    KernelDef("signal_scale_bits", ("in in", "out out:s32"), Elements, _bits, kind="s16",
              doc="bits that samples can move up"),
    KernelDef("signal_scale", ("in in", "in bits:s32", "out out"), Elements, _scale, in_place=("in",), kind="s16",
              doc="samples moved up"),
    KernelDef("signal_energy", ("in in", "out out:u32"), EnergyParams, _energy, kind="s16",
              doc="squared magnitudes of a spectrum"),
    KernelDef("overlap_add", ("in in", "in tail", "out out"), OverlapParams, _overlap, kind="s16|f32",
              doc="sum of frames that overlap"),
)  # fmt: skip

OPS = (
    OpDef("SignalWindow", infer_window, derived, lower, {"shift": Int()}, doc="samples times a window (internal)"),
    OpDef("SignalScaleBits", infer_bits, derived, lower, doc="bits that samples can move up (internal)"),
    OpDef("SignalScale", infer_scale, derived, lower, doc="samples moved up (internal)"),
    OpDef("SignalEnergy", infer_energy, derived, lower, {"start": Int(), "end": Int()},
          doc="squared magnitudes of a spectrum (internal)"),
    OpDef("OverlapAdd", infer_overlap, derived, lower, {"step": Int()}, doc="sum of frames that overlap (internal)"),
)  # fmt: skip
