"""CumSum and CumProd along attr `axis`, with attrs `exclusive` and `reverse`.

The tensor is seen as [outer, n, inner]; the running value is kept in the element type, in index order, so that C and
numpy agree to the last bit. Integers wrap. Source: ONNX CumSum-14, CumProd-26.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from glowc.graph.attrs import Int
from glowc.graph.graph import Node
from glowc.graph.types import DType
from glowc.ops.base import LowerCtx, MaybeTypes, OpDef, OpError, Types
from glowc.ops.binary_table import TABLE, expression
from glowc.ops.derived import derived
from glowc.ops.params import Along
from glowc.ops.strided import axis_of, present
from glowc.program.kernel import Arrays, KernelDef
from glowc.program.params import Printed

START = {"add": 0, "mul": 1}


@dataclass(frozen=True, slots=True)
class CumulateParams(Along):
    """Of `cumulate`: the entry of the table of binary functions, its C expression, and the first running value."""

    op: str
    expr: str
    start: Printed
    exclusive: Printed
    reverse: Printed


def infer(node: Node, in_types: MaybeTypes) -> Types:
    """The type of the input."""
    (x,) = present(in_types[:1])
    axis_of(node.int_("axis"), x.rank)
    if len([t for t in in_types if t is not None]) > 1 or x.rank == 0 or x.dtype == DType.BOOL:
        raise OpError(f"{node.op} of {x}, or an axis that is computed at run time")
    return (x,)


def dims_of(shape: tuple[int, ...], axis: int) -> tuple[int, int, int]:
    """Return [outer, n, inner] around an axis."""
    i = axis_of(axis, len(shape))
    return math.prod(shape[:i]), shape[i], math.prod(shape[i + 1 :])


def cumulate(x: np.ndarray, name: str, *, exclusive: bool, reverse: bool) -> np.ndarray:
    """Return the running value along axis 1 of x[outer, n, inner]."""
    acc = np.full((x.shape[0], x.shape[2]), START[name], x.dtype)
    y = np.empty_like(x)
    with np.errstate(all="ignore"):
        for k in reversed(range(x.shape[1])) if reverse else range(x.shape[1]):
            after = np.asarray(TABLE[name].function(acc, x[:, k])).astype(x.dtype)
            y[:, k] = acc if exclusive else after
            acc = after
    return y


def lower(name: str) -> Callable[[Node, LowerCtx], None]:
    """Return the lowering to `cumulate`."""

    def emit(node: Node, ctx: LowerCtx) -> None:
        x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
        dims = dims_of(x.type.shape, node.int_("axis"))
        params = CumulateParams(
            *dims, op=name, expr=expression(name, x.type.dtype), start=START[name], exclusive=node.int_("exclusive"),
            reverse=node.int_("reverse"),
        )  # fmt: skip
        ctx.emit("cumulate", {"in": x, "out": y}, params)

    return emit


def _interpret(arrays: Arrays, p: CumulateParams) -> None:
    y = cumulate(p.view(arrays["in"]), p.op, exclusive=p.exclusive == 1, reverse=p.reverse == 1)
    arrays["out"].reshape(-1)[: y.size] = y.reshape(-1)


KERNELS = (
    KernelDef("cumulate", ("in in", "out out"), CumulateParams, _interpret, in_place=("in",), needs_math=True,
              doc="running sum or product"),
)  # fmt: skip

_ATTRS = {"axis": Int(), "exclusive": Int(0), "reverse": Int(0)}
OPS = (
    OpDef("CumSum", infer, derived, lower("add"), attrs=_ATTRS, max_version=14, doc="running sum"),
    OpDef("CumProd", infer, derived, lower("mul"), attrs=_ATTRS, max_version=28, doc="running product"),
)
