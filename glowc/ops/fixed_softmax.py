"""FixedSoftmax of int8 along the last axis, to int8 or int16 codes, in TensorFlow Lite's fixed point.

exp of the differences to the largest comes from a table (`glowc.graph.fixed_functions.softmax_table`), which ends where
TensorFlow Lite takes 0; the sum has 12 integer bits, its reciprocal three Newton steps.
Source: tensorflow/lite/kernels/internal/reference/softmax.h, restated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowc.graph.attrs import Float, Str
from glowc.graph.fixed_functions import softmax_parts, softmax_table
from glowc.graph.graph import Node
from glowc.graph.types import DTYPES, DType, QuantParams, TensorType
from glowc.ops.base import LowerCtx, MaybeTypes, OpDef, OpError, Types
from glowc.ops.derived import derived
from glowc.ops.params import Along
from glowc.ops.strided import present
from glowc.program.kernel import Arrays, KernelDef


@dataclass(frozen=True, slots=True)
class FixedSoftmax(Along):
    """Of `softmax_s8q31`: the entries of the table."""

    entries: int


def infer(node: Node, in_types: MaybeTypes) -> Types:
    """Codes of kind `dtype`."""
    (x,) = present(in_types[:1])
    if x.dtype != DType.S8 or x.quant is None or x.rank < 1:
        raise OpError(f"softmax of int8 codes, not {x}")
    return (TensorType(x.shape, DType(node.str_("dtype") or "s8"), None, x.layout),)


def _codes(x: np.ndarray, table: np.ndarray, dtype: DType) -> np.ndarray:
    """Return the codes of the softmax along axis 1 of x[outer, n, inner]."""
    x = x.astype(np.int64)
    y = softmax_parts(x.max(1, keepdims=True) - x, table, dtype.bits) + dtype.qmin
    return np.asarray(np.clip(y, dtype.qmin, dtype.qmax))


def _table(node: Node, quant: QuantParams) -> np.ndarray:
    return softmax_table(quant.scale[0], node.float_("beta"))


def lower(node: Node, ctx: LowerCtx) -> None:
    """One `softmax_s8q31`."""
    x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
    if x.type.quant is None:
        raise OpError("needs codes")
    table = _table(node, x.type.quant)
    n = x.type.shape[-1]
    params = FixedSoftmax(x.type.elements // n, n, 1, table.size)
    ctx.emit("softmax_s8q31", {"in": x, "table": ctx.const(table, f"{node.name}_exp"), "out": y}, params)


def _interpret(a: Arrays, p: FixedSoftmax) -> None:
    p.view(a["out"])[:] = _codes(p.view(a["in"]), a["table"], DType(f"s{8 * a['out'].itemsize}"))


KERNELS = (
    KernelDef("softmax_s8q31", ("in in:s8", "in table:s32", "out out:s8|s16"), FixedSoftmax, _interpret, kind="s8",
              in_place=("in",), doc="int8 softmax in TensorFlow Lite's fixed point"),
)  # fmt: skip

OP = OpDef("FixedSoftmax", infer, derived, lower, {"beta": Float(1.0), "dtype": Str("", words=DTYPES)},
           doc="softmax of codes as TensorFlow Lite computes it (internal)")  # fmt: skip
