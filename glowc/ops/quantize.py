"""QuantizeLinear, DequantizeLinear, Requantize, FlipSign: between real numbers and codes.

quantise: saturate(rne(float32(x) / s) + z), NaN gives the lowest code, as in onnxruntime; dequantise:
float32(q - z) * s; requantise: the second and then the first. All in float32, per tensor or per axis (Requantize
per tensor). int8 to int8 is a table.
FlipSign: q ^ 0x80 (0x8000), the bijection between u8 (u16) with zero point z and s8 (s16) with z - 128
(z - 32768). Source: ONNX QuantizeLinear-28, DequantizeLinear-28 without blocks.

Lut: any function of one int8 tensor as a table of its 256 results, made by pass fuse-lut; y = table[x + 128].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from glowc.graph.attrs import Int, Str
from glowc.graph.graph import Node
from glowc.graph.numerics import dequantize, lut_s8, quantize
from glowc.graph.types import DTYPES, DType, QuantParams, TensorType
from glowc.ops.base import LowerCtx, MaybeTypes, OpDef, OpError, Ref, Types
from glowc.ops.derived import derived
from glowc.ops.params import Channels, Elements, one_quant
from glowc.ops.strided import present
from glowc.program.kernel import Arrays, KernelDef


def infer_lut(node: Node, in_types: MaybeTypes) -> Types:
    """Type of x; the table has 256 int8 codes."""
    x, table = present(in_types[:2])
    if x.dtype != DType.S8 or table.shape != (256,) or table.dtype != DType.S8:
        raise OpError(f"table {table} for {x}")
    return (TensorType(x.shape, DType.S8, None, x.layout),)


def lower_lut(node: Node, ctx: LowerCtx) -> None:
    """Emit lut_s8."""
    x, table, y = ctx.read(node.inputs[0]), ctx.read(node.inputs[1]), ctx.write(node.outputs[0])
    ctx.emit("lut_s8", {"in": x, "lut": table, "out": y}, Elements(x.type.elements))


CODES = (DType.S8, DType.U8, DType.S16, DType.U16, DType.S32)
FLIPPED = {DType.U8: DType.S8, DType.S8: DType.U8, DType.U16: DType.S16, DType.S16: DType.U16}
_ONNX = {3: DType.S8, 2: DType.U8, 5: DType.S16, 4: DType.U16, 6: DType.S32}  # TensorProto.DataType


@dataclass(frozen=True, slots=True)
class LinearParams(Elements):
    """Of `quantize` and `dequantize`: one zero point and scale."""

    zp: int
    scale: float


@dataclass(frozen=True, slots=True)
class RequantizeParams(Elements):
    """Of `requantize`: zero point and scale of both sides."""

    in_zp: int
    out_zp: int
    in_scale: float
    out_scale: float


def emit_lut(ctx: LowerCtx, x: Ref, y: Ref, function: Callable[[float], float], name: str) -> None:
    """Emit a unary int8 function as a table of 256 codes."""
    assert x.type.quant is not None
    assert y.type.quant is not None
    table = ctx.const(lut_s8(function, x.type.quant, y.type.quant), f"{name}_lut")
    ctx.emit("lut_s8", {"in": x, "lut": table, "out": y}, Elements(x.type.elements))


def emit_requantize(ctx: LowerCtx, x: Ref, out: TensorType, name: str, dst: Ref | None = None) -> Ref:
    """Emit the change of `x` to the quantisation of `out`, into `dst` or a temporary; returns the result."""
    y = dst or ctx.temp(TensorType(x.type.shape, out.dtype, out.quant), name)
    if x.type.dtype == DType.S8 and y.type.dtype == DType.S8:
        emit_lut(ctx, x, y, lambda v: v, name)
        return y
    (in_scale, in_zp), (out_scale, out_zp) = _scalar(x.type), _scalar(y.type)
    params = RequantizeParams(x.type.elements, in_zp, out_zp, in_scale, out_scale)
    ctx.emit("requantize", {"in": x, "out": y}, params)
    return y


def _scalar(t: TensorType) -> tuple[float, int]:
    if t.quant is None or t.quant.per_axis:
        raise OpError(f"needs one scale and zero point: {t}")
    return float(t.quant.scale[0]), t.quant.zero_point[0]


def infer_quantize(node: Node, in_types: MaybeTypes) -> Types:
    """Element kind from attr `dtype` (or ONNX's output_dtype), u8 by default."""
    (x,) = present(in_types[:1])
    if not x.dtype.is_float:
        raise OpError(f"quantizes floats, not {x}")
    number = node.int_("output_dtype")
    dtype = DType(node.str_("dtype") or _ONNX.get(number, DType.U8).value)
    if dtype not in CODES or (number and number not in _ONNX):
        raise OpError(f"cannot quantize to {dtype.value} (output_dtype {number})")
    return (TensorType(x.shape, dtype, None, x.layout),)


def lower_quantize(node: Node, ctx: LowerCtx) -> None:
    x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
    _emit_linear(ctx, "quantize", x, y, y.type)


def infer_dequantize(_: Node, in_types: MaybeTypes) -> Types:
    (x,) = present(in_types[:1])
    if x.dtype not in CODES:
        raise OpError(f"dequantizes integers, not {x}")
    return (TensorType(x.shape, DType.F32, None, x.layout),)


def lower_dequantize(node: Node, ctx: LowerCtx) -> None:
    x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
    _emit_linear(ctx, "dequantize", x, y, x.type)


def _emit_linear(ctx: LowerCtx, kernel: str, x: Ref, y: Ref, coded: TensorType) -> None:
    """Emit (de)quantize, or its per-axis form with [outer, channels, inner] and constant scales."""
    q = coded.quant
    if q is None:
        raise OpError(f"{coded} has no quantization")
    if q.axis is None:
        ctx.emit(kernel, {"in": x, "out": y}, LinearParams(coded.elements, q.zero_point[0], q.scale[0]))
        return
    outer, inner = (int(np.prod(d, dtype=np.int64)) for d in (coded.shape[: q.axis], coded.shape[q.axis + 1 :]))
    scale = ctx.const(np.asarray(q.scale, np.float32), f"{kernel}_scale")
    zero = ctx.const(np.asarray(q.zero_point, np.int32), f"{kernel}_zp")
    dims = Channels(outer, len(q.scale), inner)
    ctx.emit(f"{kernel}_axis", {"in": x, "scale": scale, "zp": zero, "out": y}, dims)


def infer_requantize(node: Node, in_types: MaybeTypes) -> Types:
    """Element kind from attr `dtype`, the input's by default."""
    (x,) = present(in_types[:1])
    dtype = DType(node.str_("dtype") or x.dtype.value)
    if x.dtype not in CODES or dtype not in CODES:
        raise OpError(f"requantizes integers, not {x} to {dtype.value}")
    return (TensorType(x.shape, dtype, None, x.layout),)


def lower_requantize(node: Node, ctx: LowerCtx) -> None:
    x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
    emit_requantize(ctx, x, y.type, node.name, y)


def infer_flip(_: Node, in_types: MaybeTypes) -> Types:
    (x,) = present(in_types[:1])
    if x.dtype not in FLIPPED:
        raise OpError(f"flips s8, u8, s16 and u16, not {x}")
    return (TensorType(x.shape, FLIPPED[x.dtype], None, x.layout),)


def flip_sign(x: np.ndarray) -> np.ndarray:
    """Return x ^ sign bit in the kind of the other signedness."""
    unsigned = x.view(f"u{x.itemsize}") ^ (1 << (8 * x.itemsize - 1))
    return np.asarray(unsigned.view(f"{'u' if x.dtype.kind == 'i' else 'i'}{x.itemsize}"))


def lower_flip(node: Node, ctx: LowerCtx) -> None:
    x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
    ctx.emit("flip_sign", {"in": x, "out": y}, Elements(x.type.elements))


def _interpret_lut(a: Arrays, _: Elements) -> None:
    a["out"].reshape(-1)[:] = a["lut"].reshape(-1)[a["in"].reshape(-1).astype(np.int64) + 128]


def _interpret_flip(a: Arrays, _: Elements) -> None:
    a["out"].reshape(-1)[:] = flip_sign(a["in"].reshape(-1))


def _axis_quant(a: Arrays) -> QuantParams:
    return QuantParams(tuple(map(float, a["scale"])), tuple(map(int, a["zp"])), 1)


def _kind(array: np.ndarray) -> DType:
    return DType(f"{'u' if array.dtype.kind == 'u' else 's'}{8 * array.itemsize}")


def _interpret_quantize(a: Arrays, p: LinearParams) -> None:
    a["out"].reshape(-1)[:] = quantize(a["in"].reshape(-1), one_quant(p.scale, p.zp), _kind(a["out"]))


def _interpret_dequantize(a: Arrays, p: LinearParams) -> None:
    a["out"].reshape(-1)[:] = dequantize(a["in"].reshape(-1), one_quant(p.scale, p.zp))


def _interpret_requantize(a: Arrays, p: RequantizeParams) -> None:
    real = dequantize(a["in"].reshape(-1), one_quant(p.in_scale, p.in_zp))
    a["out"].reshape(-1)[:] = quantize(real, one_quant(p.out_scale, p.out_zp), _kind(a["out"]))


def _interpret_quantize_axis(a: Arrays, p: Channels) -> None:
    x = p.view(a["in"])
    a["out"].reshape(x.shape)[:] = quantize(x, _axis_quant(a), _kind(a["out"]))


def _interpret_dequantize_axis(a: Arrays, p: Channels) -> None:
    x = p.view(a["in"])
    a["out"].reshape(x.shape)[:] = dequantize(x, _axis_quant(a))


_UNARY, _CODES = ("in in", "out out"), "s8|u8|s16|u16|s32"
_QUANTIZE, _DEQUANTIZE = ("in in:f32|f64", "out out"), ("in in", "out out:f32")
_PER_AXIS = ("in scale:f32", "in zp:s32")
KERNELS = (
    KernelDef("lut_s8", ("in in", "in lut", "out out"), Elements, _interpret_lut, in_place=("in",), kind="s8",
              length="n",
              doc="out = lut[in + 128]"),
    KernelDef("flip_sign", _UNARY, Elements, _interpret_flip, in_place=("in",), kind="s8|u8|s16|u16",
              length="n", doc="x ^ sign bit"),
    KernelDef("quantize", _QUANTIZE, LinearParams, _interpret_quantize, needs_math=True, kind=_CODES, in_place=("in",),
              length="n", doc="saturate(rne(x / scale) + zp)"),
    KernelDef("dequantize", _DEQUANTIZE, LinearParams, _interpret_dequantize, kind=_CODES, in_place=("in",),
              length="n", doc="(x - zp) * scale"),
    KernelDef("quantize_axis", (_QUANTIZE[0], *_PER_AXIS, _QUANTIZE[1]), Channels, _interpret_quantize_axis,
              needs_math=True, kind=_CODES, doc="quantize with a scale and zero point per channel"),
    KernelDef("dequantize_axis", (_DEQUANTIZE[0], *_PER_AXIS, _DEQUANTIZE[1]), Channels, _interpret_dequantize_axis,
              kind=_CODES, doc="dequantize with a scale and zero point per channel"),
    KernelDef("requantize", _UNARY, RequantizeParams, _interpret_requantize, needs_math=True, kind=_CODES,
              in_place=("in",), length="n",
              doc="saturate(rne((x - in_zp) * in_scale / out_scale) + out_zp)"),
)  # fmt: skip

OPS = (
    OpDef("QuantizeLinear", infer_quantize, derived, lower_quantize, max_version=28,
          attrs={"axis": Int(1), "saturate": Int(1), "output_dtype": Int(0), "block_size": Int(0), "precision": Int(0),
                 "dtype": Str("", words=DTYPES)},
          doc="float to codes"),
    OpDef("DequantizeLinear", infer_dequantize, derived, lower_dequantize, max_version=28,
          attrs={"axis": Int(1), "block_size": Int(0), "output_dtype": Int(0)}, doc="codes to float"),
    OpDef("Requantize", infer_requantize, derived, lower_requantize,
          attrs={"dtype": Str("", words=DTYPES)}, doc="codes to codes of another quantization"),
    OpDef("FlipSign", infer_flip, derived, lower_flip, doc="u8 to s8 and back, exactly"),
    OpDef("Lut", infer_lut, derived, lower_lut, int8=True, doc="function of an int8 tensor as a table (internal)"),
)  # fmt: skip
