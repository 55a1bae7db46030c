"""Add, Sub and Mul of quantised tensors: formulas, lowering and the kernels add_s8*, add_s16, mul_s8, mul_s8u, mul_s16.

Sub, and Add of int16: rne(((a - za) * sa +- (b - zb) * sb) / sy) + zy, every operation in float32, left to right.
Add of int8: rne(fma(a, ra, fma(b, rb, zy - fma(za, ra, zb * rb)))) in float32 with ra = sa / sy, rb = sb / sy, on the
codes as the model has them (attribute `unsigned`: uint8 codes, here minus 128). Evidence: com.microsoft QLinearAdd of
onnxruntime 1.31 on x86-64 with FMA, int8 and uint8: 600,000 outputs with scales that make ties and 120,000 with random
ones, 0 differ; the form of Sub differs in 14,200 of the 600,000. Where both forms agree on all 65,536 pairs of codes,
the kernel add_s8 of the form of Sub is emitted, which has fast variants, else add_s8f.
Of operands and a result that are not of one type (attribute `mixed`, uint8 and int8), onnxruntime computes sums and
products in float32: Add by the form of Sub, Mul rne(((a - za) * sa) * ((b - zb) * sb) / sy) + zy. Evidence: all pairs
of codes of the 6 combinations of types, 8 scales with ties each.
Mul: rne(float32(p) * s + float32(zy)) with the exact integer product p = (a - za) * (b - zb) and
s = (sa * sb) / sy, every operation in float32: the zero point is added before the rounding, so that ties go to the
even code; it is that of the codes as the model has them (`unsigned`), for the sum is rounded to float32 as well. Where
that makes no difference on any of the pairs of codes the kernel is mul_s8, else mul_s8u; a mixed product that neither
computes stays in float. Evidence: com.microsoft QLinearMul of onnxruntime 1.31 on x86-64 over every pair of codes, 600
random scales and zero points, int8 and uint8 (39 million outputs): this form is equal everywhere; adding zy after
the rounding differs in 197 outputs (tests/ops/test_binary.py and test_pairs_of_codes.py repeat a part).
The result is clamped to the codes of attributes act_min and act_max.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from glowc.graph.graph import Node
from glowc.graph.numerics import F32, act_range, fma, round_clamp
from glowc.graph.types import QuantParams
from glowc.ops.base import LowerCtx, OpError, Ref, clamp_of
from glowc.ops.params import OutCodes, Pairs, one_quant
from glowc.ops.requant_shift import ShiftEnd, kernel_codes, shift_end, shift_of, shift_operands
from glowc.ops.strided import access
from glowc.program.kernel import Arrays, KernelDef
from glowc.program.params import Params, Printed

_HALF = 128  # from codes of an uint8 tensor to the int8 ones that stand for them
CLAMPING = ("Add", "Sub", "Mul", "Div")


def bounds(node: Node) -> tuple[float, float]:
    """Return the fused clamp in real units; of what cannot clamp, no bounds."""
    return clamp_of(node) if node.op in CLAMPING else (-math.inf, math.inf)


def add_codes(
    a: np.ndarray, b: np.ndarray, qa: QuantParams, qb: QuantParams, qy: QuantParams, low: int, high: int, sign: int
) -> np.ndarray:
    """Return the integer sum (sign 1) or difference (-1)."""
    (sa, za), (sb, zb), (sy, zy) = qa.scalar, qb.scalar, qy.scalar
    left, right = (a.astype(np.int64) - za).astype(F32) * sa, (b.astype(np.int64) - zb).astype(F32) * sb
    return round_clamp((left + right if sign > 0 else left - right) / sy, zy, low, high)


def fused_terms(qa: QuantParams, qb: QuantParams, qy: QuantParams, half: int) -> tuple[F32, F32, F32]:
    """Return ra, rb and the constant term of the int8 sum on codes moved by `half`."""
    (sa, za), (sb, zb), (sy, zy) = qa.scalar, qb.scalar, qy.scalar
    ra, rb = F32(sa / sy), F32(sb / sy)
    inner = fma(np.asarray(za + half), ra, F32(rb * F32(zb + half)))
    return ra, rb, F32(F32(zy + half) - inner)


def fused_sum(a: np.ndarray, b: np.ndarray, terms: tuple[F32, F32, F32], half: int, low: int, high: int) -> np.ndarray:
    """Return the int8 sum as onnxruntime computes it."""
    ra, rb, fixed = terms
    value = fma(a.astype(np.int64) + half, ra, fma(b.astype(np.int64) + half, rb, fixed))
    return round_clamp(value, 0, low + half, high + half) - half


@lru_cache(256)
def forms_agree(qa: QuantParams, qb: QuantParams, qy: QuantParams, half: int, low: int, high: int) -> bool:
    """Say whether both forms of the int8 sum are the same function."""
    a, b = np.arange(-128, 128)[:, None], np.arange(-128, 128)[None, :]
    fused = fused_sum(a, b, fused_terms(qa, qb, qy, half), half, low, high)
    return np.array_equal(fused, add_codes(a, b, qa, qb, qy, low, high, 1))


def mul_codes(
    a: np.ndarray, b: np.ndarray, qa: QuantParams, qb: QuantParams, qy: QuantParams, low: int, high: int, half: int
) -> np.ndarray:
    """Return the integer product, whose zero point is added to the codes moved by `half`."""
    product = (a.astype(np.int64) - qa.zero_point[0]) * (b.astype(np.int64) - qb.zero_point[0])
    return scaled_product(product, mul_scale(qa, qb, qy), qy.zero_point[0], low, high, half)


def scaled_product(product: np.ndarray, scale: F32, zero: int, low: int, high: int, half: int = 0) -> np.ndarray:
    """Return clamp(rne(float32(product) * scale + float32(zero))), in float32, of codes moved by `half`."""
    with np.errstate(over="ignore"):
        value = product.astype(F32) * scale + F32(zero + half)
    return np.asarray(round_clamp(value, 0, low + half, high + half) - half)


def _mixed_product(a: np.ndarray, b: np.ndarray, qa: QuantParams, qb: QuantParams, qy: QuantParams) -> np.ndarray:
    """Return the int8 codes of the product of real numbers, in float32."""
    (sa, za), (sb, zb), (sy, zy) = qa.scalar, qb.scalar, qy.scalar
    value = ((a.astype(np.int64) - za).astype(F32) * sa) * ((b.astype(np.int64) - zb).astype(F32) * sb)
    return round_clamp(value / sy, zy, -128, 127)


def product_half(node: Node, qa: QuantParams, qb: QuantParams, qy: QuantParams) -> int | None:
    """Return by how much codes are moved in a product of int8 codes that gives the node's; None: none does."""
    a, b = np.arange(-128, 128)[:, None], np.arange(-128, 128)[None, :]
    forms = {half: mul_codes(a, b, qa, qb, qy, -128, 127, half) for half in (0, _HALF)}
    want = _mixed_product(a, b, qa, qb, qy) if node.int_("mixed") else forms[_HALF * node.int_("unsigned")]
    return next((half for half, codes in forms.items() if np.array_equal(codes, want)), None)


def mul_scale(qa: QuantParams, qb: QuantParams, qy: QuantParams) -> F32:
    """Return (sa * sb) / sy in float32."""
    return F32(F32(qa.scalar[0] * qb.scalar[0]) / qy.scalar[0])


@dataclass(frozen=True, slots=True)
class Operands(Params):
    """The loops over two tensors of codes, and their zero points."""

    loops: Pairs
    a_zp: int
    b_zp: int

    def centred(self, a: Arrays) -> tuple[np.ndarray, np.ndarray]:
        """Return both operands less their zero points, in the shape of the loops."""
        loops = self.loops
        left, right = loops.view(a["a"], loops.a).astype(np.int64), loops.view(a["b"], loops.b).astype(np.int64)
        return left - self.a_zp, right - self.b_zp


@dataclass(frozen=True, slots=True)
class Codes(Operands):
    """Those, and the zero point and the bounds of the result."""

    out: OutCodes


@dataclass(frozen=True, slots=True)
class SumOfCodes(Params):
    """Of `add_s8`, `add_s16`: the scales, and the sign of b."""

    codes: Codes
    a_scale: float
    b_scale: float
    out_scale: float
    sign: str


@dataclass(frozen=True, slots=True)
class FusedSum(Params):
    """Of `add_s8f`: what was taken off the model's codes, bounds, and the terms of `fused_terms`."""

    loops: Pairs
    half: int
    out_min: int
    out_max: int
    a_ratio: float
    b_ratio: float
    fixed: float


@dataclass(frozen=True, slots=True)
class ShiftSum(Operands):
    """Of `add_s8rs`: the end, and the sign of b."""

    end: ShiftEnd
    sign: str


@dataclass(frozen=True, slots=True)
class Product(Params):
    """Of `mul_s8`, `mul_s16`: (sa * sb) / sy in float32."""

    codes: Codes
    scale: float


@dataclass(frozen=True, slots=True)
class UnsignedProduct(Product):
    """Of `mul_s8u`: what was taken off the model's codes."""

    half: Printed


def emit_codes(node: Node, ctx: LowerCtx, name: str, a: Ref, b: Ref, y: Ref) -> None:
    """Emit add_* or mul_*."""
    qa, qb, qy = a.type.quant, b.type.quant, y.type.quant
    if name not in ("add", "sub", "mul") or qa is None or qb is None or qy is None:
        raise OpError(f"no integer form with {a.type}, {b.type} -> {y.type}")
    shift, sign = shift_of(node), "+" if name == "add" else "-"
    if shift is not None:
        ends = ShiftSum(access(a, b, y), qa.zero_point[0], qb.zero_point[0], shift_end(shift, qy), sign)
        ctx.emit("add_s8rs", {"a": a, "b": b, **shift_operands(ctx, node, shift, None), "out": y}, ends)
        return
    low, high = act_range(*bounds(node), qy, y.type.dtype)
    half = _HALF * node.int_("unsigned")
    fused_form = name == "add" and y.type.dtype.bits == 8 and not node.int_("mixed")
    if fused_form and not forms_agree(qa, qb, qy, half, low, high):
        ra, rb, fixed = fused_terms(qa, qb, qy, half)
        fused = FusedSum(access(a, b, y), half, low, high, float(ra), float(rb), float(fixed))
        ctx.emit("add_s8f", {"a": a, "b": b, "out": y}, fused)
        return
    codes = Codes(access(a, b, y), qa.zero_point[0], qb.zero_point[0], OutCodes(qy.zero_point[0], low, high))
    if name == "mul":
        _emit_product(node, ctx, a, b, y, codes)
        return
    params = SumOfCodes(codes, qa.scale[0], qb.scale[0], qy.scale[0], sign)
    ctx.emit(f"add_{y.type.dtype.value}", {"a": a, "b": b, "out": y}, params)


def _emit_product(node: Node, ctx: LowerCtx, a: Ref, b: Ref, y: Ref, codes: Codes) -> None:
    qa, qb, qy = a.type.quant, b.type.quant, y.type.quant
    assert qa is not None and qb is not None and qy is not None  # noqa: PT018
    scale, operands = float(mul_scale(qa, qb, qy)), {"a": a, "b": b, "out": y}
    if y.type.dtype.bits == 8 and product_half(node, qa, qb, qy):
        ctx.emit("mul_s8u", operands, UnsignedProduct(codes, scale, _HALF))
    else:
        ctx.emit(f"mul_{y.type.dtype.value}", operands, Product(codes, scale))


def _interpret_add(a: Arrays, p: SumOfCodes) -> None:
    codes, loops = p.codes, p.codes.loops
    qa, qb = one_quant(p.a_scale, codes.a_zp), one_quant(p.b_scale, codes.b_zp)
    qy, bounds = one_quant(p.out_scale, codes.out.out_zp), (codes.out.out_min, codes.out.out_max)
    left, right = loops.view(a["a"], loops.a), loops.view(a["b"], loops.b)
    y = add_codes(left, right, qa, qb, qy, *bounds, 1 if p.sign == "+" else -1)
    a["out"].reshape(-1)[: y.size] = y.reshape(-1)


def _interpret_fused(a: Arrays, p: FusedSum) -> None:
    loops, terms = p.loops, (F32(p.a_ratio), F32(p.b_ratio), F32(p.fixed))
    left, right = loops.view(a["a"], loops.a), loops.view(a["b"], loops.b)
    y = fused_sum(left, right, terms, p.half, p.out_min, p.out_max)
    a["out"].reshape(-1)[: y.size] = y.reshape(-1)


def _interpret_shift(a: Arrays, p: ShiftSum) -> None:
    left, right = p.centred(a)
    y = kernel_codes(left + right if p.sign == "+" else left - right, a, p.end)
    a["out"].reshape(-1)[: y.size] = y.reshape(-1)


def _interpret_mul(a: Arrays, p: Product) -> None:
    left, right = p.codes.centred(a)
    y = scaled_product(left * right, F32(p.scale), *p.codes.out.bounds)
    a["out"].reshape(-1)[: y.size] = y.reshape(-1)


def _interpret_unsigned_mul(a: Arrays, p: UnsignedProduct) -> None:
    left, right = p.codes.centred(a)
    y = scaled_product(left * right, F32(p.scale), *p.codes.out.bounds, p.half)
    a["out"].reshape(-1)[: y.size] = y.reshape(-1)


_OPERANDS = ("in a", "in b", "out out")
KERNELS = (
    KernelDef("add_s8f", _OPERANDS, FusedSum, _interpret_fused, in_place=("a", "b"), length="d0", kind="s8",
              doc="quantized sum by fused multiply-add"),
    KernelDef("add_s8rs", ("in a", "in b", "in mul:s32", "in offset:s64", "out out"),
              ShiftSum, _interpret_shift, in_place=("a", "b"), length="d0", kind="s8",
              doc="sum or difference that ends in a multiplication and a shift"),
    *(
        KernelDef(f"add_{kind}", _OPERANDS, SumOfCodes, _interpret_add, in_place=("a", "b"), template="add_s8",
                  length="d0", kind=kind,
                  doc="quantized sum or difference")
        for kind in ("s8", "s16")
    ),
    KernelDef("mul_s8u", _OPERANDS, UnsignedProduct, _interpret_unsigned_mul, in_place=("a", "b"), template="mul_s8",
              length="d0", kind="s8",
              doc="quantized product, rounded as the uint8 codes that its codes were"),
    *(
        KernelDef(f"mul_{kind}", _OPERANDS, Product, _interpret_mul, in_place=("a", "b"), template="mul_s8",
                  length="d0", kind=kind, doc="quantized product")
        for kind in ("s8", "s16")
    ),
)  # fmt: skip
