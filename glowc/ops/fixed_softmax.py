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
from glowc.graph.types import DTYPES, DType
from glowc.ops.base import LowerCtx, OpDef
from glowc.ops.derived import derived
from glowc.ops.integer import codes_of, rule_of_codes
from glowc.ops.params import Along
from glowc.program.kernel import Arrays, KernelDef


@dataclass(frozen=True, slots=True)
class FixedSoftmax(Along):
    """Of `softmax_s8q31`: the entries of the table."""

    entries: int


def lower(node: Node, ctx: LowerCtx) -> None:
    """One `softmax_s8q31`."""
    x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
    table = softmax_table(codes_of(x.type).scale[0], node.float_("beta"))
    n = x.type.shape[-1]
    params = FixedSoftmax(x.type.elements // n, n, 1, table.size)
    ctx.emit("softmax_s8q31", {"in": x, "table": ctx.const(table, f"{node.name}_exp"), "out": y}, params)


def _interpret(a: Arrays, p: FixedSoftmax) -> None:
    x, kind = p.view(a["in"]).astype(np.int64), np.iinfo(a["out"].dtype)
    y = softmax_parts(x.max(1, keepdims=True) - x, a["table"], kind.bits) + kind.min
    p.view(a["out"])[:] = np.clip(y, kind.min, kind.max)


KERNELS = (
    KernelDef("softmax_s8q31", ("in in:s8", "in table:s32", "out out:s8|s16"), FixedSoftmax, _interpret, kind="s8",
              in_place=("in",), doc="int8 softmax in TensorFlow Lite's fixed point"),
)  # fmt: skip

OP = OpDef("FixedSoftmax", rule_of_codes(DType.S8, rank=1), derived, lower,
           {"beta": Float(1.0), "dtype": Str("", words=DTYPES)},
           doc="softmax of codes as TensorFlow Lite computes it (internal)")  # fmt: skip
