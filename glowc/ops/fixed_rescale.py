"""FixedRescale: TensorFlow Lite's QUANTIZE of codes, LEAKY_RELU, and ABS and RELU of int16; FixedQuantize of floats.

FixedRescale: clamp((x - zx) * (sx / sy) + zy), the factor a multiplier of 31 bits and a shift; numbers below zero times
attr `alpha`, too (-1: ABS, 0: RELU). int8 to int8 is a table.
FixedQuantize: clamp(round(x / sy) + zy) in float32, half away from zero; NaN gives zy.
Source: tensorflow/lite/kernels/internal/reference/{requantize,quantize,leaky_relu}.h, restated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowc.graph.attrs import Float, Str
from glowc.graph.fixed_point import multiplier, round_away, scaled
from glowc.graph.graph import Node
from glowc.graph.numerics import F32
from glowc.graph.types import DTYPES, DType, QuantParams, TensorType
from glowc.ops.base import LowerCtx, MaybeTypes, OpDef, OpError, Types
from glowc.ops.derived import derived
from glowc.ops.integer import codes_of, result_codes, rule_of_codes
from glowc.ops.params import Elements, OutCodes
from glowc.ops.quantize import LinearParams
from glowc.ops.strided import present
from glowc.program.kernel import Arrays, KernelDef

_CODES = (DType.S8, DType.U8, DType.S16, DType.S32)


@dataclass(frozen=True, slots=True)
class FixedScale(Elements):
    """Of `rescale_q31`: both zero points, the bounds, the factor, and the one of numbers below zero."""

    in_zp: int
    out: OutCodes
    mul: int
    shift: int
    low_mul: int
    low_shift: int


def rescaled(x: np.ndarray, p: FixedScale) -> np.ndarray:
    """Return the codes of codes x."""
    centred = x.astype(np.int64) - p.in_zp
    y = np.where(centred < 0, scaled(centred, p.low_mul, p.low_shift), scaled(centred, p.mul, p.shift))
    return p.out.codes(y)


def scale_params(x: QuantParams, y: TensorType, alpha: float, n: int) -> FixedScale:
    """Return the factors from x to y; alpha is that of numbers below zero."""
    scale = codes_of(y, *_CODES).scale[0]
    mul, shift = multiplier(x.scale[0] * abs(alpha) / scale)
    low = mul if alpha >= 0 else -mul, shift
    return FixedScale(n, x.zero_point[0], result_codes(y), *multiplier(x.scale[0] / scale), *low)


def lower_rescale(node: Node, ctx: LowerCtx) -> None:
    """A table for int8, else `rescale_q31`."""
    x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
    p = scale_params(codes_of(x.type), y.type, float(F32(node.float_("alpha"))), x.type.elements)
    if (x.type.dtype, y.type.dtype) != (DType.S8, DType.S8):
        ctx.emit("rescale_q31", {"in": x, "out": y}, p)
        return
    table = ctx.const(rescaled(np.arange(-128, 128), p).astype(np.int8), f"{node.name}_lut")
    ctx.emit("lut_s8", {"in": x, "lut": table, "out": y}, Elements(x.type.elements))


def infer_quantize(node: Node, in_types: MaybeTypes) -> Types:
    """Codes of kind `dtype`."""
    (x,) = present(in_types[:1])
    dtype = DType(node.str_("dtype"))
    if x.dtype != DType.F32 or dtype not in _CODES:
        raise OpError(f"quantizes float32 to codes, not {x} to {dtype.value}")
    return (TensorType(x.shape, dtype, None, x.layout),)


def quantized_away(x: np.ndarray, scale: float, zero_point: int, dtype: DType) -> np.ndarray:
    """Return the codes of floats, half away from zero."""
    with np.errstate(all="ignore"):
        ratio = np.nan_to_num(round_away(x.astype(F32) / F32(scale)), nan=0.0, posinf=3e38, neginf=-3e38)
    shifted = ratio.astype(np.float64) + zero_point
    return np.asarray(np.clip(shifted, dtype.qmin, dtype.qmax).astype(dtype.numpy))


def lower_quantize(node: Node, ctx: LowerCtx) -> None:
    """One `quantize_away`."""
    x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
    quant = codes_of(y.type)
    params = LinearParams(x.type.elements, quant.zero_point[0], quant.scale[0])
    ctx.emit("quantize_away", {"in": x, "out": y}, params)


def _interpret(a: Arrays, p: FixedScale) -> None:
    a["out"].reshape(-1)[:] = rescaled(a["in"].reshape(-1), p)


def _interpret_quantize(a: Arrays, p: LinearParams) -> None:
    kind = DType(f"{'u' if a['out'].dtype.kind == 'u' else 's'}{8 * a['out'].itemsize}")
    a["out"].reshape(-1)[:] = quantized_away(a["in"].reshape(-1), p.scale, p.zp, kind)


KERNELS = (
    KernelDef("rescale_q31", ("in in", "out out"), FixedScale, _interpret, kind="s8|u8|s16|s32", in_place=("in",),
              length="n", doc="codes of another quantization in TensorFlow Lite's fixed point"),
    KernelDef("quantize_away", ("in in:f32", "out out"), LinearParams, _interpret_quantize, needs_math=True,
              kind="s8|u8|s16|s32", in_place=("in",), length="n",
              doc="saturate(round(x / scale) + zp), half away from zero"),
)  # fmt: skip

OPS = (
    OpDef("FixedRescale", rule_of_codes(*_CODES), derived, lower_rescale,
          {"alpha": Float(1.0), "dtype": Str("", words=DTYPES)},
          doc="codes of another quantization as TensorFlow Lite computes them (internal)"),
    OpDef("FixedQuantize", infer_quantize, derived, lower_quantize, {"dtype": Str("", words=DTYPES)},
          doc="float to codes, half away from zero (internal)"),
)  # fmt: skip
