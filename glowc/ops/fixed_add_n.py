"""FixedAddN and FixedCumSum: TensorFlow Lite's ADD_N and CUMSUM of int8 codes.

Every code counts 2^19 (2^20 times the factor 1/2, exactly); the total times 2 sx / (2^20 sy). The runtime subtracts the
zero point once more than there are operands, and so does this.
The codes are added as int16 numbers first, which is the same.
FixedCumSum: the running sum of codes less their zero points, less the zero point once more, times 2^20 modulo 2^32,
half of that, times 2 sx / (2^20 sy).
Evidence: seeded cases of both against the runtime, 0 differ.
Source: tensorflow/lite/kernels/internal/reference/add_n.h, cumsum.h, restated.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from glowc.graph.attrs import Int
from glowc.graph.fixed_point import multiplier, scaled, wrapped
from glowc.graph.graph import Node
from glowc.graph.types import DType, TensorType
from glowc.ops.base import LowerCtx, MaybeTypes, OpDef, OpError, Ref, Types
from glowc.ops.binary import BinaryParams
from glowc.ops.binary_table import expression
from glowc.ops.cast import CastParams
from glowc.ops.cast import expression as cast_expression
from glowc.ops.cumulate import CumulateParams, dims_of
from glowc.ops.derived import derived
from glowc.ops.integer import codes_of, result_codes, rule_of_codes
from glowc.ops.params import Clamp, Elements, OutCodes
from glowc.ops.strided import access, present
from glowc.program.kernel import Arrays, KernelDef

_LEFT = 19
_MOST = 128  # codes that int16 holds the sum of


@dataclass(frozen=True, slots=True)
class FixedTotal(Elements):
    """Of `total_q31`: what is subtracted, the shifts of the sum to the left and then to the right, its factor."""

    in_zp: int
    left: int
    right: int
    mul: int
    shift: int
    out: OutCodes


def infer(node: Node, in_types: MaybeTypes) -> Types:
    """The operands' type."""
    types = present(in_types)
    x = types[0]
    codes_of(x, DType.S8)
    if any(t.shape != x.shape or t.quant != x.quant for t in types):
        raise OpError(f"{node.op} of {', '.join(map(str, types))}: needs int8 of one quantization")
    if len(types) > _MOST:
        raise OpError(f"{len(types)} operands; at most {_MOST}")
    return (TensorType(x.shape, x.dtype),)


def params_of(x: TensorType, y: TensorType, count: int) -> FixedTotal:
    """Return the factor of a sum of so many codes."""
    quant = codes_of(x)
    factor = multiplier(2 * quant.scale[0] / ((1 << 20) * codes_of(y).scale[0]))
    return FixedTotal(x.elements, (count + 1) * quant.zero_point[0], _LEFT, 0, *factor, result_codes(y))


def lower(node: Node, ctx: LowerCtx) -> None:
    """Sums of int16 numbers, then one `total_q31`."""
    y = ctx.write(node.outputs[0])
    refs = [_wide(node, ctx, name) for name in node.inputs]
    total = refs[0]
    for other in refs[1:]:
        target = ctx.temp(total.type, f"{node.name}_sum")
        params = BinaryParams(access(total, other, target), "add", expression("add", DType.S16), 0, Clamp(0.0, 0.0))
        ctx.emit("binary", {"a": total, "b": other, "out": target}, params)
        total = target
    ctx.emit("total_q31", {"in": total, "out": y}, params_of(ctx.type(node.inputs[0]), y.type, len(refs)))


def _wide(node: Node, ctx: LowerCtx, name: str, kind: DType = DType.S16) -> Ref:
    x = ctx.read(name)
    wide = ctx.temp(TensorType(x.type.shape, kind), f"{node.name}_wide")
    text = cast_expression(DType.S8, kind)
    ctx.emit("cast", {"in": x, "out": wide}, CastParams(x.type.elements, text))
    return wide


def lower_cumsum(node: Node, ctx: LowerCtx) -> None:
    """Running sums of int32 numbers, then one `total_q31`."""
    x, y = ctx.type(node.inputs[0]), ctx.write(node.outputs[0])
    flags = int(node.int_("exclusive") != 0), int(node.int_("reverse") != 0)
    dims, plus = dims_of(x.shape, node.int_("axis")), expression("add", DType.S32)
    codes = _wide(node, ctx, node.inputs[0], DType.S32)
    centred, total = (ctx.temp(codes.type, f"{node.name}_{word}") for word in ("centred", "sum"))
    zero = ctx.const(np.asarray([codes_of(x).zero_point[0]], np.int32), f"{node.name}_zero")
    less = BinaryParams(access(codes, zero, centred), "sub", expression("sub", DType.S32), 0, Clamp(0.0, 0.0))
    ctx.emit("binary", {"a": codes, "b": zero, "out": centred}, less)
    ctx.emit("cumulate", {"in": centred, "out": total}, CumulateParams(*dims, "add", plus, 0, *flags))
    ctx.emit("total_q31", {"in": total, "out": y}, replace(params_of(x, y.type, 0), left=20, right=1))


def _interpret(a: Arrays, p: FixedTotal) -> None:
    x = wrapped((a["in"].reshape(-1).astype(np.int64) - p.in_zp) << p.left) >> p.right
    a["out"].reshape(-1)[:] = p.out.codes(scaled(x, p.mul, p.shift))


KERNELS = (
    KernelDef("total_q31", ("in in:s16|s32", "out out:s8"), FixedTotal, _interpret, in_place=("in",), length="n",
              doc="codes of a sum of codes in TensorFlow Lite's fixed point"),
)  # fmt: skip

OPS = (
    OpDef("FixedAddN", infer, derived, lower, doc="sum of several codes as TensorFlow Lite computes it (internal)"),
    OpDef("FixedCumSum", rule_of_codes(DType.S8, rank=1), derived, lower_cumsum,
          {"axis": Int(), "exclusive": Int(0), "reverse": Int(0)},
          doc="running sum of codes as TensorFlow Lite computes it (internal)"),
)  # fmt: skip
