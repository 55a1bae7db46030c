"""FixedL2Norm of int8 along the last axis and FixedRsqrt of int16: TensorFlow Lite's inverse square roots.

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

from glowc.graph.fixed_point import scaled
from glowc.graph.fixed_unary import RSQRT_BITS, Range, inverse_root, range_of, rsqrt_by, rsqrt_factor
from glowc.graph.graph import Node
from glowc.graph.types import DType, TensorType
from glowc.ops.base import LowerCtx, MaybeTypes, OpDef, OpError, Types
from glowc.ops.derived import derived
from glowc.ops.params import Along, Elements, OutCodes
from glowc.ops.strided import present
from glowc.program.kernel import Arrays, KernelDef

_OUT_BITS = 7


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


def infer(node: Node, in_types: MaybeTypes) -> Types:
    """The type of the input."""
    (x,) = present(in_types[:1])
    kind = DType.S8 if node.op == "FixedL2Norm" else DType.S16
    if x.dtype is not kind or x.quant is None or x.rank < 1:
        raise OpError(f"{node.op} of {kind.value} codes, not {x}")
    return (TensorType(x.shape, x.dtype, None, x.layout),)


def _normalized(x: np.ndarray, in_zp: int) -> np.ndarray:
    """Return the codes along axis 1 of x[outer, n, inner]."""
    centred = x.astype(np.int64) - in_zp
    mul, shift = inverse_root((centred * centred).sum(1, keepdims=True))
    return np.asarray(np.clip(scaled(centred, mul, shift + _OUT_BITS), -128, 127))


def _root_params(x: TensorType, y: TensorType) -> FixedRoot:
    if x.quant is None or y.quant is None:
        raise OpError("needs codes")
    out = range_of(y)
    mul, shift = rsqrt_factor(x.quant.scale[0], out)
    return FixedRoot(x.elements, mul, shift - RSQRT_BITS, OutCodes(out.zero_point, out.low, out.high))


def _roots(x: np.ndarray, p: FixedRoot) -> np.ndarray:
    out = Range(1.0, *p.out.bounds)
    return rsqrt_by(x.astype(np.int64), (p.mul, p.shift + RSQRT_BITS), out)


def _norm_params(x: TensorType) -> L2Norm:
    if x.quant is None:
        raise OpError("needs codes")
    n = x.shape[-1]
    return L2Norm(x.elements // n, n, 1, x.quant.zero_point[0])


def lower(node: Node, ctx: LowerCtx) -> None:
    """One kernel."""
    x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
    if node.op == "FixedL2Norm":
        ctx.emit("l2_norm_s8q31", {"in": x, "out": y}, _norm_params(x.type))
    else:
        ctx.emit("rsqrt_s16q31", {"in": x, "out": y}, _root_params(x.type, y.type))


def _interpret_norm(a: Arrays, p: L2Norm) -> None:
    p.view(a["out"])[:] = _normalized(p.view(a["in"]), p.in_zp)


def _interpret_root(a: Arrays, p: FixedRoot) -> None:
    a["out"].reshape(-1)[:] = _roots(a["in"].reshape(-1), p)


KERNELS = (
    KernelDef("l2_norm_s8q31", ("in in:s8", "out out:s8"), L2Norm, _interpret_norm, kind="s8", in_place=("in",),
              doc="rows of length one in TensorFlow Lite's fixed point"),
    KernelDef("rsqrt_s16q31", ("in in:s16", "out out:s16"), FixedRoot, _interpret_root, kind="s16", in_place=("in",),
              length="n", doc="inverse square root in TensorFlow Lite's fixed point"),
)  # fmt: skip

OPS = (
    OpDef("FixedL2Norm", infer, derived, lower,
          doc="rows of length one of codes as TensorFlow Lite computes them (internal)"),
    OpDef("FixedRsqrt", infer, derived, lower,
          doc="inverse square root of codes as TensorFlow Lite computes it (internal)"),
)  # fmt: skip
