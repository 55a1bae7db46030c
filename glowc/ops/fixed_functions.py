"""FixedLogistic, FixedTanh: TensorFlow Lite's functions of int16 codes, by a table of 256 entries.

x * 24 * 512 = code * mul / 2^shift, half up; entries of `glowc.graph.fixed_functions.sigmoid_table` with linear steps
between them. A scale of 2^-12 (tanh: 2^-11 too) has mul = 3 (6) exactly, another one a mul of 15 bits, cut off.
Evidence: all 65,536 codes at ten scales against the runtime, 0 differ.

FixedL2Norm of int8 along the last axis and FixedRsqrt of int16: TensorFlow Lite's inverse square roots.

1 / sqrt of a whole number by five Newton steps in Q3.28 (`glowc.graph.fixed_unary.inverse_root`).
FixedL2Norm: (x - zx) / sqrt(sum (x - zx)^2) in units of 2^-7. FixedRsqrt: 1 / sqrt(x), with 20 more bits, times
1 / (sqrt(sx) sy); the largest code where x is not above 0.
Evidence: 18,379 codes and all int16 codes at four scales against the runtime, 0 differ.
Source: tensorflow/lite/kernels/internal/reference/integer_ops/l2normalization.h and
micro/kernels/elementwise.cc, restated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowc.graph.fixed_functions import logistic_by_table, lookup_factor, sigmoid_table, tanh_by_table
from glowc.graph.fixed_point import scaled
from glowc.graph.fixed_unary import RSQRT_BITS, Range, inverse_root, range_of, rsqrt_by, rsqrt_factor
from glowc.graph.graph import Node
from glowc.graph.types import DType, TensorType
from glowc.ops.base import LowerCtx, MaybeTypes, OpDef, OpError, Types
from glowc.ops.derived import derived
from glowc.ops.integer import codes_of, result_codes, rule_of_codes
from glowc.ops.params import Along, Elements, OutCodes
from glowc.ops.strided import present
from glowc.program.kernel import Arrays, KernelDef

_OUT_BITS = 7
_FUNCTIONS = {"FixedLogistic": "logistic", "FixedTanh": "tanh"}
_BY_TABLE = {"logistic": logistic_by_table, "tanh": tanh_by_table}


@dataclass(frozen=True, slots=True)
class Lookup(Elements):
    """Of `saturating_s16`: the factor of the codes and the function."""

    mul: int
    shift: int
    function: str


def infer_saturating(node: Node, in_types: MaybeTypes) -> Types:
    """Codes of the same kind."""
    (x,) = present(in_types[:1])
    if any(codes_of(x, DType.S16).zero_point):
        raise OpError(f"{node.op} of int16 codes around 0, not {x}")
    return (TensorType(x.shape, x.dtype, None, x.layout),)


def lower_saturating(node: Node, ctx: LowerCtx) -> None:
    """One `saturating_s16`."""
    x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
    table, function = ctx.const(sigmoid_table(), "sigmoid_table"), _FUNCTIONS[node.op]
    params = Lookup(x.type.elements, *lookup_factor(codes_of(x.type).scale[0], function), function)
    ctx.emit("saturating_s16", {"in": x, "table": table, "out": y}, params)


def _interpret_lookup(a: Arrays, p: Lookup) -> None:
    a["out"].reshape(-1)[:] = _BY_TABLE[p.function](a["in"].reshape(-1), p.mul, p.shift)


@dataclass(frozen=True, slots=True)
class L2Norm(Along):
    """Of `l2_norm_s8q31`: the input's zero point."""

    in_zp: int


@dataclass(frozen=True, slots=True)
class FixedRoot(Elements):
    """Of `rsqrt_s16q31`: the factor (its shift without the 20 bits) and the codes of the result."""

    mul: int
    shift: int
    out: OutCodes


def lower(node: Node, ctx: LowerCtx) -> None:
    """One kernel."""
    x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
    quant, total = codes_of(x.type), x.type.elements
    if node.op == "FixedL2Norm":
        n = x.type.shape[-1]
        ctx.emit("l2_norm_s8q31", {"in": x, "out": y}, L2Norm(total // n, n, 1, quant.zero_point[0]))
    else:
        ends = result_codes(y.type)
        mul, shift = rsqrt_factor(quant.scale[0], range_of(y.type))
        ctx.emit("rsqrt_s16q31", {"in": x, "out": y}, FixedRoot(total, mul, shift - RSQRT_BITS, ends))


def _interpret_norm(a: Arrays, p: L2Norm) -> None:
    centred = p.view(a["in"]).astype(np.int64) - p.in_zp
    mul, shift = inverse_root((centred * centred).sum(1, keepdims=True))
    p.view(a["out"])[:] = np.clip(scaled(centred, mul, shift + _OUT_BITS), -128, 127)


def _interpret_root(a: Arrays, p: FixedRoot) -> None:
    x, out = a["in"].reshape(-1).astype(np.int64), Range(1.0, *p.out.bounds)
    a["out"].reshape(-1)[:] = rsqrt_by(x, (p.mul, p.shift + RSQRT_BITS), out)


KERNELS = (
    KernelDef("saturating_s16", ("in in:s16", "in table:u16", "out out:s16"), Lookup, _interpret_lookup,
              in_place=("in",), length="n", doc="logistic or tanh of int16 codes by TensorFlow Lite's table"),
    KernelDef("l2_norm_s8q31", ("in in:s8", "out out:s8"), L2Norm, _interpret_norm, kind="s8", in_place=("in",),
              doc="rows of length one in TensorFlow Lite's fixed point"),
    KernelDef("rsqrt_s16q31", ("in in:s16", "out out:s16"), FixedRoot, _interpret_root, kind="s16", in_place=("in",),
              length="n", doc="inverse square root in TensorFlow Lite's fixed point"),
)  # fmt: skip

OPS = (
    OpDef("FixedL2Norm", rule_of_codes(DType.S8, rank=1), derived, lower,
          doc="rows of length one of codes as TensorFlow Lite computes them (internal)"),
    OpDef("FixedRsqrt", rule_of_codes(DType.S16), derived, lower,
          doc="inverse square root of codes as TensorFlow Lite computes it (internal)"),
    *(OpDef(op, infer_saturating, derived, lower_saturating,
            doc=f"{name} of int16 codes as TensorFlow Lite computes it (internal)")
      for op, name in _FUNCTIONS.items()),
)  # fmt: skip
