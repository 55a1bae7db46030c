"""FullyConnected: y[..., O] = x[..., K] @ weights[O, K].T + bias[O]; the form of Gemm and MatMul with constants.

The kernels are for one row of inputs. Several ones are the pixels of a 1x1 convolution, whose kernels read weights once
for all of them, or for some.
Integers as in Conv: int32 accumulator with the bias inside, one float32 scale per output, half to even.
Source: ONNX Gemm-13, MatMul-13, QLinearMatMul-21 and onnxruntime's QGemm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from glowc.graph.graph import Node
from glowc.graph.numerics import requantize
from glowc.graph.types import DType, TensorType
from glowc.kernels.shapes import Codes, FullyConnected
from glowc.ops.base import CLAMP, LowerCtx, MaybeTypes, OpDef, OpError, Types, clamp_of
from glowc.ops.conv import CODES, FIXED, fixed_operands, lower_windows, pixels
from glowc.ops.derived import derived
from glowc.ops.integer import (
    FLOAT_WEIGHTS,
    ROUNDING,
    CodedWeights,
    fixed,
    fold_weights,
    scales,
    weight_codes,
    without_zero_point,
)
from glowc.ops.integer_layer import emit_integer, emit_shift
from glowc.ops.params import Clamp
from glowc.ops.requant_shift import SHIFT_ATTRS, ShiftCodes, kernel_codes, shift_dtype
from glowc.program.kernel import Arrays, KernelDef
from glowc.program.params import Params


@dataclass(frozen=True, slots=True)
class FcFloat(Params):
    """Of fc_f32 and fc_f64."""

    shape: FullyConnected
    clamp: Clamp


@dataclass(frozen=True, slots=True)
class FcCoded(Params):
    """Of fc_f32w8: floats, the weights of which stay codes."""

    shape: FullyConnected
    coded: CodedWeights
    clamp: Clamp


@dataclass(frozen=True, slots=True)
class FcCodes(Params):
    """Of the kernels on codes that end in a float scale."""

    shape: FullyConnected
    codes: Codes


@dataclass(frozen=True, slots=True)
class FcShift(Params):
    """Of the kernels on codes that end in a multiplication and a shift."""

    shape: FullyConnected
    codes: ShiftCodes


def infer(node: Node, in_types: MaybeTypes) -> Types:
    x, w = in_types[0], in_types[1]
    assert x is not None
    assert w is not None
    if w.rank != 2 or x.rank < 1 or x.shape[-1] != w.shape[1]:
        raise OpError(f"inner dimensions do not match: input {x}, weights {w} (outputs, inputs)")
    bias = in_types[2] if len(in_types) > 2 else None
    if bias is not None and bias.shape != (w.shape[0],):
        raise OpError(f"bias {bias} but {w.shape[0]} outputs")
    return (TensorType((*x.shape[:-1], w.shape[0]), shift_dtype(node, x)),)


def lower(node: Node, ctx: LowerCtx) -> None:
    x, y = ctx.type(node.inputs[0]), ctx.type(node.outputs[0])
    rows, macs = math.prod(x.shape[:-1]), y.elements * x.shape[-1]
    if rows != 1:
        lower_windows(node, ctx, pixels(rows, x.shape[-1], y.shape[-1]), macs)
        return
    shape = FullyConnected(in_k=x.shape[-1], out_n=y.shape[-1])
    if x.quant is None:
        operands = {role: ctx.read(name) for role, name in zip(("in", "weights", "bias"), node.inputs, strict=True)}
        operands["out"] = ctx.write(node.outputs[0])
        clamp, quant = Clamp(*clamp_of(node)), ctx.type(node.inputs[1]).quant
        if quant is None:
            ctx.emit(f"fc_{x.dtype.value}", operands, FcFloat(shape, clamp), macs=macs)
            return
        operands["scale"], coded = weight_codes(node, ctx, quant)
        ctx.emit(f"fc_{x.dtype.value}w8", operands, FcCoded(shape, coded, clamp), macs=macs)
        return
    if "shift_div" in node.attrs:
        weights = ctx.const_value(node.inputs[1])
        emit_shift(node, ctx, f"fc_{x.dtype.value}rs", weights, lambda codes: FcShift(shape, codes), None, macs)
        return
    folded = without_zero_point(fold_weights(node, ctx, x, y), x)
    emit_integer(node, ctx, f"fc_{x.dtype.value}", folded, folded.weights, FcCodes(shape, folded.codes), None, macs)


def _shaped(a: Arrays, p: FullyConnected) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return inputs, weights as a matrix, and outputs."""
    return a["in"].reshape(-1), a["weights"].reshape(p.out_n, p.in_k), a["out"].reshape(-1)


def _centred(a: Arrays, p: FullyConnected, in_zp: int, w_zp: int) -> np.ndarray:
    """Return the sums of products of codes less their zero points."""
    x, w, _ = _shaped(a, p)
    return np.asarray((x.astype(np.float64) - in_zp) @ (w.astype(np.float64) - w_zp).T)


def _interpret_float(a: Arrays, p: FcFloat) -> None:
    x, w, out = _shaped(a, p.shape)
    out[:] = np.clip(x @ w.T + a["bias"], p.clamp.act_min, p.clamp.act_max)


def _interpret_coded(a: Arrays, p: FcCoded) -> None:
    x, w, out = _shaped(a, p.shape)
    acc = x @ (w.astype(np.float32) - p.coded.w_zp).T * scales(a, p.coded.scale_step)
    out[:] = np.clip(acc + a["bias"], p.clamp.act_min, p.clamp.act_max)


def _interpret_codes(a: Arrays, p: FcCodes) -> None:
    c, out = p.codes, _shaped(a, p.shape)[2]
    acc = _centred(a, p.shape, c.in_zp, c.w_zp) + a["bias"]
    out[:] = requantize(acc, scales(a, c.scale_step), c.out_zp, c.out_min, c.out_max)


def _interpret_fixed(a: Arrays, p: FcCodes) -> None:
    c, out = p.codes, _shaped(a, p.shape)[2]
    acc = _centred(a, p.shape, c.in_zp, c.w_zp) + a["bias"]
    out[:] = fixed(a).codes(acc, c.out_zp, c.out_min, c.out_max)


def _interpret_shift(a: Arrays, p: FcShift) -> None:
    _shaped(a, p.shape)[2][:] = kernel_codes(_centred(a, p.shape, p.codes.in_zp, p.codes.w_zp), a, p.codes.end)


KERNELS = (
    *(
        KernelDef(
            f"fc_{kind}rs", ("in in", "in weights:s8", "in mul:s32", "in offset:s64", "out out:s8|s16"),
            FcShift, _interpret_shift, template="fc_s8rs", kind=kind,
            doc="fully connected layer that ends in a multiplication and a shift",
        )
        for kind in ("s8", "s16")
    ),
    *(
        KernelDef(
            f"fc_{x}{end}", ("in in", f"in weights:{w}", "in bias:s32", "in scale:f32", "out out"), FcCodes,
            _interpret_codes, template="fc_s8", kind=x,
            doc="fully connected layer: clamp(rne((bias + sum (in - in_zp) * (weights - w_zp)) * scale) + out_zp)",
        )
        for x, w, end in CODES
    ),
    *(
        KernelDef(
            f"fc_{x}{end}", fixed_operands(bias), FcCodes, _interpret_fixed, template="fc_s8q31", kind=x,
            doc="fully connected layer that ends in TensorFlow Lite's multiplier and shift",
        )
        for x, end, bias in FIXED
    ),
    KernelDef(
        "fc_f32w8", ("in in", "in weights:s8", "in scale", "in bias", "out out"), FcCoded,
        _interpret_coded, needs_math=True, kind="f32",
        doc="float fully connected layer with int8 weights",
    ),
    *(
        KernelDef(
            f"fc_{dtype.value}", ("in in", "in weights", "in bias", "out out"), FcFloat, _interpret_float,
            template="fc_f32", needs_math=True, kind=dtype.value,
            doc="fully connected layer: clamp(bias + sum in * weights)",
        )
        for dtype in (DType.F32, DType.F64)
    ),
)  # fmt: skip

OP = OpDef(
    "FullyConnected", infer, derived, lower, attrs={**CLAMP, **SHIFT_ATTRS, **ROUNDING, **FLOAT_WEIGHTS}, int8=True,
    doc="matrix product with constant weights (from Gemm, MatMul)",
)  # fmt: skip
