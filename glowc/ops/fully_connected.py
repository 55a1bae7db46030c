"""FullyConnected: y[..., O] = x[..., K] @ weights[O, K].T + bias[O]; the form of Gemm and MatMul with constants.

Integers as in Conv: int32 accumulator with the bias inside, one float32 scale per output, half to even.
Source: ONNX Gemm-13, MatMul-13, QLinearMatMul-21 and onnxruntime's QGemm.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from glowc.graph.graph import Node
from glowc.graph.numerics import act_range, dequantize, requant_scale, requantize
from glowc.graph.types import DType, TensorType
from glowc.kernels.shapes import FullyConnected
from glowc.ops.base import CLAMP, Call, LowerCtx, MaybeTypes, OpDef, OpError, Types, clamp_of
from glowc.ops.conv import CODES, INTEGER, emit_integer, emit_shift
from glowc.ops.integer import fold_weights, weight_codes
from glowc.ops.requant_shift import SHIFT_ATTRS, SHIFT_PARAMS, kernel_codes, shift_dtype, shift_of, shifted_codes
from glowc.program.ir import ParamValue
from glowc.program.kernel import Arrays, KernelDef


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


def reference(call: Call) -> tuple[np.ndarray, ...]:
    node, out = call.node, call.out_types[0]
    x, w, bias = call.array(0), call.array(1), call.optional(2)
    low, high = clamp_of(node)
    qx, qw, qy = call.quant(0), call.quant(1), call.out_quant
    if qx is None or qw is None or qy is None:
        w = w if qw is None else dequantize(w, qw)
        y = x @ w.T
        y = y if bias is None else y + bias
        return (np.clip(y, low, high).astype(out.dtype.numpy),)
    zero = np.asarray(qw.zero_point, np.int64).reshape(-1, 1)
    acc = (x.astype(np.float64) - qx.zero_point[0]) @ (w.astype(np.float64) - zero).T
    acc = acc if bias is None else acc + bias
    shift = shift_of(node)
    if shift is not None:
        return (shifted_codes(shift, acc, out, -1),)
    scale = requant_scale(qx, qw, qy)
    y = requantize(acc, scale, qy.zero_point[0], *act_range(low, high, qy, out.dtype))
    return (y.astype(out.dtype.numpy),)


def lower(node: Node, ctx: LowerCtx) -> None:
    x, y = ctx.type(node.inputs[0]), ctx.type(node.outputs[0])
    params: dict[str, ParamValue] = {
        "rows": math.prod(x.shape[:-1]), "in_k": x.shape[-1], "out_n": y.shape[-1],
    }  # fmt: skip
    macs = y.elements * x.shape[-1]
    if x.quant is None:
        operands = {role: ctx.read(name) for role, name in zip(("in", "weights", "bias"), node.inputs, strict=True)}
        operands["out"] = ctx.write(node.outputs[0])
        params |= {"act_min": node.float_("act_min"), "act_max": node.float_("act_max")}
        suffix, quant = "", ctx.type(node.inputs[1]).quant
        if quant is not None:
            operands["scale"], codes = weight_codes(node, ctx, quant)
            params, suffix = params | codes, "w8"
        ctx.emit(f"fc_{x.dtype.value}{suffix}", operands, params, macs=macs)
        return
    if "shift_div" in node.attrs:
        weights = ctx.const_value(node.inputs[1])
        emit_shift(node, ctx, f"fc_{x.dtype.value}rs", weights, params, None, macs)
        return
    folded = fold_weights(node, ctx, x, y)
    emit_integer(node, ctx, f"fc_{x.dtype.value}", folded, folded.weights, params, None, macs)


def interpret(arrays: Arrays, p: Mapping[str, ParamValue]) -> None:
    """Evaluate fc_* on flat arrays."""
    rows, k, n = int(p["rows"]), int(p["in_k"]), int(p["out_n"])
    x, w = arrays["in"].reshape(rows, k), arrays["weights"].reshape(n, k)
    out = arrays["out"].reshape(rows, n)
    if "in_zp" not in p:
        if "scale" in arrays:
            scale = arrays["scale"] if int(p["scale_step"]) else arrays["scale"][0]
            acc = x @ (w.astype(np.float32) - int(p["w_zp"])).T * scale
            out[:] = np.clip(acc + arrays["bias"], p["act_min"], p["act_max"])
            return
        out[:] = np.clip(x @ w.T + arrays["bias"], p["act_min"], p["act_max"])
        return
    acc = (x.astype(np.float64) - int(p["in_zp"])) @ (w.astype(np.float64) - int(p["w_zp"])).T
    if "mul" in arrays:
        out[:] = kernel_codes(acc, arrays, p)
        return
    acc = acc + arrays["bias"]
    scale = arrays["scale"] if int(p["scale_step"]) else arrays["scale"][0]
    out[:] = requantize(acc, scale, int(p["out_zp"]), int(p["out_min"]), int(p["out_max"]))


_SHAPE = FullyConnected.names()
KERNELS = (
    *(
        KernelDef(
            f"fc_{kind}rs", ("in in", "in weights:s8", "in mul:s32", "in offset:s64", "out out:s8|s16"),
            (*_SHAPE, "w_zp", *SHIFT_PARAMS), interpret, template="fc_s8rs", kind=kind,
            doc="fully connected layer that ends in a multiplication and a shift",
        )
        for kind in ("s8", "s16")
    ),
    *(
        KernelDef(
            f"fc_{x}{end}", ("in in", f"in weights:{w}", "in bias:s32", "in scale:f32", "out out"), (*_SHAPE, *INTEGER),
            interpret, template="fc_s8", kind=x,
            doc="fully connected layer: clamp(rne((bias + sum (in - in_zp) * (weights - w_zp)) * scale) + out_zp)",
        )
        for x, w, end in CODES
    ),
    KernelDef(
        "fc_f32w8", ("in in", "in weights:s8", "in scale", "in bias", "out out"), (*_SHAPE, "w_zp", "scale_step"),
        interpret, float_params=("act_min", "act_max"), needs_math=True, kind="f32",
        doc="float fully connected layer with int8 weights",
    ),
    *(
        KernelDef(
            f"fc_{dtype.value}", ("in in", "in weights", "in bias", "out out"), _SHAPE, interpret,
            float_params=("act_min", "act_max"), template="fc_f32", needs_math=True, kind=dtype.value,
            doc="fully connected layer: clamp(bias + sum in * weights)",
        )
        for dtype in (DType.F32, DType.F64)
    ),
)  # fmt: skip

OP = OpDef(
    "FullyConnected", infer, reference, lower, attrs={**CLAMP, **SHIFT_ATTRS}, int8=True,
    doc="matrix product with constant weights (from Gemm, MatMul)",
)  # fmt: skip
