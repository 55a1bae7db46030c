"""FixedMatMul: TensorFlow Lite's BATCH_MATMUL of codes: y = clamp(sum (a - za) (b - zb) sa sb / sy + zy).

int8 sums in 32 bits and scales with a multiplier of 31 bits, int16 in 64 bits with one of 16 (`scaled_wide`), also
by an int8 right operand of zero point 0. Factors of 1/2 and more are float32 scales where these give the same codes
(glowc/ops/same_scale.py).
Attributes perm_a and perm_b permute the operands' axes, as in MatMul. Evidence: seeded cases, 0 differ.
Source: tensorflow/lite/kernels/internal/reference/batch_matmul.h, restated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowc.graph.attrs import IntList
from glowc.graph.fixed_point import multiplier, scaled, scaled_wide
from glowc.graph.graph import Node
from glowc.graph.types import DType
from glowc.kernels.shapes import MatMul
from glowc.ops.base import LowerCtx, MaybeTypes, OpDef, OpError, Types
from glowc.ops.derived import derived
from glowc.ops.integer import FixedEnding, codes_of, result_codes
from glowc.ops.matmul import MatMulCodes, infer_matmul, matmul_params, products
from glowc.ops.params import OutCodes
from glowc.ops.same_scale import same_scale
from glowc.ops.strided import present
from glowc.program.kernel import Arrays, KernelDef
from glowc.program.params import Params

_KERNELS = {
    (DType.S8, DType.S8): "matmul_s8q31", (DType.S16, DType.S16): "matmul_s16q15",
    (DType.S16, DType.S8): "matmul_s16s8q15",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class FixedProducts(Params):
    """Of `matmul_s8q31`, `matmul_s16q15` and `matmul_s16s8q15`: zero points, factor and codes of the result."""

    shape: MatMul
    a_zp: int
    b_zp: int
    out: OutCodes
    mul: int
    shift: int


def infer(node: Node, in_types: MaybeTypes) -> Types:
    """The shape of the product."""
    a, b = present(in_types[:2])
    if (a.dtype, b.dtype) not in _KERNELS or any(codes_of(t).per_axis for t in (a, b)):
        raise OpError(f"product of {a} and {b}: needs int8 or int16 codes of one kind, or int16 and int8")
    return infer_matmul(node, in_types)


def lower(node: Node, ctx: LowerCtx) -> None:
    """One `matmul_*`."""
    a, b, y = ctx.read(node.inputs[0]), ctx.read(node.inputs[1]), ctx.write(node.outputs[0])
    qa, qb, qy = (codes_of(ref.type) for ref in (a, b, y))
    factor = multiplier(qa.scale[0] * qb.scale[0] / qy.scale[0])
    shape = matmul_params(node, a.type.shape, b.type.shape)
    zeros, out, macs = (qa.zero_point[0], qb.zero_point[0]), result_codes(y.type), y.type.elements * shape.k
    operands, kernel = {"a": a, "b": b, "out": y}, _KERNELS[a.type.dtype, b.type.dtype]
    scale = _steep_scale(shape.k, zeros, out, factor) if kernel == _KERNELS[DType.S8, DType.S8] else None
    if scale is None:
        ctx.emit(kernel, operands, FixedProducts(shape, *zeros, out, *factor), macs=macs)
    else:
        ctx.emit("matmul_s8", operands, MatMulCodes(shape, *zeros, out, scale), macs=macs)


def _steep_scale(k: int, zeros: tuple[int, int], out: OutCodes, factor: tuple[int, int]) -> float | None:
    """Return a float32 scale that gives every sum of `k` products its code; None where the shift is to the right."""
    if factor[1] < 0:
        return None
    ends = [np.array((-128, 127)) - zero for zero in zeros]
    products = np.multiply.outer(*ends).astype(np.int64)
    low, high = k * products.min(keepdims=True).reshape(1), k * products.max(keepdims=True).reshape(1)
    ending = FixedEnding(np.array(factor[:1], np.int64), np.array(factor[1:], np.int64))
    found = same_scale(ending, low, high, out)
    return None if found is None else float(found.scale[0])


def _interpret(a: Arrays, p: FixedProducts) -> None:
    scale = scaled_wide if a["a"].itemsize == 2 else scaled
    for x, y, to in products(a, p.shape):
        acc = (x.astype(np.int64) - p.a_zp) @ (y.astype(np.int64) - p.b_zp)
        a["out"].reshape(-1)[to] = p.out.codes(scale(acc, p.mul, p.shift))


KERNELS = tuple(
    KernelDef(name, ("in a", f"in b:{b.value}", "out out"), FixedProducts, _interpret, template="matmul_q31",
              kind=a.value, doc="matrix product in TensorFlow Lite's fixed point")
    for (a, b), name in _KERNELS.items()
)  # fmt: skip

OP = OpDef("FixedMatMul", infer, derived, lower,
           {"perm_a": IntList(optional=True), "perm_b": IntList(optional=True), "perm_y": IntList(optional=True)},
           doc="matrix product of codes as TensorFlow Lite computes it (internal)")  # fmt: skip
