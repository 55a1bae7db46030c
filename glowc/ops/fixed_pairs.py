"""TensorFlow Lite's functions of two tensors of codes, with broadcasting.

FixedAdd, FixedSub: both operands, less their zero points, times 2^left (20 for int8, 15 for int16) and s / t with
t = 2 max(sa, sb); their sum or difference times t / (2^left sy).
FixedSquaredDifference: the same with left 7 (int16: 0), the difference squared times t^2 / (2^(2 left) sy).
FixedMul: (a - za) * (b - zb) times sa sb / sy.
FixedDiv of int8: a - za times the reciprocal of b - zb (three Newton steps), by sa / (sb sy); 0 where b is real zero.
FixedPrelu of int8: (x - zx) sx / sy, below zero (x - zx) (b - zb) sx sb / sy.
FixedCompare of int8 (`relation`: <, <=, >, >=, ==, !=) of both sides times 2^8 and their scales, rounded to integers.
A quotient of FixedDiv that needs a shift of more than 31 bits is 0; there the runtime's C++ is undefined and its builds
differ: tests leave those out.
Every factor is a multiplier of 31 bits and a shift (`glowc.graph.fixed_point`), of float64 products and quotients of
float32 scales. Evidence: seeded cases of each against the runtime (tests/tflite), 0 differ.
Source: tensorflow/lite/kernels/internal/reference/{integer_ops/add,integer_ops/mul,squared_difference,div,prelu,
comparisons}.h, restated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from glowc.graph.attrs import Str
from glowc.graph.fixed_functions import reciprocal
from glowc.graph.fixed_point import multiplier, scaled, wrapped
from glowc.graph.graph import Node
from glowc.graph.types import DType, QuantParams, TensorType
from glowc.ops.base import CLAMP, LowerCtx, MaybeTypes, OpDef, OpError, Types, clamp_of
from glowc.ops.binary_codes import Codes, Operands
from glowc.ops.derived import derived
from glowc.ops.integer import codes_of, result_codes
from glowc.ops.strided import access, broadcast_shape, present
from glowc.program.kernel import Arrays, KernelDef
from glowc.program.params import Params

Quants = tuple[QuantParams, QuantParams, QuantParams]
_LEFT = {DType.S8: 20, DType.S16: 15}
_SQUARED_LEFT = {DType.S8: 7, DType.S16: 0}
_COMPARED_LEFT = 8
RELATIONS: Mapping[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class FixedSum(Params):
    """Of `add_q31`: the shift of the operands, the factors of each and of the sum, and the sign of b."""

    codes: Codes
    left: int
    a_mul: int
    a_shift: int
    b_mul: int
    b_shift: int
    out_mul: int
    out_shift: int
    sign: str


@dataclass(frozen=True, slots=True)
class FixedProduct(Params):
    """Of `mul_q31` and `div_s8q31`: the factor of the product, or quotient, of codes."""

    codes: Codes
    out_mul: int
    out_shift: int


@dataclass(frozen=True, slots=True)
class FixedSlopes(Params):
    """Of `prelu_s8q31`: the factors of numbers from zero on and of products with their slopes."""

    codes: Codes
    mul: int
    shift: int
    slope_mul: int
    slope_shift: int


@dataclass(frozen=True, slots=True)
class FixedRelation(Operands):
    """Of `compare_s8q31`: both scales, and the relation."""

    a_mul: int
    a_shift: int
    b_mul: int
    b_shift: int
    relation: str


def sum_params(codes: Codes, quants: Quants, left: int, sign: str) -> FixedSum:
    """Return the factors of a sum; quants are those of a, b and the result."""
    sa, sb, sy = (q.scale[0] for q in quants)
    twice = 2 * max(sa, sb)
    factors = multiplier(sa / twice), multiplier(sb / twice), multiplier(twice / ((1 << left) * sy))
    return FixedSum(codes, left, *factors[0], *factors[1], *factors[2], sign)


def _squared_params(codes: Codes, quants: Quants, left: int) -> FixedSum:
    sa, sb, sy = (q.scale[0] for q in quants)
    twice = 2 * max(sa, sb)
    mul, shift = multiplier(twice * twice / ((1 << (2 * left)) * sy))
    return replace(sum_params(codes, quants, left, "-"), out_mul=mul, out_shift=shift)


def params_of(op: str, codes: Codes, quants: Quants, kind: DType) -> Params:
    """Return the parameters of an operator's kernel, but for a relation."""
    sa, sb, sy = (q.scale[0] for q in quants)
    if op == "FixedSquaredDifference":
        return _squared_params(codes, quants, _SQUARED_LEFT[kind])
    if op in ("FixedMul", "FixedDiv"):
        return FixedProduct(codes, *multiplier(sa * sb / sy if op == "FixedMul" else sa / (sb * sy)))
    if op == "FixedPrelu":
        return FixedSlopes(codes, *multiplier(sa / sy), *multiplier(sa * sb / sy))
    return sum_params(codes, quants, _LEFT[kind], "+" if op == "FixedAdd" else "-")


def _sums(a: np.ndarray, b: np.ndarray, p: FixedSum) -> np.ndarray:
    second = scaled(b << p.left, p.b_mul, p.b_shift)
    return np.asarray(scaled(a << p.left, p.a_mul, p.a_shift) + (second if p.sign == "+" else -second))


def _quotients(a: np.ndarray, b: np.ndarray, p: FixedProduct) -> np.ndarray:
    """Return a / b times the factor; 0 for b = 0."""
    a, b = (np.where(b < 0, -v, v).astype(np.int64) for v in (a, b))
    safe = np.where(b == 0, 1, b)
    bits = np.frexp(safe.astype(np.float64))[1].astype(np.int64)
    inverse = reciprocal((safe << (32 - bits)) - (1 << 31))
    headroom = np.where(a == 0, 31, 31 - np.frexp(np.abs(np.where(a < 0, ~a, a)).astype(np.float64))[1])
    quotient = scaled(a, inverse, headroom)
    found = scaled(quotient, p.out_mul, p.out_shift - (bits - 1) - headroom)
    return np.asarray(np.where(b == 0, 0, found))


def _sloped(a: np.ndarray, b: np.ndarray, p: FixedSlopes) -> np.ndarray:
    return np.where(a >= 0, scaled(a, p.mul, p.shift), scaled(a * b, p.slope_mul, p.slope_shift))


@dataclass(frozen=True, slots=True)
class Function:
    """Of a kernel: its parameters, the kinds of codes, its word, and the steps of operands less their zero points."""

    takes: type[Params]
    kinds: tuple[DType, ...]
    word: str
    steps: Callable[[np.ndarray, np.ndarray, Any], np.ndarray]

    def interpret(self, a: Arrays, p: Any) -> None:
        """Evaluate the kernel."""
        left, right = np.broadcast_arrays(*p.codes.centred(a))
        y: np.ndarray = p.codes.out.codes(self.steps(left, right, p))
        a["out"].reshape(-1)[: y.size] = y.reshape(-1)


_BOTH, _NARROW = (DType.S8, DType.S16), (DType.S8,)
_FUNCTIONS: Mapping[str, Function] = {
    "add": Function(
        FixedSum, _BOTH, "sum or difference of codes", lambda a, b, p: scaled(_sums(a, b, p), p.out_mul, p.out_shift)
    ),
    "mul": Function(FixedProduct, _BOTH, "product of codes", lambda a, b, p: scaled(a * b, p.out_mul, p.out_shift)),
    "squared_difference": Function(
        FixedSum, _BOTH, "square of the difference of codes",
        lambda a, b, p: scaled(wrapped(_sums(a, b, p) ** 2), p.out_mul, p.out_shift),
    ),
    "div": Function(FixedProduct, _NARROW, "quotient of codes", _quotients),
    "prelu": Function(FixedSlopes, _NARROW, "codes times slopes below zero", _sloped),
}  # fmt: skip
_OPS: Mapping[str, tuple[str, str]] = {
    "FixedAdd": ("add", "sum"), "FixedSub": ("add", "difference"), "FixedMul": ("mul", "product"),
    "FixedSquaredDifference": ("squared_difference", "square of the difference"), "FixedDiv": ("div", "quotient"),
    "FixedPrelu": ("prelu", "slopes below zero"), "FixedCompare": ("compare", "relation"),
}  # fmt: skip


def infer(node: Node, in_types: MaybeTypes) -> Types:
    """The broadcast shape, of the operands' kind; bool for a relation."""
    a, b = present(in_types[:2])
    found = _FUNCTIONS.get(_OPS[node.op][0])
    for t in (a, b):
        codes_of(t, *(found.kinds if found else _NARROW))
    if a.dtype != b.dtype:
        raise OpError(f"{node.op} of {a} and {b}: needs codes of one kind")
    return (TensorType(broadcast_shape((a, b)), a.dtype if found else DType.BOOL),)


def lower(node: Node, ctx: LowerCtx) -> None:
    """One kernel."""
    a, b, y = ctx.read(node.inputs[0]), ctx.read(node.inputs[1]), ctx.write(node.outputs[0])
    qa, qb, loops = codes_of(a.type), codes_of(b.type), access(a, b, y)
    points = qa.zero_point[0], qb.zero_point[0]
    if node.op == "FixedCompare":
        factors = multiplier(qa.scale[0]), multiplier(qb.scale[0])
        params: Params = FixedRelation(loops, *points, *factors[0], *factors[1], node.str_("relation"))
    else:
        codes = Codes(loops, *points, result_codes(y.type, *clamp_of(node)))
        params = params_of(node.op, codes, (qa, qb, codes_of(y.type)), y.type.dtype)
    ctx.emit(f"{_OPS[node.op][0]}_{a.type.dtype.value}q31", {"a": a, "b": b, "out": y}, params)


def _interpret_relation(a: Arrays, p: FixedRelation) -> None:
    left, right = (v << _COMPARED_LEFT for v in p.centred(a))
    y = RELATIONS[p.relation](scaled(left, p.a_mul, p.a_shift), scaled(right, p.b_mul, p.b_shift))
    a["out"].reshape(-1)[: y.size] = y.reshape(-1)


KERNELS = (
    *(
        KernelDef(f"{name}_{kind.value}q31", ("in a", "in b", "out out"), one.takes, one.interpret,
                  in_place=("a", "b"), length="d0", kind=kind.value,
                  template=f"{name}_q31" if one.kinds is _BOTH else "",
                  doc=f"{one.word} in TensorFlow Lite's fixed point")
        for name, one in _FUNCTIONS.items()
        for kind in one.kinds
    ),
    KernelDef("compare_s8q31", ("in a", "in b", "out out:bool"), FixedRelation, _interpret_relation, kind="s8",
              doc="relation of codes in TensorFlow Lite's fixed point"),
)  # fmt: skip

OPS = tuple(
    OpDef(op, infer, derived, lower, {"relation": Str()} if op == "FixedCompare" else CLAMP,
          doc=f"{word} of codes as TensorFlow Lite computes it (internal)")
    for op, (_, word) in _OPS.items()
)  # fmt: skip
