"""LayerNormalization and RMSNormalization over the axes from attr `axis` on: float, and codes to codes.

Float: mean and variance in two passes over a row, in index order;
y = ((x - mean) / sqrt(var + epsilon)) * scale + bias. onnxruntime takes the variance as mean(x^2) - mean^2, hence a
relative tolerance of 1e-5 of the largest magnitude.

Codes (int8, int16), for a row of n, every sum exact:
    s1 = sum(q - zx), 0 without a mean        s2 = sum((q - zx)^2)        v = n * s2 - s1^2 (int64)
    r = 1 / sqrt(float32(v) + e)    with e = float32(epsilon * n^2 / sx^2); 0 when the root is 0
    y = rne((float32(n * (q - zx) - s1) * r) * gain + shift) + zy    with gain = float32(scale / sy), shift = bias / sy
each operation in float32 in that order; division and square root are correctly rounded on every machine, so the
bytes are equal everywhere. onnxruntime computes this operator in float between the codes; over random data both
differ in fewer than 1 of 10,000 codes, by one step (tests/ops/test_layer_norm.py measures it).
Source: ONNX LayerNormalization-17, RMSNormalization-23.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from glowc.graph.attrs import Float, Int
from glowc.graph.graph import Node
from glowc.graph.numerics import F32, round_clamp
from glowc.graph.types import DType, QuantParams, TensorType
from glowc.ops.base import LowerCtx, MaybeTypes, OpDef, OpError, Ref, Types
from glowc.ops.derived import derived
from glowc.ops.strided import axis_of, present
from glowc.program.kernel import Arrays, KernelDef, Outer
from glowc.program.params import Params, Printed

CODES = (DType.S8, DType.S16)
LONGEST = 16_383
"""The longest row whose n * (q - zx) - s1 fits int32 for 16-bit codes."""


@dataclass(frozen=True, slots=True)
class LayerNormFloat(Params):
    """Of the float kernels: rows of n; `centre`: less their mean; `biased`: there is a bias."""

    rows: int
    n: int
    epsilon: float
    centre: Printed
    biased: Printed


@dataclass(frozen=True, slots=True)
class LayerNormCodes(Params):
    """Of the kernels on codes; `e` is that of the integer formula."""

    rows: int
    n: int
    in_zp: int
    out_zp: int
    e: float
    centre: Printed


def row_length(node: Node, shape: tuple[int, ...]) -> int:
    """Return the number of elements that are normalised together."""
    return math.prod(shape[axis_of(node.int_("axis"), len(shape)) :])


def infer(node: Node, in_types: MaybeTypes) -> Types:
    """Type of x; scale and bias are float and broadcast to a row; the mean and the inverse deviation are float32."""
    x, scale = present(in_types[:2])
    axis = axis_of(node.int_("axis"), x.rank)
    bias = in_types[2] if len(in_types) > 2 else None
    if x.dtype not in (DType.F32, DType.F64, DType.S8, DType.S16, DType.U8, DType.U16) or x.rank == 0:
        raise OpError(f"normalizes {x}")
    for part, name in ((scale, "scale"), (bias, "bias")):
        if part is None:
            continue
        if not part.dtype.is_float:
            raise OpError(f"{name} {part} is not float")
        padded = (1,) * (x.rank - part.rank) + part.shape
        row = (1,) * axis + x.shape[axis:]
        if len(padded) != x.rank or any(d not in (1, n) for d, n in zip(padded, row, strict=True)):
            raise OpError(f"{name} {part} does not broadcast to the normalized axes {list(x.shape[axis:])}")
    stats = TensorType((*x.shape[:axis], *(1,) * (x.rank - axis)), DType.F32)
    return (TensorType(x.shape, x.dtype, None, x.layout), stats, stats)[: max(len(node.outputs), 1)]


def row_of(part: np.ndarray, node: Node, shape: tuple[int, ...]) -> np.ndarray:
    """Return scale or bias as one flat row."""
    axis = axis_of(node.int_("axis"), len(shape))
    trailing = shape[axis:]
    padded = part.reshape((1,) * (len(shape) - part.ndim) + part.shape).reshape(part.shape[-len(trailing) :] or (1,))
    return np.ascontiguousarray(np.broadcast_to(padded, trailing)).reshape(-1)


def normalised(
    x: np.ndarray, scale: np.ndarray, bias: np.ndarray | None, epsilon: float, *, centre: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows x[rows, n] normalised in their own float type, the means and the inverse deviations."""
    kind = x.dtype.type
    mean = x.mean(1, keepdims=True, dtype=x.dtype) if centre else np.zeros((len(x), 1), x.dtype)
    apart = x - mean
    deviation = np.sqrt((apart * apart).mean(1, keepdims=True, dtype=x.dtype) + kind(F32(epsilon)))
    y = apart / deviation * scale.astype(x.dtype)
    return (y if bias is None else y + bias.astype(x.dtype)), mean, kind(1) / deviation


def folded(
    scale: np.ndarray, bias: np.ndarray | None, epsilon: float, n: int, qx: QuantParams, qy: QuantParams
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return gain, shift and e of the integer formula, each computed in float64 and rounded once."""
    (sx, _), (sy, _) = qx.scalar, qy.scalar
    gain = (scale.astype(np.float64) / float(sy)).astype(F32)
    shift = np.zeros(n, F32) if bias is None else (bias.astype(np.float64) / float(sy)).astype(F32)
    with np.errstate(over="ignore"):
        return gain, shift, float(F32(float(F32(epsilon)) * n * n / float(sx) ** 2))


def on_codes(
    x: np.ndarray, gain: np.ndarray, shift: np.ndarray, e: float, in_zp: int, out_zp: int, dtype: DType, *, centre: bool
) -> np.ndarray:
    """Return rows x[rows, n] of codes normalised by the integer formula."""
    q = x.astype(np.int64) - in_zp
    n = q.shape[1]
    s1 = q.sum(1, keepdims=True) if centre else np.zeros((len(q), 1), np.int64)
    root = np.sqrt((n * (q * q).sum(1, keepdims=True) - s1 * s1).astype(F32) + F32(e))
    r = np.divide(F32(1), root, out=np.zeros_like(root), where=root > 0)
    value = ((n * q - s1).astype(F32) * r) * gain + shift
    return round_clamp(value, out_zp, dtype.qmin, dtype.qmax)


def lower(node: Node, ctx: LowerCtx) -> None:
    """Emit layer_norm_<kind>, or layer_norm_stats_<kind> when the mean or the inverse deviation is read."""
    x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
    n, epsilon, centre = row_length(node, x.type.shape), node.float_("epsilon"), node.op == "LayerNormalization"
    rows = x.type.elements // max(n, 1)
    bias = node.inputs[2] if len(node.inputs) > 2 else ""
    qx, qy = x.type.quant, y.type.quant
    if x.type.dtype.is_float and qy is None:
        operands = {"in": x, "scale": _row(ctx, node, node.inputs[1], n), "out": y}
        operands["bias"] = _row(ctx, node, bias, n) if bias else operands["scale"]
        stats = [ctx.write(name) if name else None for name in node.outputs[1:]]
        params = LayerNormFloat(rows, n, epsilon, int(centre), int(bool(bias)))
        if any(ref is not None for ref in stats):
            for role, ref, index in zip(("mean", "inverse"), (*stats, None)[:2], (1, 2), strict=True):
                operands[role] = ref or ctx.temp(_stats_type(x.type, node), f"{node.name}_stat{index}")
        ctx.emit(f"layer_norm_{'stats_' if 'mean' in operands else ''}{x.type.dtype.value}", operands, params)
        return
    scale, shift_array = ctx.const_value(node.inputs[1]), ctx.const_value(bias) if bias else None
    if qx is None or qy is None or scale is None or (bias and shift_array is None) or any(node.outputs[1:]):
        raise OpError("an integer normalization takes quantized input and output, constant scale and bias, one output")
    if x.type.dtype not in CODES or n > LONGEST:
        raise OpError(f"an integer normalization takes rows of at most {LONGEST} int8 or int16 codes, not {n}")
    shape = x.type.shape
    row = None if shift_array is None else row_of(shift_array, node, shape)
    gain, shift, e = folded(row_of(scale, node, shape), row, epsilon, n, qx, qy)
    operands = {
        "in": x, "out": y,
        "gain": ctx.const(gain, f"{node.name}_gain"), "shift": ctx.const(shift, f"{node.name}_shift"),
    }  # fmt: skip
    codes = LayerNormCodes(rows, n, qx.zero_point[0], qy.zero_point[0], e, int(centre))
    ctx.emit(f"layer_norm_{x.type.dtype.value}", operands, codes)


def _stats_type(x: TensorType, node: Node) -> TensorType:
    axis = axis_of(node.int_("axis"), x.rank)
    return TensorType((*x.shape[:axis], *(1,) * (x.rank - axis)), DType.F32)


def _row(ctx: LowerCtx, node: Node, name: str, n: int) -> Ref:
    """Return scale or bias as an operand of n elements: a constant is broadcast, anything else has them."""
    array, shape = ctx.const_value(name), ctx.type(node.inputs[0]).shape
    if array is not None:
        return ctx.const(row_of(array, node, shape), f"{node.name}_{name}" if array.size != n else name)
    ref = ctx.read(name)
    if ref.type.elements != n:
        raise OpError(f"{ref.type} is computed at run time and must have {n} elements")
    return ref


def _interpret_float(a: Arrays, p: LayerNormFloat) -> None:
    x = a["in"].reshape(p.rows, p.n)
    bias = a["bias"].reshape(-1) if p.biased else None
    y, mean, inverse = normalised(x, a["scale"].reshape(-1), bias, p.epsilon, centre=bool(p.centre))
    a["out"].reshape(x.shape)[:] = y
    if "mean" in a:
        a["mean"].reshape(-1)[:] = mean.reshape(-1)
        a["inverse"].reshape(-1)[:] = inverse.reshape(-1)


def _interpret_codes(a: Arrays, p: LayerNormCodes) -> None:
    x = a["in"].reshape(p.rows, p.n)
    dtype = DType.S8 if x.itemsize == 1 else DType.S16
    y = on_codes(x, a["gain"], a["shift"], p.e, p.in_zp, p.out_zp, dtype, centre=bool(p.centre))
    a["out"].reshape(x.shape)[:] = y


_CODED = ("in in", "in gain:f32", "in shift:f32", "out out")
_FLOAT = ("in in", "in scale", "in bias", "out out")
_ROWS = (Outer("rows", dict.fromkeys(("in", "out"), ("n",))),)
KERNELS = (
    *(
        KernelDef(f"layer_norm_{t.value}", _CODED, LayerNormCodes, _interpret_codes, in_place=("in",),
                  template="layer_norm_s8", needs_math=True, kind=t.value, outer=_ROWS, doc="normalized rows of codes")
        for t in CODES
    ),
    *(
        KernelDef(f"layer_norm_{t.value}", _FLOAT, LayerNormFloat, _interpret_float, in_place=("in",),
                  template="layer_norm_f32", needs_math=True, kind=t.value, outer=_ROWS, doc="normalized rows")
        for t in (DType.F32, DType.F64)
    ),
    *(
        KernelDef(f"layer_norm_stats_{t.value}", (*_FLOAT, "out mean:f32", "out inverse:f32"), LayerNormFloat,
                  _interpret_float, kind=t.value, in_place=("in",), needs_math=True,
                  template="layer_norm_f32", doc="normalized rows, means, inverse deviations")
        for t in (DType.F32, DType.F64)
    ),
)  # fmt: skip

_ATTRS = {"axis": Int(-1), "epsilon": Float(1e-5), "stash_type": Int(1)}
OPS = (
    OpDef("LayerNormalization", infer, derived, lower, attrs=_ATTRS, max_version=17, int8=True,
          doc="rows with mean 0 and variance 1, times scale plus bias"),
    OpDef("RMSNormalization", infer, derived, lower, attrs=_ATTRS, max_version=23, int8=True,
          doc="rows with mean square 1, times scale"),
)  # fmt: skip
