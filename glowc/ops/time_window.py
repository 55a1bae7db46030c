"""TimeWindow: the last steps along an axis, of which each inference brings some; made by `--input-stream time`.

Inputs: the new steps, and a constant of the output's shape: what the window holds after a reset. The output is a state:
it drops its oldest steps, keeps the others in the arena between inferences and takes the new ones after them. The
reference is the first inference after a reset. `push_b<N>` is the kernel, by element size.

Frames: x[..., n] -> y[..., f, size], frames that begin `step` samples apart, as far as they are whole (internal).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from glowc.graph.attrs import Int
from glowc.graph.graph import Node
from glowc.graph.types import TensorType
from glowc.ops.base import LowerCtx, MaybeTypes, OpDef, OpError, Types
from glowc.ops.copy import SIZES
from glowc.ops.derived import derived
from glowc.ops.strided import Walk, axis_of, dense_strides, emit_copy, present, whole
from glowc.program.kernel import Arrays, KernelDef
from glowc.program.params import Params


@dataclass(frozen=True, slots=True)
class PushParams(Params):
    """Of `push_b<N>`: the elements of every window that stay, and those that come."""

    outer: int
    keep: int
    fresh: int


def infer(node: Node, in_types: MaybeTypes) -> Types:
    """The output has the shape of the start and at least as many steps as come in."""
    new, start = present(in_types[:2])
    axis = axis_of(node.int_("axis"), new.rank)
    rest = [t.shape[:axis] + t.shape[axis + 1 :] for t in (new, start)]
    if new.dtype != start.dtype or rest[0] != rest[1] or new.shape[axis] > start.shape[axis]:
        raise OpError(f"new steps {new} of a window {start} along axis {axis}")
    return (new.with_shape(start.shape),)


def lower(node: Node, ctx: LowerCtx) -> None:
    """The output's buffer is the state itself: its readers read the window where it stays."""
    x, out = ctx.read(node.inputs[0]), node.outputs[0]
    start = ctx.const_value(node.inputs[1])
    if start is None:
        raise OpError("the window after a reset must be constant")
    window = ctx.kept(out, start)
    axis = axis_of(node.int_("axis"), x.type.rank)
    inner = math.prod(x.type.shape[axis + 1 :])
    fresh = x.type.shape[axis] * inner
    params = PushParams(math.prod(x.type.shape[:axis]), window.type.shape[axis] * inner - fresh, fresh)
    ctx.emit(f"push_b{x.type.dtype.bytes}", {"window": window, "in": x}, params)
    if window.buffer != out:
        emit_copy(ctx, window, ctx.write(out), whole(window.type.shape))


def interpret(arrays: Arrays, p: PushParams) -> None:
    """Evaluate push_b<N>."""
    window = arrays["window"].reshape(p.outer, p.keep + p.fresh)
    kept = window[:, p.fresh :].copy()
    window[:, : p.keep] = kept
    window[:, p.keep :] = arrays["in"].reshape(p.outer, p.fresh)


def infer_frames(node: Node, in_types: MaybeTypes) -> Types:
    """One more axis."""
    (x,) = present(in_types[:1])
    size, step = node.int_("size"), node.int_("step")
    if x.rank < 1 or step < 1 or not 1 <= size <= x.shape[-1]:
        raise OpError(f"frames of {size} every {step} of {x}")
    return (TensorType((*x.shape[:-1], (x.shape[-1] - size) // step + 1, size), x.dtype),)


def lower_frames(node: Node, ctx: LowerCtx) -> None:
    """One copy whose input steps overlap."""
    x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
    outer = math.prod(x.type.shape[:-1])
    shape = (outer, *y.type.shape[-2:])
    emit_copy(ctx, x, y, Walk(shape, (x.type.shape[-1], node.int_("step"), 1), dense_strides(shape)))


KERNELS = tuple(
    KernelDef(
        f"push_b{n}", ("inout window", "in in"), PushParams, interpret, template="push", kind=f"b{n}",
        doc="shift a window of time steps",
    )
    for n in SIZES
)  # fmt: skip
OPS = (
    OpDef("TimeWindow", infer, derived, lower, attrs={"axis": Int()}, int8=True, domain="glowc",
          doc="the last time steps, kept between inferences"),
    OpDef("Frames", infer_frames, derived, lower_frames, {"size": Int(), "step": Int()},
          doc="frames of samples (internal)"),
)  # fmt: skip
