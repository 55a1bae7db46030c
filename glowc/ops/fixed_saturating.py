"""FixedLogistic, FixedTanh: TensorFlow Lite's functions of int16 codes, by a table of 256 entries.

x * 24 * 512 = code * mul / 2^shift, half up; entries of `glowc.graph.fixed_functions.sigmoid_table` with linear steps
between them. A scale of 2^-12 (tanh: 2^-11 too) has mul = 3 (6) exactly, another one a mul of 15 bits, cut off.
Evidence: all 65,536 codes at ten scales against the runtime, 0 differ.
"""

from __future__ import annotations

from dataclasses import dataclass

from glowc.graph.fixed_functions import logistic_by_table, lookup_factor, sigmoid_table, tanh_by_table
from glowc.graph.graph import Node
from glowc.graph.types import DType, TensorType
from glowc.ops.base import LowerCtx, MaybeTypes, OpDef, OpError, Types
from glowc.ops.derived import derived
from glowc.ops.integer import codes_of
from glowc.ops.params import Elements
from glowc.ops.strided import present
from glowc.program.kernel import Arrays, KernelDef

_FUNCTIONS = {"FixedLogistic": "logistic", "FixedTanh": "tanh"}
_BY_TABLE = {"logistic": logistic_by_table, "tanh": tanh_by_table}


@dataclass(frozen=True, slots=True)
class Lookup(Elements):
    """Of `saturating_s16`: the factor of the codes and the function."""

    mul: int
    shift: int
    function: str


def infer(node: Node, in_types: MaybeTypes) -> Types:
    """Codes of the same kind."""
    (x,) = present(in_types[:1])
    if any(codes_of(x, DType.S16).zero_point):
        raise OpError(f"{node.op} of int16 codes around 0, not {x}")
    return (TensorType(x.shape, x.dtype, None, x.layout),)


def lower(node: Node, ctx: LowerCtx) -> None:
    """One `saturating_s16`."""
    x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
    table, function = ctx.const(sigmoid_table(), "sigmoid_table"), _FUNCTIONS[node.op]
    params = Lookup(x.type.elements, *lookup_factor(codes_of(x.type).scale[0], function), function)
    ctx.emit("saturating_s16", {"in": x, "table": table, "out": y}, params)


def _interpret(a: Arrays, p: Lookup) -> None:
    a["out"].reshape(-1)[:] = _BY_TABLE[p.function](a["in"].reshape(-1), p.mul, p.shift)


KERNELS = (
    KernelDef("saturating_s16", ("in in:s16", "in table:u16", "out out:s16"), Lookup, _interpret, in_place=("in",),
              length="n", doc="logistic or tanh of int16 codes by TensorFlow Lite's table"),
)  # fmt: skip

OPS = tuple(
    OpDef(op, infer, derived, lower, doc=f"{name} of int16 codes as TensorFlow Lite computes it (internal)")
    for op, name in _FUNCTIONS.items()
)
