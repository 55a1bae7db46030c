"""Conv: 2-D convolution with any kernel, stride, dilation, pads and groups; float, and int8/int16 exactly.

Integers: acc = bias + sum (x - zx) * (w - zw) in int32, then clamp(rne(float32(acc) * s[c]) + zy) with
s = (sx * sw[c]) / sy in float32 (docs/QUANTIZATION.md); padding counts as real zero. Float: the sum runs over
kernel row, kernel column, input channel; onnxruntime sums in another order, hence a relative tolerance of
1e-5. Source: ONNX Conv-22 and QLinearConv-10.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from glowc.graph.attrs import Int, IntList
from glowc.graph.graph import Node
from glowc.graph.numerics import act_range, dequantize, requant_scale, requantize
from glowc.graph.types import DType, TensorType
from glowc.kernels.shapes import Codes, Conv
from glowc.ops.base import CLAMP, LAYOUT, Call, LowerCtx, MaybeTypes, OpDef, OpError, Types, clamp_of
from glowc.ops.integer import Folded, fold_weights, weight_codes
from glowc.ops.requant_shift import (
    SHIFT_ATTRS,
    SHIFT_PARAMS,
    kernel_codes,
    shift_dtype,
    shift_of,
    shift_operands,
    shift_params,
    shifted_codes,
)
from glowc.ops.spatial import WINDOW, row_params, rows_of, store_rows, window_rows
from glowc.ops.strided import present
from glowc.program.ir import ParamValue
from glowc.program.kernel import Arrays, KernelDef


def is_planar(node: Node) -> bool:
    """True for a Conv that reads its image one channel after the other."""
    return node.op == "Conv" and node.int_("planar") == 1


def infer(node: Node, in_types: MaybeTypes) -> Types:
    x, w = present(in_types[:2])
    if x.rank != 4 or w.rank != 4:
        raise OpError(f"2-D convolution of {x} with weights {w}: needs rank 4")
    nhwc = node.is_nhwc
    planar = not nhwc or is_planar(node)
    batch, (in_h, in_w) = x.shape[0], (x.shape[2:] if planar else x.shape[1:3])
    in_c = x.shape[1] if planar else x.shape[3]
    out_c, kernel, per_group = (w.shape[0], w.shape[1:3], w.shape[3]) if nhwc else (w.shape[0], w.shape[2:], w.shape[1])
    group = node.int_("group")
    if in_c != per_group * group or out_c % group:
        raise OpError(f"{in_c} input channels, {group} groups and weights {w} do not fit")
    wanted = node.ints("kernel_shape") or tuple(kernel)
    if wanted != tuple(kernel):
        raise OpError(f"kernel_shape {list(wanted)} but weights {w}")
    out_h, out_w = out_size(node, (in_h, in_w), tuple(kernel))
    if out_h < 1 or out_w < 1:
        raise OpError(f"kernel {list(kernel)} is larger than the padded input {x}")
    bias = in_types[2] if len(in_types) > 2 else None
    if bias is not None and bias.shape != (out_c,):
        raise OpError(f"bias {bias} but {out_c} output channels")
    shape = (batch, out_h, out_w, out_c) if nhwc else (batch, out_c, out_h, out_w)
    dtype = shift_dtype(node, x)
    return (TensorType(shape, dtype, None, "nhwc" if nhwc else ""),)


def out_size(node: Node, in_hw: tuple[int, ...], kernel: tuple[int, ...]) -> tuple[int, ...]:
    """Return the output height and width by the node's strides, dilations and pads (floor)."""
    rank = len(in_hw)
    strides, dilations = node.ints("strides", rank), node.ints("dilations", rank)
    pads = node.ints("pads", 2 * rank)
    if (len(strides), len(dilations), len(pads)) != (rank, rank, 2 * rank) or min((1, *strides, *dilations)) < 1:
        raise OpError(f"strides {list(strides)} dilations {list(dilations)} pads {list(pads)} of {rank} axes")
    return tuple(
        (in_hw[i] + pads[i] + pads[i + rank] - (dilations[i] * (kernel[i] - 1) + 1)) // strides[i] + 1
        for i in range(rank)
    )


def convolve(
    x: np.ndarray,
    w: np.ndarray,
    *,
    out_hw: tuple[int, int],
    stride: tuple[int, int],
    dilation: tuple[int, int],
    pad: tuple[int, int],
    group: int,
    y_begin: int = 0,
) -> np.ndarray:
    """Convolve x[N,H,W,C] with w[O,kH,kW,C/group] (both centred: zero is zero) for output rows from y_begin.

    Integer inputs are summed exactly (float64 holds every int32 sum); returns [N,out_h,out_w,O].
    """
    exact = np.float64 if x.dtype.kind in "iu" else x.dtype
    k_h, k_w = w.shape[1:3]
    rows = _taps(y_begin, out_hw[0], stride[0], dilation[0], pad[0], k_h)
    cols = _taps(0, out_hw[1], stride[1], dilation[1], pad[1], k_w)
    low = [max(0, -int(t.min())) for t in (rows, cols)]
    high = [max(0, int(t.max()) + 1 - n) for t, n in ((rows, x.shape[1]), (cols, x.shape[2]))]
    padded = np.pad(x, ((0, 0), (low[0], high[0]), (low[1], high[1]), (0, 0))).astype(exact)
    n, per_in, per_out = x.shape[0], x.shape[3] // group, w.shape[0] // group
    acc = np.zeros((n, *out_hw, w.shape[0]), exact)
    for ky in range(k_h):
        for kx in range(k_w):
            patch = padded[:, rows[:, ky] + low[0]][:, :, cols[:, kx] + low[1]]
            tap = w[:, ky, kx].astype(exact)
            if per_in == 1 and per_out == 1:
                acc += patch * tap[:, 0]
                continue
            for g in range(group):
                part = patch[..., g * per_in : (g + 1) * per_in] @ tap[g * per_out : (g + 1) * per_out].T
                acc[..., g * per_out : (g + 1) * per_out] += part
    return acc


def _taps(first: int, count: int, stride: int, dilation: int, pad: int, kernel: int) -> np.ndarray:
    outer = (np.arange(first, first + count) * stride - pad)[:, None]
    return np.asarray(outer + np.arange(kernel)[None, :] * dilation)


def reference(call: Call) -> tuple[np.ndarray, ...]:
    node, out = call.node, call.out_types[0]
    nhwc = node.is_nhwc
    x, w = call.array(0), call.array(1)
    if not nhwc or is_planar(node):
        x = x.transpose(0, 2, 3, 1)
    w = w if nhwc else w.transpose(0, 2, 3, 1)
    bias = call.optional(2)
    pads = node.ints("pads", 4)
    shape = out.shape[1:3] if nhwc else out.shape[2:]
    geometry = {
        "out_hw": (shape[0], shape[1]), "stride": node.ints("strides", 2), "pad": pads[:2],
        "dilation": node.ints("dilations", 2), "group": node.int_("group"),
    }  # fmt: skip
    low, high = clamp_of(node)
    qx, qw, qy = call.quant(0), call.quant(1), call.out_quant
    if qx is None or qw is None or qy is None:
        w = w if qw is None else dequantize(w, replace(qw, axis=0) if qw.per_axis else qw)
        y = convolve(x, w, **geometry)  # type: ignore[arg-type]
        y = y if bias is None else y + bias
        y = np.clip(y, low, high).astype(out.dtype.numpy)
    else:
        zero = np.asarray(qw.zero_point, np.int64).reshape(-1, 1, 1, 1)
        acc = convolve(x.astype(np.int64) - qx.zero_point[0], w.astype(np.int64) - zero, **geometry)  # type: ignore[arg-type]
        acc, shift = acc if bias is None else acc + bias, shift_of(node)
        if shift is not None:
            y = shifted_codes(shift, acc, out, -1)
        else:
            bounds = act_range(low, high, qy, out.dtype)
            y = requantize(acc, requant_scale(qx, qw, qy), qy.zero_point[0], *bounds).astype(out.dtype.numpy)
    return (y if nhwc else y.transpose(0, 3, 1, 2),)


def lower(node: Node, ctx: LowerCtx) -> None:
    x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
    if not node.is_nhwc:
        raise OpError("convolution was not brought to NHWC")
    w_type, group = ctx.type(node.inputs[1]), node.int_("group")
    params = _geometry(node, x.type, w_type, y.type)
    fixed = x.type.quant is not None or ctx.const_value(node.inputs[1]) is not None
    depthwise = w_type.shape[3] == 1 and group > 1 and fixed  # its kernel wants the weights the other way round
    rows, per_out = (0, y.type.shape[1]), w_type.shape[3] * w_type.shape[1] * w_type.shape[2]
    macs = y.type.elements * per_out
    base = "dwconv" if depthwise else "conv"
    if x.type.quant is None:
        dtype = x.type.dtype.value
        weights = _weights(ctx.const_value(node.inputs[1]), depthwise)
        operands = {"in": x, "bias": ctx.read(node.inputs[2]), "out": y}
        operands["weights"] = (
            ctx.const(weights, f"{node.name}_weights") if weights is not None else ctx.read(node.inputs[1])
        )
        if weights is None and depthwise:
            raise OpError("depthwise weights must be constant")
        clamp: dict[str, ParamValue] = {
            "act_min": node.float_("act_min"), "act_max": node.float_("act_max"),
        }  # fmt: skip
        suffix = "w8" if w_type.quant is not None else ""
        if w_type.quant is not None:
            operands["scale"], codes = weight_codes(node, ctx, w_type.quant)
            clamp |= codes
        ctx.emit(f"{base}_{dtype}{suffix}", operands, {**params, **clamp}, rows=rows, macs=macs)
        return
    if "shift_div" in node.attrs:
        emit_shift(node, ctx, f"{base}_{x.type.dtype.value}rs", _weights(ctx.const_value(node.inputs[1]), depthwise),
                   params, rows, macs)  # fmt: skip
        return
    folded = fold_weights(node, ctx, x.type, y.type)
    weights = _weights(folded.weights, depthwise)
    assert weights is not None
    emit_integer(node, ctx, f"{base}_{x.type.dtype.value}", folded, weights, params, rows, macs)


def emit_integer(
    node: Node,
    ctx: LowerCtx,
    kernel: str,
    folded: Folded,
    weights: np.ndarray,
    params: Mapping[str, ParamValue],
    rows: tuple[int, int] | None,
    macs: int,
) -> None:
    """Emit an integer kernel with weights, bias and scale constants and the output's requantisation."""
    operands = {
        "in": ctx.read(node.inputs[0]),
        "weights": ctx.const(weights, f"{node.name}_weights"),
        "bias": ctx.const(folded.bias, f"{node.name}_bias"),
        "scale": ctx.const(folded.scale, f"{node.name}_scale"),
        "out": ctx.write(node.outputs[0]),
    }
    suffix = "w16" if weights.dtype == np.int16 else ""
    ctx.emit(kernel + suffix, operands, {**params, **folded.params}, rows=rows, macs=macs)


def emit_shift(
    node: Node,
    ctx: LowerCtx,
    kernel: str,
    weights: np.ndarray | None,
    params: Mapping[str, ParamValue],
    rows: tuple[int, int] | None,
    macs: int,
) -> None:
    """Emit an integer kernel that ends in a multiplication and a shift (RequantShift)."""
    x, y, shift = ctx.read(node.inputs[0]), ctx.write(node.outputs[0]), shift_of(node)
    bias = ctx.const_value(node.inputs[2])
    if weights is None or bias is None or shift is None or x.type.quant is None or y.type.quant is None:
        raise OpError("weights and bias must be constants, and all tensors integers")
    operands = {"in": x, "weights": ctx.const(weights, f"{node.name}_weights"), "out": y}
    operands |= shift_operands(ctx, node, shift, bias)
    more: dict[str, ParamValue] = {"w_zp": 0, **shift_params(shift, x.type.quant, y.type.quant)}
    ctx.emit(kernel, operands, {**params, **more}, rows=rows, macs=macs)


def _weights(w: np.ndarray | None, depthwise: bool) -> np.ndarray | None:
    """Weights in the kernel's order: O,kH,kW,I; depthwise kH,kW,O so that channels are adjacent."""
    return np.ascontiguousarray(w[..., 0].transpose(1, 2, 0)) if depthwise and w is not None else w


def _geometry(node: Node, x: TensorType, w: TensorType, y: TensorType) -> dict[str, ParamValue]:
    pads, strides = node.ints("pads", 4), node.ints("strides", 2)
    dilations = node.ints("dilations", 2)
    params = row_params(x, y, planar=is_planar(node))
    return params | {
        "k_h": w.shape[1], "k_w": w.shape[2], "stride_h": strides[0], "stride_w": strides[1],
        "dil_h": dilations[0], "dil_w": dilations[1], "pad_top": pads[0], "pad_left": pads[1],
        "groups": node.int_("group"),
    }  # fmt: skip


def interpret(arrays: Arrays, p: Mapping[str, ParamValue]) -> None:
    """Evaluate conv_*/dwconv_* on flat arrays; `rows` in params are y_begin, y_end."""
    x = rows_of(arrays["in"], p)
    w, integer = arrays["weights"], "in_zp" in p
    k_h, k_w, out_c = int(p["k_h"]), int(p["k_w"]), int(p["out_c"])
    if "multiplier" in arrays or (w.size == k_h * k_w * out_c and int(p["groups"]) > 1):
        w = w.reshape(k_h, k_w, out_c).transpose(2, 0, 1)[..., None]
    else:
        w = w.reshape(out_c, k_h, k_w, -1)
    scaled = "scale" in arrays and not integer
    if scaled:
        w = w.astype(x.dtype) - int(p["w_zp"])
    if integer:
        x, w = x.astype(np.int64) - int(p["in_zp"]), w.astype(np.int64) - int(p["w_zp"])
    y_begin, y_end = int(p["y_begin"]), int(p["y_end"])
    acc = convolve(
        x, w, out_hw=(y_end - y_begin, int(p["out_w"])), y_begin=y_begin, group=int(p["groups"]),
        stride=(int(p["stride_h"]), int(p["stride_w"])), dilation=(int(p["dil_h"]), int(p["dil_w"])),
        pad=(int(p["pad_top"]), int(p["pad_left"])),
    )  # fmt: skip
    acc = acc * (arrays["scale"] if int(p["scale_step"]) else arrays["scale"][0]) if scaled else acc
    acc = acc + arrays["bias"] if "bias" in arrays else acc
    if "mul" in arrays:
        y = kernel_codes(acc, arrays, p)
    elif integer:
        scale = arrays["scale"] if int(p["scale_step"]) else arrays["scale"][0]
        y = requantize(acc, scale, int(p["out_zp"]), int(p["out_min"]), int(p["out_max"]))
    else:
        y = np.clip(acc, p["act_min"], p["act_max"])
    store_rows(arrays["out"], y, p)


GEOMETRY, INTEGER = Conv.names(), Codes.names()
CODES = (("s8", "s8", ""), ("s8", "s16", "w16"), ("s16", "s8", ""), ("s16", "s16", "w16"))
"""Element kinds of input and weights of the kernels on codes, and the end of their names."""
_INT_OPERANDS = {w: ("in in", f"in weights:{w}", "in bias:s32", "in scale:f32", "out out") for w in ("s8", "s16")}
_FLOAT_OPERANDS = ("in in", "in weights", "in bias", "out out")

_SHIFT_OPERANDS = ("in in", "in weights:s8", "in mul:s32", "in offset:s64", "out out:s8|s16")


_KINDS = {"conv": "convolution", "dwconv": "depthwise convolution"}
KERNELS = (
    *(
        KernelDef(f"{base}_{kind}rs", _SHIFT_OPERANDS, (*GEOMETRY, "w_zp", *SHIFT_PARAMS), interpret, rows=True,
                  row_window=window_rows, template=f"{base}_s8rs", kind=kind,
                  doc=f"{_KINDS[base]} that ends in a multiplication and a shift")
        for base in ("conv", "dwconv")
        for kind in ("s8", "s16")
    ),
    *(
        KernelDef(f"{base}_{x}{end}", _INT_OPERANDS[w], (*GEOMETRY, *INTEGER), interpret, rows=True,
                  row_window=window_rows, template=f"{base}_s8", kind=x,
                  doc=f"{_KINDS[base]}: clamp(rne((bias + sum (in - in_zp) * (weights - w_zp)) * scale) + out_zp)")
        for base in ("conv", "dwconv")
        for x, w, end in CODES
    ),
    *(
        KernelDef(
            f"{base}_f32w8", ("in in", "in weights:s8", "in scale", "in bias", "out out"),
            (*GEOMETRY, "w_zp", "scale_step"), interpret, float_params=("act_min", "act_max"), rows=True,
            needs_math=True, kind="f32", doc=f"float {_KINDS[base]} with int8 weights",
        )
        for base in ("conv", "dwconv")
    ),
    *(
        KernelDef(
            f"{base}_{dtype.value}", _FLOAT_OPERANDS, GEOMETRY, interpret, float_params=("act_min", "act_max"),
            rows=True, row_window=window_rows, template=f"{base}_f32", needs_math=True, kind=dtype.value,
            doc=f"{_KINDS[base]}: clamp(bias + sum in * weights)",
        )
        for base in ("conv", "dwconv")
        for dtype in (DType.F32, DType.F64)
    ),
)  # fmt: skip

OP = OpDef(
    "Conv", infer, reference, lower, int8=True, max_version=22,
    attrs={**WINDOW, "kernel_shape": IntList(()), "group": Int(1), "layout": LAYOUT, "planar": Int(0), **CLAMP,
           **SHIFT_ATTRS},
    doc="2-D convolution (1-D as height 1), grouped and depthwise",
)  # fmt: skip
