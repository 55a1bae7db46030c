"""MatMulInteger: s32 product of 8-bit codes whose zero points come as inputs; and its dynamic fusion.

y = sum (a - za) * (b - zb), za one number or one per row, zb one number or one per column. Batched as MatMul.
FullyConnectedDynamic is what a DynamicQuantizeLinear model computes around it:
y = float32(sum (x - zx) * (w - zw[o])) * (sx * sw[o]) + bias[o], clamped; the roundings are those of the single
operators Cast, Mul and Add. Sources: ONNX MatMulInteger-10, onnxruntime's DynamicQuantizeMatMul.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowc.graph.graph import Node
from glowc.graph.numerics import F32
from glowc.graph.types import DType, TensorType
from glowc.kernels.shapes import FullyConnectedRows
from glowc.ops.base import CLAMP, LowerCtx, MaybeTypes, OpDef, OpError, Ref, Types, clamp_of
from glowc.ops.derived import derived
from glowc.ops.matmul import infer_matmul
from glowc.ops.params import Clamp, Pairs, padded_dims, padded_steps
from glowc.ops.strided import broadcast_strides, collapse, present
from glowc.program.kernel import Arrays, KernelDef
from glowc.program.params import Params

BYTES = (DType.S8, DType.U8)
LONGEST_SUM = (2**31 - 1) // (255 * 255)


@dataclass(frozen=True, slots=True)
class MatMulIntegerParams(Params):
    """Of `matmul_integer`: the loops over products of [m, k] and [k, n]; a step 0: one zero point for all."""

    loops: Pairs
    m: int
    k: int
    n: int
    a_zp_step: int
    b_zp_step: int


@dataclass(frozen=True, slots=True)
class FcDynamic(Params):
    """Of `fc_dynamic`."""

    shape: FullyConnectedRows
    clamp: Clamp


def infer(node: Node, in_types: MaybeTypes) -> Types:
    a, b = present(in_types[:2])
    if a.dtype not in BYTES or b.dtype not in BYTES:
        raise OpError(f"product of {a} and {b}: needs int8 or uint8")
    (product,) = infer_matmul(node, in_types[:2])
    left, right = _matrices(a.shape, b.shape)
    for what, point, of, count in (("a", _get(in_types, 2), a, left[-2]), ("b", _get(in_types, 3), b, right[-1])):
        if point is not None and (point.dtype != of.dtype or point.elements not in (1, count)):
            raise OpError(f"zero point {point} of {what}, {of}")
    if left[-1] > LONGEST_SUM:
        raise OpError(f"sums of {left[-1]} products may leave int32")
    return (TensorType(product.shape, DType.S32),)


def _get(types: MaybeTypes, index: int) -> TensorType | None:
    return types[index] if index < len(types) else None


def _matrices(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return (1, *a) if len(a) == 1 else a, (*b, 1) if len(b) == 1 else b


def lower(node: Node, ctx: LowerCtx) -> None:
    """One `matmul_integer`."""
    a, b, y = ctx.read(node.inputs[0]), ctx.read(node.inputs[1]), ctx.write(node.outputs[0])
    left, right = _matrices(a.type.shape, b.type.shape)
    m, k, n = left[-2], left[-1], right[-1]
    lead = np.broadcast_shapes(left[:-2], right[:-2])
    dims, (sa, sb) = collapse(lead, broadcast_strides(left[:-2], lead), broadcast_strides(right[:-2], lead))
    points = [_point(node, ctx, i, ref) for i, ref in ((2, a), (3, b))]
    loops = Pairs(
        len(dims), padded_dims(dims), padded_steps([s * m * k for s in sa]), padded_steps([s * k * n for s in sb])
    )
    params = MatMulIntegerParams(
        loops, m, k, n, int(points[0].type.elements > 1), int(points[1].type.elements > 1),
    )  # fmt: skip
    operands = {"a": a, "b": b, "a_zp": points[0], "b_zp": points[1], "out": y}
    ctx.emit("matmul_integer", operands, params, macs=y.type.elements * k)


def _point(node: Node, ctx: LowerCtx, index: int, of: Ref) -> Ref:
    name = node.inputs[index] if index < len(node.inputs) else ""
    return ctx.read(name) if name else ctx.const(np.zeros(1, of.type.dtype.numpy), f"{node.name}_zero")


def _interpret(a: Arrays, p: MatMulIntegerParams) -> None:
    m, k, n, loops = p.m, p.k, p.n, p.loops
    starts = loops.view(np.arange(a["a"].size), loops.a), loops.view(np.arange(a["b"].size), loops.b)
    za = a["a_zp"].astype(np.float64).reshape(-1, 1)
    zb = a["b_zp"].astype(np.float64).reshape(1, -1)
    out = a["out"].reshape(-1, m, n)
    for i, (at_a, at_b) in enumerate(zip(*(s.reshape(-1) for s in starts), strict=True)):
        x = a["a"].reshape(-1)[at_a : at_a + m * k].reshape(m, k)
        y = a["b"].reshape(-1)[at_b : at_b + k * n].reshape(k, n)
        out[i] = (x.astype(np.float64) - za) @ (y.astype(np.float64) - zb)


def infer_dynamic(node: Node, in_types: MaybeTypes) -> Types:
    """x codes [..., K], scale, zero point, W [O, K] s8, scales [O], zero points [O] s32, bias [O] -> f32."""
    x, scale, zero, w, w_scale, w_zero, bias = present(in_types[:7])
    if x.dtype not in BYTES or w.dtype is not DType.S8 or zero.dtype != x.dtype or scale.elements != 1:
        raise OpError(f"codes {x} with scale {scale} and zero point {zero}, weights {w}")
    if w.rank != 2 or x.rank < 1 or x.shape[-1] != w.shape[1] or w.shape[1] > LONGEST_SUM:
        raise OpError(f"inner dimensions do not match: input {x}, weights {w} (outputs, inputs)")
    if any(t.shape != (w.shape[0],) for t in (w_scale, w_zero, bias)):
        raise OpError(f"scales {w_scale}, zero points {w_zero}, bias {bias} but {w.shape[0]} outputs")
    return (TensorType((*x.shape[:-1], w.shape[0]), DType.F32),)


def dynamic_product(
    x: np.ndarray, scale: F32, zero: int, w: np.ndarray, w_scale: np.ndarray, w_zero: np.ndarray, bias: np.ndarray
) -> np.ndarray:
    """Return float32(sum) * (scale * w_scale) + bias for x[rows, K]."""
    acc = (x.astype(np.float64) - zero) @ (w.astype(np.float64) - w_zero.reshape(-1, 1)).T
    scales = (scale * w_scale).astype(F32)
    return np.asarray(acc.astype(F32) * scales + bias, F32)


_ROLES = ("in", "in_scale", "in_zp", "weights", "scale", "w_zp", "bias")


def lower_dynamic(node: Node, ctx: LowerCtx) -> None:
    """One `fc_dynamic`."""
    operands = {role: ctx.read(name) for role, name in zip(_ROLES, node.inputs, strict=True)}
    operands["out"] = y = ctx.write(node.outputs[0])
    n, k = operands["weights"].type.shape
    params = FcDynamic(FullyConnectedRows(y.type.elements // n, k, n), Clamp(*clamp_of(node)))
    ctx.emit("fc_dynamic", operands, params, macs=y.type.elements * k)


def _interpret_dynamic(a: Arrays, p: FcDynamic) -> None:
    rows, k, n = p.shape.rows, p.shape.in_k, p.shape.out_n
    point = int(a["in_zp"].reshape(-1)[0])
    scale = F32(a["in_scale"].reshape(-1)[0])
    shaped = a["in"].reshape(rows, k), scale, point, a["weights"].reshape(n, k), a["scale"], a["w_zp"], a["bias"]
    a["out"].reshape(rows, n)[:] = np.clip(dynamic_product(*shaped), F32(p.clamp.act_min), F32(p.clamp.act_max))


_DYNAMIC = (
    "in in:s8|u8", "in in_scale", "in in_zp:s8|u8", "in weights:s8", "in scale", "in w_zp:s32", "in bias", "out out",
)  # fmt: skip
KERNELS = (
    KernelDef("matmul_integer", ("in a", "in b", "in a_zp", "in b_zp", "out out:s32"),
              MatMulIntegerParams, _interpret, kind="s8|u8",
              doc="s32 product of codes with zero points given at run time"),
    KernelDef("fc_dynamic", _DYNAMIC, FcDynamic, _interpret_dynamic, needs_math=True, kind="f32",
              doc="float product of dynamically quantized rows and int8 weights"),
)  # fmt: skip

OPS = (
    OpDef("MatMulInteger", infer, derived, lower, max_version=10, doc="s32 product of 8-bit codes"),
    OpDef("FullyConnectedDynamic", infer_dynamic, derived, lower_dynamic,
          attrs=CLAMP, doc="dynamically quantized layer with int8 weights"),
)  # fmt: skip
