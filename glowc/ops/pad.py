"""Pad: attrs pads (begin of every axis, then end; negative crops), mode constant | reflect | edge | wrap, value.

Lowered to a fill (constant mode) and one strided copy per combination of source runs. The constant is `value`,
given in real units for a quantised tensor: clamp(rne(value / s) + z). Source: ONNX Pad-25.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from glowc.graph.attrs import Float, IntList, Str
from glowc.graph.graph import Node
from glowc.graph.numerics import quantize
from glowc.graph.types import TensorType
from glowc.ops.base import LowerCtx, MaybeTypes, OpDef, OpError, Types
from glowc.ops.copy import emit_fill
from glowc.ops.derived import derived
from glowc.ops.strided import axis_of, check_table_axes, emit_indexed, present

MODES = ("constant", "reflect", "edge", "wrap")


def pad_amounts(node: Node, rank: int) -> list[tuple[int, int]]:
    """Return (begin, end) of every axis; attr `axes` may name fewer axes."""
    axes = node.ints("axes") if "axes" in node.attrs else tuple(range(rank))
    pads = node.ints("pads")
    if len(pads) != 2 * len(axes):
        raise OpError(f"pads {list(pads)} for {len(axes)} axes")
    amounts = [(0, 0)] * rank
    if rank == 0 and axes:
        raise OpError(f"axes {list(axes)} of a scalar")
    for k, axis in enumerate(axes):
        amounts[axis_of(axis, rank)] = (pads[k], pads[k + len(axes)])
    return amounts


def source_indices(mode: str, dim: int, begin: int, end: int) -> list[int]:
    """Return the input index that each output index of an axis reads, -1 for the constant."""
    result = []
    for i in range(-begin, dim + end):
        if 0 <= i < dim:
            result.append(i)
        elif mode == "constant" or dim == 0:
            result.append(-1)
        elif mode == "edge":
            result.append(min(max(i, 0), dim - 1))
        elif mode == "wrap":
            result.append(i % dim)
        else:
            period = max(2 * (dim - 1), 1)
            k = i % period
            result.append(k if k < dim else period - k)
    return result


def axis_sources(node: Node, shape: Sequence[int]) -> list[list[int]]:
    """Return the source indices of every axis."""
    mode = node.str_("mode")
    if mode not in MODES:
        raise OpError(f"mode {mode!r}: not one of {', '.join(MODES)}")
    amounts = pad_amounts(node, len(shape))
    return [source_indices(mode, d, begin, end) for d, (begin, end) in zip(shape, amounts, strict=True)]


def fill_value(node: Node, out: TensorType) -> np.ndarray:
    """Return the padding constant in the output's element kind."""
    value = node.float_("value")
    if out.quant is not None:
        return quantize(np.asarray(value, np.float32), out.quant, out.dtype)
    return np.asarray(value).astype(out.dtype.numpy)


def infer(node: Node, in_types: MaybeTypes) -> Types:
    """Every axis grows by its two pads."""
    (x,) = present(in_types[:1])
    shape = [d + b + e for d, (b, e) in zip(x.shape, pad_amounts(node, x.rank), strict=True)]
    if any(d < 0 for d in shape):
        raise OpError(f"pads {list(node.ints('pads'))} crop more than {x} has")
    check_table_axes(shape)
    return (x.with_shape(shape),)


def lower(node: Node, ctx: LowerCtx) -> None:
    """Fill when something stays uncovered, then copy every run."""
    x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
    sources = axis_sources(node, x.type.shape)
    if any(-1 in source for source in sources):
        emit_fill(ctx, y, fill_value(node, y.type))
    if not emit_indexed(ctx, x, y, sources, limit=4096):
        raise OpError(f"mode {node.str_('mode')} pads {list(node.ints('pads'))} need too many copies of {x.type}")


OP = OpDef(
    "Pad", infer, derived, lower, max_version=25, int8=True,
    attrs={"pads": IntList(()), "mode": Str("constant", words=MODES), "value": Float(0.0),
           "axes": IntList(optional=True)},
    doc="grows or crops axes: constant, reflect, edge, wrap",
)  # fmt: skip
