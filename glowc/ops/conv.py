"""Conv: 2-D convolution with any kernel, stride, dilation, pads and groups; float, and int8/int16 exactly.

Integers: acc = bias + sum (x - zx) * (w - zw) in int32, then clamp(rne(float32(acc) * s[c]) + zy) with
s = (sx * sw[c]) / sy in float32 (docs/ARITHMETIC.md); padding counts as real zero. Float: the sum runs over
kernel row, kernel column, input channel; onnxruntime sums in another order, hence a relative tolerance of
1e-5. Source: ONNX Conv-22 and QLinearConv-10.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial

import numpy as np

from glowc.graph.attrs import Int, IntList
from glowc.graph.graph import Node
from glowc.graph.numerics import requantize
from glowc.graph.types import DType, TensorType
from glowc.kernels.shapes import Codes, Conv
from glowc.ops.base import CLAMP, LAYOUT, LowerCtx, MaybeTypes, OpDef, OpError, Types, clamp_of
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
from glowc.ops.requant_shift import (
    SHIFT_ATTRS,
    ShiftCodes,
    kernel_codes,
    shift_dtype,
)
from glowc.ops.spatial import WINDOW, row_params, rows_of, store_rows, window_rows
from glowc.ops.strided import present
from glowc.program.kernel import Arrays, KernelDef
from glowc.program.params import Params


@dataclass(frozen=True, slots=True)
class ConvFloat(Params):
    """Of conv_f32, conv_f64 and their depthwise forms."""

    shape: Conv
    clamp: Clamp


@dataclass(frozen=True, slots=True)
class ConvCoded(Params):
    """Of conv_f32w8, dwconv_f32w8: floats, the weights of which stay codes."""

    shape: Conv
    coded: CodedWeights
    clamp: Clamp


@dataclass(frozen=True, slots=True)
class ConvCodes(Params):
    """Of the kernels on codes that end in a float scale."""

    shape: Conv
    codes: Codes


@dataclass(frozen=True, slots=True)
class ConvShift(Params):
    """Of the kernels on codes that end in a multiplication and a shift."""

    shape: Conv
    codes: ShiftCodes


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


def lower(node: Node, ctx: LowerCtx) -> None:
    x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
    if not node.is_nhwc:
        raise OpError("convolution was not brought to NHWC")
    w_type, group = ctx.type(node.inputs[1]), node.int_("group")
    fixed = x.type.quant is not None or ctx.const_value(node.inputs[1]) is not None
    depthwise = w_type.shape[3] == 1 and group > 1 and fixed  # its kernel wants the weights the other way round
    macs = y.type.elements * w_type.shape[3] * w_type.shape[1] * w_type.shape[2]
    lower_windows(
        node, ctx, _geometry(node, x.type, w_type, y.type), macs, depthwise=depthwise, padded=any(node.ints("pads", 4))
    )


def lower_windows(
    node: Node, ctx: LowerCtx, shape: Conv, macs: int, *, depthwise: bool = False, padded: bool = False
) -> None:
    """Emit the convolution of this shape that a node with inputs (x, weights, bias) is."""
    x, y = ctx.type(node.inputs[0]), ctx.type(node.outputs[0])
    rows, kernel = (0, shape.out_h), f"{'dwconv' if depthwise else 'conv'}_{x.dtype.value}"
    if x.quant is None:
        weights = _weights(ctx.const_value(node.inputs[1]), depthwise)
        if weights is None and depthwise:
            raise OpError("depthwise weights must be constant")
        _emit_float(node, ctx, kernel, weights, shape, rows, macs)
        return
    if "shift_div" in node.attrs:
        weights = _weights(ctx.const_value(node.inputs[1]), depthwise)
        emit_shift(node, ctx, f"{kernel}rs", weights, lambda codes: ConvShift(shape, codes), rows, macs)
        return
    folded = fold_weights(node, ctx, x, y)
    folded = folded if padded else without_zero_point(folded, x)
    weights = _weights(folded.weights, depthwise)
    assert weights is not None
    emit_integer(node, ctx, kernel, folded, weights, ConvCodes(shape, folded.codes), rows, macs)


def _emit_float(
    node: Node, ctx: LowerCtx, kernel: str, weights: np.ndarray | None, shape: Conv, rows: tuple[int, int], macs: int
) -> None:
    """Emit a float kernel, of int8 weights where they stay codes."""
    operands = {"in": ctx.read(node.inputs[0]), "bias": ctx.read(node.inputs[2]), "out": ctx.write(node.outputs[0])}
    operands["weights"] = (
        ctx.const(weights, f"{node.name}_weights") if weights is not None else ctx.read(node.inputs[1])
    )
    clamp, quant = Clamp(*clamp_of(node)), ctx.type(node.inputs[1]).quant
    if quant is None:
        ctx.emit(kernel, operands, ConvFloat(shape, clamp), rows=rows, macs=macs)
        return
    operands["scale"], coded = weight_codes(node, ctx, quant)
    ctx.emit(f"{kernel}w8", operands, ConvCoded(shape, coded, clamp), rows=rows, macs=macs)


def _weights(w: np.ndarray | None, depthwise: bool) -> np.ndarray | None:
    """Weights in the kernel's order: O,kH,kW,I; depthwise kH,kW,O so that channels are adjacent."""
    return np.ascontiguousarray(w[..., 0].transpose(1, 2, 0)) if depthwise and w is not None else w


def _geometry(node: Node, x: TensorType, w: TensorType, y: TensorType) -> Conv:
    pads, strides = node.ints("pads", 4), node.ints("strides", 2)
    dilations = node.ints("dilations", 2)
    return _by_phases(Conv(
        **asdict(row_params(x, y, planar=is_planar(node))),
        k_h=w.shape[1], k_w=w.shape[2], stride_h=strides[0], stride_w=strides[1],
        dil_h=dilations[0], dil_w=dilations[1], pad_top=pads[0], pad_left=pads[1],
        groups=node.int_("group"),
    ))  # fmt: skip


def pixels(count: int, in_c: int, out_c: int) -> Conv:
    """Return the shape of a 1x1 convolution of an image that is one row of so many pixels."""
    x, y = (TensorType((1, 1, count, channels), DType.S8) for channels in (in_c, out_c))
    return Conv(
        **asdict(row_params(x, y)),
        k_h=1,
        k_w=1,
        stride_h=1,
        stride_w=1,
        dil_h=1,
        dil_w=1,
        pad_top=0,
        pad_left=0,
        groups=1,
    )


def _by_phases(s: Conv) -> Conv:
    """Return a dilated convolution of one row as one without dilation, of an image in which a column is a phase.

    Step t lies in row t / dilation, column t % dilation: each output reads its own column only, so that the inputs of a
    window are whole runs of channels in memory, as kernels read them fastest. Depthwise kernels gain nothing by that.
    """
    d = s.dil_w
    whole = all(n % d == 0 for n in (s.in_w, s.out_w, s.pad_left))
    if d == 1 or s.k_w == 1 or not whole or (s.in_h, s.out_h, s.k_h, s.stride_w, s.groups) != (1, 1, 1, 1, 1):
        return s
    return replace(
        s, in_h=s.in_w // d, in_w=d, in_row=d * s.in_col, in_ring=s.in_w // d, k_h=s.k_w, pad_top=s.pad_left // d,
        out_h=s.out_w // d, out_w=d, out_row=d * s.out_c, out_ring=s.out_w // d, k_w=1, stride_h=1, dil_h=1, dil_w=1,
        pad_left=0,
    )  # fmt: skip


def _by_output(flat: np.ndarray, p: Conv) -> np.ndarray:
    """Return the weights of a convolution as [O,kH,kW,I]."""
    return flat.reshape(p.out_c, p.k_h, p.k_w, -1)


def _by_tap(flat: np.ndarray, p: Conv) -> np.ndarray:
    """Return the weights of a depthwise convolution, which lie as [kH,kW,O], as [O,kH,kW,1]."""
    return flat.reshape(p.k_h, p.k_w, p.out_c).transpose(2, 0, 1)[..., None]


Filters = Callable[[np.ndarray, Conv], np.ndarray]
_FILTERS: Mapping[str, Filters] = {"conv": _by_output, "dwconv": _by_tap}


def _summed(x: np.ndarray, w: np.ndarray, p: Conv, rows: range) -> np.ndarray:
    """Return the sums of products of some output rows."""
    return convolve(
        x, w, out_hw=(len(rows), p.out_w), y_begin=rows.start, group=p.groups,
        stride=(p.stride_h, p.stride_w), dilation=(p.dil_h, p.dil_w), pad=(p.pad_top, p.pad_left),
    )  # fmt: skip


def _centred(filters: Filters, a: Arrays, p: Conv, in_zp: int, w_zp: int, rows: range) -> np.ndarray:
    """Return the sums of products of codes less their zero points."""
    x, w = rows_of(a["in"], p).astype(np.int64) - in_zp, filters(a["weights"], p).astype(np.int64) - w_zp
    return _summed(x, w, p, rows)


def _interpret_float(filters: Filters, a: Arrays, p: ConvFloat, rows: range) -> None:
    acc = _summed(rows_of(a["in"], p.shape), filters(a["weights"], p.shape), p.shape, rows) + a["bias"]
    store_rows(a["out"], np.clip(acc, p.clamp.act_min, p.clamp.act_max), p.shape, rows)


def _interpret_coded(filters: Filters, a: Arrays, p: ConvCoded, rows: range) -> None:
    x = rows_of(a["in"], p.shape)
    w = filters(a["weights"], p.shape).astype(x.dtype) - p.coded.w_zp
    acc = _summed(x, w, p.shape, rows) * scales(a, p.coded.scale_step) + a["bias"]
    store_rows(a["out"], np.clip(acc, p.clamp.act_min, p.clamp.act_max), p.shape, rows)


def _interpret_codes(filters: Filters, a: Arrays, p: ConvCodes, rows: range) -> None:
    c = p.codes
    acc = _centred(filters, a, p.shape, c.in_zp, c.w_zp, rows) + a["bias"]
    y = requantize(acc, scales(a, c.scale_step), c.out_zp, c.out_min, c.out_max)
    store_rows(a["out"], y, p.shape, rows)


def _interpret_fixed(filters: Filters, a: Arrays, p: ConvCodes, rows: range) -> None:
    c = p.codes
    acc = _centred(filters, a, p.shape, c.in_zp, c.w_zp, rows) + a["bias"]
    store_rows(a["out"], fixed(a).codes(acc, c.out_zp, c.out_min, c.out_max), p.shape, rows)


def _interpret_shift(filters: Filters, a: Arrays, p: ConvShift, rows: range) -> None:
    acc = _centred(filters, a, p.shape, p.codes.in_zp, p.codes.w_zp, rows)
    store_rows(a["out"], kernel_codes(acc, a, p.codes.end), p.shape, rows)


def _window(p: ConvFloat | ConvCodes | ConvShift, y: int) -> tuple[int, int]:
    return window_rows(p.shape, y)


CODES = (("s8", "s8", ""), ("s8", "s16", "w16"), ("s16", "s8", ""), ("s16", "s16", "w16"))
"""Element kinds of input and weights of the kernels on codes, and the end of their names."""
_INT_OPERANDS = {w: ("in in", f"in weights:{w}", "in bias:s32", "in scale:f32", "out out") for w in ("s8", "s16")}
FIXED = (("s8", "q31", "s32"), ("s16", "q31", "s32"), ("s16", "q15", "s64"))
"""Element kinds of the kernels that end as TensorFlow Lite does, the end of their names, the kind of their biases."""


def fixed_operands(bias: str) -> tuple[str, ...]:
    """Return the operands of a kernel that ends as TensorFlow Lite does."""
    return ("in in", "in weights:s8", f"in bias:{bias}", "in mul:s32", "in shift:s8", "out out")


_FLOAT_OPERANDS = ("in in", "in weights", "in bias", "out out")

_SHIFT_OPERANDS = ("in in", "in weights:s8", "in mul:s32", "in offset:s64", "out out:s8|s16")


_KINDS = {"conv": "convolution", "dwconv": "depthwise convolution"}


def _rows(base: str, interpret: Callable[..., None]) -> Callable[..., None]:
    """Return the interpreter of a kernel whose weights lie as those of `base` do."""
    return partial(interpret, _FILTERS[base])


KERNELS = (
    *(
        KernelDef(f"{base}_{kind}rs", _SHIFT_OPERANDS, ConvShift, interpret_rows=_rows(base, _interpret_shift),
                  row_window=_window, template=f"{base}_s8rs", kind=kind,
                  doc=f"{_KINDS[base]} that ends in a multiplication and a shift")
        for base in ("conv", "dwconv")
        for kind in ("s8", "s16")
    ),
    *(
        KernelDef(f"{base}_{x}{end}", _INT_OPERANDS[w], ConvCodes, interpret_rows=_rows(base, _interpret_codes),
                  row_window=_window, template=f"{base}_s8", kind=x,
                  doc=f"{_KINDS[base]}: clamp(rne((bias + sum (in - in_zp) * (weights - w_zp)) * scale) + out_zp)")
        for base in ("conv", "dwconv")
        for x, w, end in CODES
    ),
    *(
        KernelDef(f"{base}_{x}{end}", fixed_operands(bias), ConvCodes, interpret_rows=_rows(base, _interpret_fixed),
                  row_window=_window, template=f"{base}_s8q31", kind=x,
                  doc=f"{_KINDS[base]} that ends in TensorFlow Lite's multiplier and shift")
        for base in ("conv", "dwconv")
        for x, end, bias in FIXED
    ),
    *(
        KernelDef(
            f"{base}_f32w8", ("in in", "in weights:s8", "in scale", "in bias", "out out"), ConvCoded,
            interpret_rows=_rows(base, _interpret_coded), needs_math=True, kind="f32",
            doc=f"float {_KINDS[base]} with int8 weights",
        )
        for base in ("conv", "dwconv")
    ),
    *(
        KernelDef(
            f"{base}_{dtype.value}", _FLOAT_OPERANDS, ConvFloat, interpret_rows=_rows(base, _interpret_float),
            row_window=_window, template=f"{base}_f32", needs_math=True, kind=dtype.value,
            doc=f"{_KINDS[base]}: clamp(bias + sum in * weights)",
        )
        for base in ("conv", "dwconv")
        for dtype in (DType.F32, DType.F64)
    ),
)  # fmt: skip

OP = OpDef(
    "Conv", infer, derived, lower, int8=True, max_version=22,
    attrs={**WINDOW, "kernel_shape": IntList(()), "group": Int(1), "layout": LAYOUT, "planar": Int(0), **CLAMP,
           **SHIFT_ATTRS, **ROUNDING, **FLOAT_WEIGHTS},
    doc="2-D convolution (1-D as height 1), grouped and depthwise",
)  # fmt: skip
