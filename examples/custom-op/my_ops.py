"""Two operators of domain my.dsp: SoftThreshold as a C template, FrameEnergy as a C function of one's own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowc.graph.attrs import Float
from glowc.graph.graph import Node
from glowc.graph.types import DType, TensorType
from glowc.ops.base import Arrays, Call, KernelDef, LowerCtx, MaybeTypes, OpDef, OpError, Params, Types
from glowc.ops.derived import derived


@dataclass(frozen=True)
class Threshold(Params):
    """Of soft_threshold: elements and threshold."""

    n: int
    threshold: float


@dataclass(frozen=True)
class Frames(Params):
    """Of frame_energy: frames of `length` samples."""

    frames: int
    length: int


def _float(in_types: MaybeTypes) -> TensorType:
    x = in_types[0]
    if x is None or x.dtype is not DType.F32:
        raise OpError(f"needs float32, not {x}")
    return x


def infer_threshold(node: Node, in_types: MaybeTypes) -> Types:
    """Same type as x."""
    return (_float(in_types),)


def soft_threshold(x: np.ndarray, t: float) -> np.ndarray:
    """Return sign(x) * max(|x| - t, 0)."""
    limit = np.float32(t)
    return np.where(x > limit, x - limit, np.where(x < -limit, x + limit, np.float32(0)))


def reference_threshold(call: Call) -> tuple[np.ndarray, ...]:
    return (soft_threshold(call.array(0), call.node.float_("threshold")),)


def lower_threshold(node: Node, ctx: LowerCtx) -> None:
    x = ctx.read(node.inputs[0])
    params = Threshold(x.type.elements, node.float_("threshold"))
    ctx.emit("soft_threshold", {"in": x, "out": ctx.write(node.outputs[0])}, params)


def interpret_threshold(arrays: Arrays, p: Threshold) -> None:
    arrays["out"].reshape(-1)[:] = soft_threshold(arrays["in"].reshape(-1), p.threshold)


def infer_energy(node: Node, in_types: MaybeTypes) -> Types:
    """The last axis goes."""
    x = _float(in_types)
    return (TensorType(x.shape[:-1], x.dtype),)


def energy(x: np.ndarray) -> np.ndarray:
    """Return the sum of squares along the last axis, in index order."""
    acc = np.zeros(x.shape[:-1], np.float32)
    for i in range(x.shape[-1]):
        acc = acc + x[..., i] * x[..., i]
    return acc


def lower_energy(node: Node, ctx: LowerCtx) -> None:
    x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
    length = x.type.shape[-1]
    ctx.emit("frame_energy", {"in": x, "out": y}, Frames(x.type.elements // length, length))


def interpret_energy(arrays: Arrays, p: Frames) -> None:
    x = arrays["in"].reshape(p.frames, p.length)
    arrays["out"].reshape(-1)[:] = energy(x)


KERNELS = (
    KernelDef(
        "soft_threshold", ("in in", "out out"), Threshold, interpret_threshold, in_place=("in",),
    ),
    KernelDef(
        "frame_energy", ("in in", "out out"), Frames, interpret_energy,
        extern="dsp_frame_energy", extern_header="frame_energy.h", extern_sources=("frame_energy.c",),
    ),
)  # fmt: skip
OPS = (
    OpDef("SoftThreshold", infer_threshold, reference_threshold, lower_threshold, attrs={"threshold": Float(0.5)},
          domain="my.dsp", max_version=1, doc="sign(x) * max(|x| - threshold, 0)"),
    OpDef("FrameEnergy", infer_energy, derived, lower_energy, domain="my.dsp", max_version=1,
          doc="sum of squares along the last axis"),
)  # fmt: skip
