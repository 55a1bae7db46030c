"""ChannelLines: a function of an int8 tensor that differs from channel to channel, as straight lines in integers.

y = clamp((m[c] * x + b[c]) >> s[c], out_min, out_max), rounded down. `lines` is int32[channels, 3] of (m, b, s), or
int32[channels, 7] of two such lines and the first code of the second one, for slopes that change (PRelu). Pass
fuse-channel-lines makes them, so that all 256 codes of every channel give what float arithmetic gives. Attribute
`axis`: of the channels. Every m * x + b fits int32; the right shift of a negative number is arithmetic, as with all
compilers of docs/BOARDS.md.
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
from glowc.ops.strided import axis_of, present
from glowc.program.kernel import Arrays, KernelDef
from glowc.program.params import Params, Printed

ONE, TWO = 3, 7


@dataclass(frozen=True, slots=True)
class LinesParams(Params):
    """Of `lines_s8`: elements, channels, elements of a channel that lie together, bounds, and whether lines are two."""

    n: int
    channels: int
    inner: int
    out_min: int
    out_max: int
    rank: Printed
    two: Printed


def infer(node: Node, in_types: MaybeTypes) -> Types:
    """Type of x; the lines belong to the channels."""
    x, lines = present(in_types[:2])
    if x.dtype != DType.S8 or lines.dtype != DType.S32 or lines.rank != 2 or lines.shape[1] not in (ONE, TWO):
        raise OpError(f"lines {lines} for {x}")
    if lines.shape[0] != x.shape[axis_of(node.int_("axis"), x.rank)]:
        raise OpError(f"{lines.shape[0]} lines along axis {node.int_('axis')} of {x}")
    return (TensorType(x.shape, DType.S8, None, x.layout),)


def on_lines(x: np.ndarray, lines: np.ndarray, low: int, high: int) -> np.ndarray:
    """Return the results of int64 codes x[..., channels] that broadcast with lines[channels, 3 or 7]."""
    m, b, shift = (lines[:, i].astype(np.int64) for i in range(3))
    if lines.shape[1] == TWO:
        second = x >= lines[:, 6]
        m, b, shift = (np.where(second, lines[:, 3 + i], v) for i, v in enumerate((m, b, shift)))
    return np.asarray(np.clip((m * x + b) >> shift, low, high))


def _limits(node: Node, lines: np.ndarray | None) -> tuple[int, int]:
    """Return the limits of the results: those of int8, where the lines do not leave the node's own."""
    own, full = (node.int_("out_min"), node.int_("out_max")), (DType.S8.qmin, DType.S8.qmax)
    codes = np.arange(-128, 128, dtype=np.int64)[:, None]
    same = lines is not None and np.array_equal(on_lines(codes, lines, *own), on_lines(codes, lines, *full))
    return full if same else own


def lower(node: Node, ctx: LowerCtx) -> None:
    """Emit lines_s8; `rank` 2 says that a part of the tensor does not begin at channel 0."""
    x, lines, y = ctx.read(node.inputs[0]), ctx.read(node.inputs[1]), ctx.write(node.outputs[0])
    axis = axis_of(node.int_("axis"), x.type.rank)
    inner = math.prod(x.type.shape[axis + 1 :])
    low, high = _limits(node, ctx.const_value(node.inputs[1]))
    params = LinesParams(
        n=x.type.elements, channels=x.type.shape[axis], inner=inner, rank=1 if inner == 1 else 2,
        two=int(lines.type.shape[1] == TWO), out_min=low, out_max=high,
    )  # fmt: skip
    ctx.emit("lines_s8", {"in": x, "lines": lines, "out": y}, params)


def _interpret(arrays: Arrays, p: LinesParams) -> None:
    x = arrays["in"].reshape(-1)[: p.n].reshape(-1, p.channels, p.inner).astype(np.int64)
    lines = arrays["lines"].reshape(p.channels, -1)
    y = on_lines(x.transpose(0, 2, 1), lines, p.out_min, p.out_max)
    arrays["out"].reshape(-1)[: p.n] = y.transpose(0, 2, 1).reshape(-1)


KERNELS = (
    KernelDef("lines_s8", ("in in", "in lines:s32", "out out"), LinesParams, _interpret, in_place=("in",),
              length="n", period="channels", kind="s8", doc="straight lines per channel on int8 codes"),
)  # fmt: skip

OP = OpDef(
    "ChannelLines", infer, derived, lower, attrs={"axis": Int(), "out_min": Int(), "out_max": Int()}, int8=True,
    doc="function of int8 codes per channel as straight lines (internal)",
)  # fmt: skip
