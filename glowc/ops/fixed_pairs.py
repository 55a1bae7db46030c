"""FixedSquaredDifference, FixedDiv, FixedPrelu, FixedCompare: TensorFlow Lite's functions of two tensors of codes.

FixedSquaredDifference: both operands as those of a sum, 7 bits to the left (int16: 0), by s / t with t = 2 max(sa, sb);
their difference squared times t^2 / (2^(2 left) sy).
FixedDiv of int8: a - za times the reciprocal of b - zb (three Newton steps), by sa / (sb sy); 0 where b is real zero.
FixedPrelu of int8: (x - zx) sx / sy, below zero (x - zx) (b - zb) sx sb / sy.
FixedCompare of int8 (`relation`: <, <=, >, >=, ==, !=) of both sides times 2^8 and their scales, rounded to integers.
A quotient of FixedDiv that needs a shift of more than 31 bits is 0; there the runtime's C++ is undefined and its builds
differ: tests leave those out.
Every factor is a multiplier of 31 bits and a shift, of float64 products of the float32 scales.
Evidence: seeded cases of each against the runtime (tests/tflite), 0 differ.
Source: tensorflow/lite/kernels/internal/reference/{squared_difference,div,prelu,comparisons}.h, restated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from glowc.graph.attrs import Attr, Str
from glowc.graph.fixed_functions import reciprocal
from glowc.graph.fixed_point import multiplier, scaled, wrapped
from glowc.graph.graph import Node
from glowc.graph.types import DType, QuantParams, TensorType
from glowc.ops.base import CLAMP, LowerCtx, MaybeTypes, OpDef, OpError, Types, clamp_of
from glowc.ops.binary_codes import Codes
from glowc.ops.derived import derived
from glowc.ops.fixed_binary import FixedProduct, FixedSum, sum_params
from glowc.ops.integer import fixed_bounds
from glowc.ops.params import OutCodes, Pairs
from glowc.ops.strided import access, broadcast_shape, present
from glowc.program.kernel import Arrays, KernelDef
from glowc.program.params import Params

Quants = tuple[QuantParams, QuantParams, QuantParams]
_LEFT = {DType.S8: 7, DType.S16: 0}
_COMPARED_LEFT = 8
RELATIONS: Mapping[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class FixedSlopes(Params):
    """Of `prelu_s8q31`: the factors of numbers from zero on and of products with their slopes."""

    codes: Codes
    mul: int
    shift: int
    slope_mul: int
    slope_shift: int


@dataclass(frozen=True, slots=True)
class FixedRelation(Params):
    """Of `compare_s8q31`: both zero points and scales, and the relation."""

    loops: Pairs
    a_zp: int
    b_zp: int
    a_mul: int
    a_shift: int
    b_mul: int
    b_shift: int
    relation: str


def _operands(node: Node, in_types: MaybeTypes) -> tuple[TensorType, TensorType]:
    a, b = present(in_types[:2])
    kinds = tuple(_LEFT) if node.op == "FixedSquaredDifference" else (DType.S8,)
    if a.dtype != b.dtype or a.dtype not in kinds or any(t.quant is None or t.quant.per_axis for t in (a, b)):
        raise OpError(f"{node.op} of {a} and {b}: needs codes of one kind, {' or '.join(k.value for k in kinds)}")
    return a, b


def infer(node: Node, in_types: MaybeTypes) -> Types:
    """The broadcast shape, of the operands' kind; bool for a relation."""
    both = _operands(node, in_types)
    kind = DType.BOOL if node.op == "FixedCompare" else both[0].dtype
    return (TensorType(broadcast_shape(both), kind),)


def squared_params(codes: Codes, quants: Quants, left: int) -> FixedSum:
    """Return the factors of a squared difference."""
    plain = sum_params(codes, quants, left, "-")
    twice = 2 * max(quants[0].scale[0], quants[1].scale[0])
    out = multiplier(twice * twice / ((1 << (2 * left)) * quants[2].scale[0]))
    return FixedSum(codes, left, plain.a_mul, plain.a_shift, plain.b_mul, plain.b_shift, *out, "-")


def params_of(node: Node, codes: Codes, quants: Quants, kind: DType) -> Params:
    """Return the parameters of the node's kernel, but for a relation."""
    sa, sb, sy = (q.scale[0] for q in quants)
    if node.op == "FixedSquaredDifference":
        return squared_params(codes, quants, _LEFT[kind])
    if node.op == "FixedDiv":
        return FixedProduct(codes, *multiplier(sa / (sb * sy)))
    return FixedSlopes(codes, *multiplier(sa / sy), *multiplier(sa * sb / sy))


def quotients(a: np.ndarray, b: np.ndarray, p: FixedProduct) -> np.ndarray:
    """Return a / b times the factor; 0 for b = 0."""
    a, b = (np.where(b < 0, -v, v).astype(np.int64) for v in (a, b))
    safe = np.where(b == 0, 1, b)
    bits = np.frexp(safe.astype(np.float64))[1].astype(np.int64)
    inverse = reciprocal((safe << (32 - bits)) - (1 << 31))
    headroom = np.where(a == 0, 31, 31 - np.frexp(np.abs(np.where(a < 0, ~a, a)).astype(np.float64))[1])
    quotient = scaled(a, inverse, headroom)
    found = scaled(quotient, p.out_mul, p.out_shift - (bits - 1) - headroom)
    return np.asarray(np.where(b == 0, 0, found))


def evaluate(a: np.ndarray, b: np.ndarray, p: Params) -> np.ndarray:
    """Return the result of operands less their zero points, broadcast."""
    a, b = np.broadcast_arrays(a, b)
    if isinstance(p, FixedRelation):
        left, right = (
            scaled(v << _COMPARED_LEFT, mul, shift)
            for v, mul, shift in ((a, p.a_mul, p.a_shift), (b, p.b_mul, p.b_shift))
        )
        return RELATIONS[p.relation](left, right)
    assert isinstance(p, FixedSum | FixedProduct | FixedSlopes)
    if isinstance(p, FixedSum):
        d = scaled(a << p.left, p.a_mul, p.a_shift) - scaled(b << p.left, p.b_mul, p.b_shift)
        y = scaled(wrapped(d * d), p.out_mul, p.out_shift)
    elif isinstance(p, FixedProduct):
        y = quotients(a, b, p)
    else:
        y = np.where(a >= 0, scaled(a, p.mul, p.shift), scaled(a * b, p.slope_mul, p.slope_shift))
    return np.asarray(np.clip(y + p.codes.out.out_zp, p.codes.out.out_min, p.codes.out.out_max))


def _relation(node: Node, loops: Pairs, qa: QuantParams, qb: QuantParams) -> FixedRelation:
    factors = multiplier(qa.scale[0]), multiplier(qb.scale[0])
    points = qa.zero_point[0], qb.zero_point[0]
    return FixedRelation(loops, *points, *factors[0], *factors[1], node.str_("relation"))


def _ends(node: Node, y: TensorType) -> OutCodes:
    if y.quant is None:
        raise OpError(f"{node.op} gives codes, not {y}")
    bounds = clamp_of(node) if node.op == "FixedDiv" else (-np.inf, np.inf)
    return OutCodes(y.quant.zero_point[0], *fixed_bounds(*bounds, y.quant, y.dtype))


_KERNEL_NAMES = {
    "FixedSquaredDifference": "squared_difference", "FixedDiv": "div", "FixedPrelu": "prelu", "FixedCompare": "compare",
}  # fmt: skip


def lower(node: Node, ctx: LowerCtx) -> None:
    """One kernel."""
    a, b, y = ctx.read(node.inputs[0]), ctx.read(node.inputs[1]), ctx.write(node.outputs[0])
    qa, qb, qy = a.type.quant, b.type.quant, y.type.quant
    if qa is None or qb is None:
        raise OpError(f"needs codes, not {a.type} and {b.type}")
    kernel = f"{_KERNEL_NAMES[node.op]}_{a.type.dtype.value}q31"
    if node.op == "FixedCompare":
        ctx.emit(kernel, {"a": a, "b": b, "out": y}, _relation(node, access(a, b, y), qa, qb))
        return
    codes = Codes(access(a, b, y), qa.zero_point[0], qb.zero_point[0], _ends(node, y.type))
    assert qy is not None
    ctx.emit(kernel, {"a": a, "b": b, "out": y}, params_of(node, codes, (qa, qb, qy), y.type.dtype))


def _interpret(a: Arrays, p: FixedSum | FixedProduct | FixedSlopes) -> None:
    y = evaluate(*p.codes.centred(a), p)
    a["out"].reshape(-1)[: y.size] = y.reshape(-1)


def _interpret_relation(a: Arrays, p: FixedRelation) -> None:
    left = p.loops.view(a["a"], p.loops.a).astype(np.int64) - p.a_zp
    right = p.loops.view(a["b"], p.loops.b).astype(np.int64) - p.b_zp
    y = evaluate(left, right, p)
    a["out"].reshape(-1)[: y.size] = y.reshape(-1)


KERNELS = (
    *(
        KernelDef(f"squared_difference_{kind}q31", ("in a", "in b", "out out"), FixedSum, _interpret,
                  in_place=("a", "b"), length="d0", kind=kind, template="squared_difference_q31",
                  doc="square of the difference of codes in TensorFlow Lite's fixed point")
        for kind in ("s8", "s16")
    ),
    KernelDef("div_s8q31", ("in a", "in b", "out out"), FixedProduct, _interpret, in_place=("a", "b"), length="d0",
              kind="s8", doc="quotient of codes in TensorFlow Lite's fixed point"),
    KernelDef("prelu_s8q31", ("in a", "in b", "out out"), FixedSlopes, _interpret, in_place=("a", "b"), length="d0",
              kind="s8", doc="codes times slopes below zero in TensorFlow Lite's fixed point"),
    KernelDef("compare_s8q31", ("in a", "in b", "out out:bool"), FixedRelation, _interpret_relation, kind="s8",
              doc="relation of codes in TensorFlow Lite's fixed point"),
)  # fmt: skip

_ATTRS: Mapping[str, Mapping[str, Attr]] = {
    "FixedSquaredDifference": {}, "FixedDiv": CLAMP, "FixedPrelu": {}, "FixedCompare": {"relation": Str()},
}  # fmt: skip
_DOCS = {
    "FixedSquaredDifference": "square of the difference", "FixedDiv": "quotient", "FixedPrelu": "slopes below zero",
    "FixedCompare": "relation",
}  # fmt: skip
OPS = tuple(
    OpDef(op, infer, derived, lower, attrs, doc=f"{_DOCS[op]} of codes as TensorFlow Lite computes it (internal)")
    for op, attrs in _ATTRS.items()
)
