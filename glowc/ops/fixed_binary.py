"""FixedAdd, FixedSub, FixedMul: TensorFlow Lite's sums and products of codes with broadcasting.

Sums: both operands, less their zero points, times 2^left (20 for int8, 15 for int16) and s / t with t = 2 max(sa, sb);
their sum or difference times t / (2^left sy). Products: (a - za) * (b - zb) times sa sb / sy. Every factor is a
multiplier of 31 bits and a shift (`glowc.graph.fixed_point`), from float64 quotients of the float32 scales.
Source: tensorflow/lite/kernels/internal/reference/integer_ops/add.h, mul.h, restated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowc.graph.fixed_point import multiplier, scaled
from glowc.graph.graph import Node
from glowc.graph.types import DType, QuantParams, TensorType
from glowc.ops.base import CLAMP, LowerCtx, MaybeTypes, OpDef, OpError, Types, clamp_of
from glowc.ops.binary_codes import Codes
from glowc.ops.derived import derived
from glowc.ops.integer import fixed_bounds
from glowc.ops.params import OutCodes
from glowc.ops.strided import access, broadcast_shape, present
from glowc.program.kernel import Arrays, KernelDef
from glowc.program.params import Params

_LEFT = {DType.S8: 20, DType.S16: 15}


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
    """Of `mul_q31`: the factor of the product of codes."""

    codes: Codes
    out_mul: int
    out_shift: int


def infer(node: Node, in_types: MaybeTypes) -> Types:
    """The broadcast shape, of the operands' kind."""
    a, b = present(in_types[:2])
    if a.dtype != b.dtype or a.dtype not in _LEFT or a.quant is None or b.quant is None:
        raise OpError(f"{node.op} of {a} and {b}: needs int8 or int16 codes of one kind")
    return (TensorType(broadcast_shape((a, b)), a.dtype),)


def sum_params(codes: Codes, quants: tuple[QuantParams, QuantParams, QuantParams], left: int, sign: str) -> FixedSum:
    """Return the factors of a sum; quants are those of a, b and the result."""
    sa, sb, sy = (q.scale[0] for q in quants)
    twice = 2 * max(sa, sb)
    factors = multiplier(sa / twice), multiplier(sb / twice), multiplier(twice / ((1 << left) * sy))
    return FixedSum(codes, left, *factors[0], *factors[1], *factors[2], sign)


def sum_codes(a: np.ndarray, b: np.ndarray, p: FixedSum) -> np.ndarray:
    """Return the codes of operands less their zero points."""
    first = scaled(a << p.left, p.a_mul, p.a_shift)
    second = scaled(b << p.left, p.b_mul, p.b_shift)
    return _codes(first + second if p.sign == "+" else first - second, p.out_mul, p.out_shift, p.codes.out)


def _codes(x: np.ndarray, mul: int, shift: int, out: OutCodes) -> np.ndarray:
    return np.asarray(np.clip(scaled(x, mul, shift) + out.out_zp, out.out_min, out.out_max))


def params_of(node: Node, codes: Codes, quants: tuple[QuantParams, QuantParams, QuantParams], kind: DType) -> Params:
    """Return the parameters of the node's kernel."""
    if node.op != "FixedMul":
        return sum_params(codes, quants, _LEFT[kind], "+" if node.op == "FixedAdd" else "-")
    sa, sb, sy = (q.scale[0] for q in quants)
    return FixedProduct(codes, *multiplier(sa * sb / sy))


def _evaluate(a: np.ndarray, b: np.ndarray, p: Params) -> np.ndarray:
    if isinstance(p, FixedSum):
        return sum_codes(a, b, p)
    assert isinstance(p, FixedProduct)
    return _codes(a * b, p.out_mul, p.out_shift, p.codes.out)


def lower(node: Node, ctx: LowerCtx) -> None:
    """One kernel."""
    a, b, y = ctx.read(node.inputs[0]), ctx.read(node.inputs[1]), ctx.write(node.outputs[0])
    qa, qb, qy = a.type.quant, b.type.quant, y.type.quant
    if qa is None or qb is None or qy is None:
        raise OpError(f"no integer form with {a.type}, {b.type} -> {y.type}")
    ends = OutCodes(qy.zero_point[0], *fixed_bounds(*clamp_of(node), qy, y.type.dtype))
    codes = Codes(access(a, b, y), qa.zero_point[0], qb.zero_point[0], ends)
    kernel = f"{'mul' if node.op == 'FixedMul' else 'add'}_{y.type.dtype.value}q31"
    ctx.emit(kernel, {"a": a, "b": b, "out": y}, params_of(node, codes, (qa, qb, qy), y.type.dtype))


def _interpret(a: Arrays, p: Params) -> None:
    assert isinstance(p, FixedSum | FixedProduct)
    y = _evaluate(*p.codes.centred(a), p)
    a["out"].reshape(-1)[: y.size] = y.reshape(-1)


_KINDS: tuple[tuple[str, type[Params], str], ...] = (
    ("add", FixedSum, "sum or difference of codes in TensorFlow Lite's fixed point"),
    ("mul", FixedProduct, "product of codes in TensorFlow Lite's fixed point"),
)
KERNELS = tuple(
    KernelDef(f"{name}_{kind}q31", ("in a", "in b", "out out"), takes, _interpret, in_place=("a", "b"), length="d0",
              kind=kind, template=f"{name}_q31", doc=doc)
    for name, takes, doc in _KINDS
    for kind in ("s8", "s16")
)  # fmt: skip

OPS = tuple(
    OpDef(name, infer, derived, lower, CLAMP, doc=f"{word} of codes as TensorFlow Lite computes it (internal)")
    for name, word in (("FixedAdd", "sum"), ("FixedSub", "difference"), ("FixedMul", "product"))
)
