"""ReverseSequence: of batch b, the first sequence_lens[b] steps in reverse order, the others as they are.

A length out of 0 .. time (undefined in ONNX) is clamped. Source: ONNX ReverseSequence-28.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from glowc.graph.attrs import Int
from glowc.graph.graph import Node
from glowc.graph.types import DType
from glowc.ops.base import LowerCtx, MaybeTypes, OpDef, OpError, Types
from glowc.ops.derived import derived
from glowc.ops.strided import present
from glowc.program.kernel import Arrays, KernelDef
from glowc.program.params import Params


@dataclass(frozen=True, slots=True)
class ReverseSequenceParams(Params):
    """Of `reverse_sequence_b<N>`: steps of every sequence, sequences, and the elements of a step."""

    time: int
    batch: int
    inner: int
    time_stride: int
    batch_stride: int


def infer(node: Node, in_types: MaybeTypes) -> Types:
    """The type of the input."""
    x, lens = present(in_types[:2])
    axes = (node.int_("time_axis"), node.int_("batch_axis"))
    if x.rank < 2 or sorted(axes) != [0, 1] or lens.shape != (x.shape[axes[1]],) or lens.dtype != DType.S64:
        raise OpError(f"time_axis {axes[0]}, batch_axis {axes[1]} of {x}, lengths {lens}")
    return (x,)


def reverse(x: np.ndarray, lens: np.ndarray) -> np.ndarray:
    """Return the result for x[time, batch, inner]."""
    y = x.copy()
    for b, n in enumerate(np.clip(lens, 0, x.shape[0]).tolist()):
        y[:n, b] = x[:n, b][::-1]
    return y


def lower(node: Node, ctx: LowerCtx) -> None:
    """One `reverse_sequence_b<N>`."""
    x, lens, y = ctx.read(node.inputs[0]), ctx.read(node.inputs[1]), ctx.write(node.outputs[0])
    inner, shape = math.prod(x.type.shape[2:]), x.type.shape
    major = node.int_("time_axis") == 0
    params = ReverseSequenceParams(
        time=shape[0 if major else 1], batch=shape[1 if major else 0], inner=inner,
        time_stride=shape[1] * inner if major else inner, batch_stride=inner if major else shape[1] * inner,
    )  # fmt: skip
    ctx.emit(f"reverse_sequence_b{x.type.dtype.bytes}", {"in": x, "lens": lens, "out": y}, params)


def _interpret(arrays: Arrays, p: ReverseSequenceParams) -> None:
    item = arrays["in"].itemsize
    dims, strides = (p.time, p.batch, p.inner), (p.time_stride * item, p.batch_stride * item, item)
    views = [np.lib.stride_tricks.as_strided(arrays[k].reshape(-1), dims, strides) for k in ("in", "out")]
    views[1][...] = reverse(views[0], arrays["lens"])


KERNELS = tuple(
    KernelDef(f"reverse_sequence_b{n}", ("in in", "in lens:s32|s64", "out out"), ReverseSequenceParams, _interpret,
              template="reverse_sequence", kind=f"b{n}", doc="first steps of each sequence reversed")
    for n in (1, 2, 4, 8)
)  # fmt: skip

OP = OpDef("ReverseSequence", infer, derived, lower, max_version=28,
           attrs={"time_axis": Int(0), "batch_axis": Int(1)}, doc="reverses sequences of given lengths")  # fmt: skip
