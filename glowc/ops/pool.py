"""MaxPool and AveragePool: float and quantised, any kernel, stride, dilation, pads, ceil_mode.

Quantised maximum: of the codes (input and output quantised alike; else requantised afterwards). Quantised
average over the N counted positions of a window: rne((sum((q - zx) * sx) / N) / sy + zy), every operation in float32
in the order of the window, with zy of the model's own codes (attribute `unsigned`: uint8 codes, here minus 128, which
decides near-ties); of a window that is the whole image rne(float32(sum(q - zx)) * (sx / (sy * N))) + zy, unless
attribute `part` says that the model's image is longer than the steps that are here (pass time-stream).
Evidence: QLinearAveragePool of onnxruntime 1.31, NCHW and channels_last, scales that make ties: 25,920 outputs of
windows and 11,520 of whole images, 0 differ; the whole-image form differs in 556 outputs of windows, the other one in
198 of whole images. N leaves out padding unless count_include_pad, and does not count what ceil_mode adds after it (of
codes it does, with count_include_pad: pass fold-qdq makes it padding).
Float: the sum runs over window rows, then columns, and is divided by N; onnxruntime's order may differ, hence a
relative tolerance of 1e-6. A window without any input gives the lowest value (maximum) or 0 (average).
Attr rounding "tflite", with s the sum of the codes as the file has them over the n positions inside of the image:
(s + n / 2) / n above zero and (s - n / 2) / n below, cut off; input and output have one scale.
Clamped by attrs act_min and act_max. Source: ONNX MaxPool-22, AveragePool-22;
tensorflow/lite/kernels/internal/reference/integer_ops/pooling.h, restated.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from glowc.graph.attrs import Attr, Int, IntList
from glowc.graph.graph import Node
from glowc.graph.numerics import F32, act_range, round_clamp
from glowc.graph.types import DType, TensorType
from glowc.kernels.shapes import Pool
from glowc.ops.base import CLAMP, LAYOUT, LowerCtx, MaybeTypes, OpDef, OpError, Types, clamp_of
from glowc.ops.derived import derived
from glowc.ops.integer import ROUNDING, is_tflite, result_codes
from glowc.ops.params import Clamp, OutCodes
from glowc.ops.quantize import emit_requantize
from glowc.ops.spatial import WINDOW, row_params, rows_of, store_rows, window_rows
from glowc.ops.strided import present
from glowc.ops.window import Ints, Window, emit_window, emit_window_arg
from glowc.program.kernel import Arrays, KernelDef
from glowc.program.params import Params


@dataclass(frozen=True, slots=True)
class AverageFloat(Params):
    """Of avg_pool_f32 and avg_pool_f64."""

    shape: Pool
    include_pad: int
    clamp: Clamp


@dataclass(frozen=True, slots=True)
class AverageCodes(Params):
    """Of avg_pool_s8 and avg_pool_s16: the input's zero point, the result's codes, both scales."""

    shape: Pool
    include_pad: int
    in_zp: int
    out: OutCodes
    in_scale: float
    out_scale: float


@dataclass(frozen=True, slots=True)
class AverageWindows(Params):
    """Of avg_pool_s8w and avg_pool_s16w: what was taken off the model's codes besides."""

    codes: AverageCodes
    half: int


@dataclass(frozen=True, slots=True)
class WholeAverage(Params):
    """Of `avg_pool_*q31`: what is added to codes for those of the file (128 for uint8), and the bounds."""

    shape: Pool
    include_pad: int
    half: int
    out_min: int
    out_max: int


def window_of(node: Node, x: TensorType) -> Window:
    """Return the geometry; OpError when it does not fit the input."""
    kernel = node.ints("kernel_shape")
    rank = len(kernel)
    if x.rank != rank + 2:
        raise OpError(f"kernel {list(kernel)} needs rank {rank + 2}, seen {x}")
    size = x.shape[1:-1] if node.is_nhwc else x.shape[2:]
    stride, dilation = node.ints("strides", rank), node.ints("dilations", rank)
    pads = node.ints("pads", 2 * rank)
    lengths = len(stride), len(dilation), len(pads)
    if lengths != (rank, rank, 2 * rank) or min((1, *stride, *dilation, *kernel)) < 1:
        raise OpError(f"kernel {list(kernel)} strides {list(stride)} dilations {list(dilation)} pads {list(pads)}")
    span = tuple(d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True))
    begin, end = _padding(node.str_("auto_pad"), pads, size, span, stride)
    out = []
    for i in range(rank):
        free = size[i] + begin[i] + end[i] - span[i]
        steps = -(-free // stride[i]) if node.int_("ceil_mode") else free // stride[i]
        if node.int_("ceil_mode") and steps * stride[i] >= size[i] + begin[i]:
            steps -= 1  # a window that starts after the input is left out
        if free < 0 or steps < 0:
            raise OpError(f"window {list(span)} is larger than the padded input {x}")
        out.append(steps + 1)
    return Window(tuple(size), tuple(out), kernel, stride, dilation, begin, end)


def _padding(mode: str, pads: Ints, size: Ints, span: Ints, stride: Ints) -> tuple[Ints, Ints]:
    rank = len(size)
    if mode in ("NOTSET", "VALID", ""):
        return (pads[:rank], pads[rank:]) if mode != "VALID" else ((0,) * rank, (0,) * rank)
    total = [max((-(-n // s) - 1) * s + k - n, 0) for n, s, k in zip(size, stride, span, strict=True)]
    small, large = tuple(t // 2 for t in total), tuple(t - t // 2 for t in total)
    return (small, large) if mode == "SAME_UPPER" else (large, small)


def infer(node: Node, in_types: MaybeTypes) -> Types:
    """Output [N, C, spatial...] or [N, spatial..., C]."""
    (x,) = present(in_types[:1])
    window = window_of(node, x)
    nhwc = node.is_nhwc
    if nhwc and any(node.outputs[1:]):
        raise OpError("indices of an NHWC image")
    shape = (x.shape[0], *window.out_size, x.shape[-1]) if nhwc else (*x.shape[:2], *window.out_size)
    y = TensorType(shape, x.dtype, None, "nhwc" if nhwc else x.layout)
    return (y, TensorType(shape, DType.S64))[: 2 if len(node.outputs) > 1 else 1]


def taps(x: np.ndarray, w: Window, fill: float | int, first: int = 0) -> list[np.ndarray]:
    """Return, per window position, the values [N, out..., C] of x[N, spatial..., C]; padding is `fill`.

    `first` is the first output row; its count is w.out_size[0].
    """
    y = x
    sources: list[np.ndarray] = []
    for axis, (n, begin) in enumerate(zip(w.in_size, w.pad_begin, strict=True)):
        shift = first if axis == 0 else 0
        start = (np.arange(w.out_size[axis]) + shift) * w.stride[axis] - begin
        index = start[:, None] + np.arange(w.kernel[axis])[None, :] * w.dilation[axis]
        sources.append(np.where((index >= 0) & (index < n), index, n))
        edge = [(0, 0)] * x.ndim
        edge[axis + 1] = (0, 1)
        y = np.pad(y, edge, constant_values=fill)
    everything = [np.arange(x.shape[0])], [np.arange(x.shape[-1])]
    return [
        y[np.ix_(*everything[0], *(s[:, k] for s, k in zip(sources, position, strict=True)), *everything[1])]
        for position in itertools.product(*(range(k) for k in w.kernel))
    ]


def counts(w: Window, include_pad: bool, first: int = 0) -> np.ndarray:
    """Return the number of counted positions of each window, [out...]."""
    result = np.ones((1,) * len(w.kernel), np.int64)
    for axis, n in enumerate(w.in_size):
        start = (np.arange(w.out_size[axis]) + (first if axis == 0 else 0)) * w.stride[axis] - w.pad_begin[axis]
        index = start[:, None] + np.arange(w.kernel[axis])[None, :] * w.dilation[axis]
        low, high = (-w.pad_begin[axis], n + w.pad_end[axis]) if include_pad else (0, n)
        inside = ((index >= low) & (index < high)).sum(1)
        result = result * inside.reshape([-1 if a == axis else 1 for a in range(len(w.kernel))])
    return result


def lowest(dtype: np.dtype[np.generic]) -> float | int:
    """Return the value below all others."""
    if dtype.kind == "u":
        return 0
    return -math.inf if dtype.kind == "f" else -(1 << (8 * dtype.itemsize - 1))


def maximum(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Return the elementwise maximum of the window positions."""
    best = parts[0]
    for part in parts[1:]:
        best = np.where(part > best, part, best)
    return best


def average_codes(
    parts: Sequence[np.ndarray], count: np.ndarray, scales: tuple[F32, F32], zero: int, low: int, high: int
) -> np.ndarray:
    """Return the quantised average of centred codes; `scales` are (sx, sy)."""
    acc = np.sum(np.stack(parts), axis=0)
    n = np.maximum(count, 1)[..., None].astype(F32)
    scale = (scales[0] / (scales[1] * n)).astype(F32)
    return round_clamp(acc.astype(F32) * scale, zero, low, high)


def average_real(
    parts: Sequence[np.ndarray], count: np.ndarray, scales: tuple[F32, F32], zero: int, low: int, high: int,
    half: int = 0,
) -> np.ndarray:  # fmt: skip
    """Return the quantised average of centred codes as onnxruntime sums it: in real units, in window order.

    `half` is what was taken off the model's codes.
    """
    acc = np.zeros(parts[0].shape, F32)
    for part in parts:
        acc = acc + part.astype(F32) * scales[0]
    n = np.maximum(count, 1)[..., None].astype(F32)
    return round_clamp((acc / n) / scales[1] + F32(zero + half), -half, low, high)


def is_whole(w: Window) -> bool:
    """True for one window that is the whole image."""
    return w.kernel == w.in_size and w.out_size == (1,) * len(w.kernel) and not any((*w.pad_begin, *w.pad_end))


def average_floats(parts: Sequence[np.ndarray], count: np.ndarray) -> np.ndarray:
    """Return sum / N, the sum in window order."""
    acc = np.zeros_like(parts[0])
    for part in parts:
        acc = acc + part
    return np.asarray(acc / np.maximum(count, 1)[..., None].astype(acc.dtype))


def lower_lp(node: Node, ctx: LowerCtx) -> None:
    """One `window`."""
    x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
    emit_window(ctx, x, y, window_of(node, x.type), "lp", p=node.int_("p"))


def _planar(node: Node) -> bool:
    return not node.is_nhwc


def _half(node: Node) -> int:
    return 128 * node.int_("unsigned")


def geometry(node: Node, x: TensorType, y: TensorType) -> Pool:
    """Return the shape of a pooling kernel for x[N,H,W,C]; one spatial axis counts as W."""
    if not node.is_nhwc:
        raise OpError("pooling was not brought to NHWC")
    w = window_of(node, x)
    if len(w.kernel) > 2:
        raise OpError(f"pooling over {len(w.kernel)} axes")
    missing = 2 - len(w.kernel)
    image = [TensorType((t.shape[0], *((1,) * missing), *t.shape[1:]), t.dtype) for t in (x, y)]
    kernel, stride, dilation = ((1,) * missing + sizes for sizes in (w.kernel, w.stride, w.dilation))
    begin, end = (0,) * missing + w.pad_begin, (0,) * missing + w.pad_end
    return Pool(
        **asdict(row_params(image[0], image[1])), k_h=kernel[0], k_w=kernel[1],
        stride_h=stride[0], stride_w=stride[1], dil_h=dilation[0], dil_w=dilation[1],
        pad_top=begin[0], pad_left=begin[1], pad_bottom=end[0], pad_right=end[1],
    )  # fmt: skip


def lower_max(node: Node, ctx: LowerCtx) -> None:
    """One `max_pool`, and a requantisation when the output is quantised otherwise."""
    x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
    same = x.type.quant == y.type.quant
    if _planar(node) and same:
        emit_window(ctx, x, y, window_of(node, x.type), "max")
        if len(node.outputs) > 1 and node.outputs[1]:
            order = node.int_("storage_order")
            emit_window_arg(ctx, x, ctx.write(node.outputs[1]), window_of(node, x.type), column_major=order)
        return
    target = y if same else ctx.temp(TensorType(y.type.shape, x.type.dtype, x.type.quant), f"{node.name}_max")
    shape = geometry(node, x.type, y.type)
    ctx.emit(f"max_pool_{x.type.dtype.value}", {"in": x, "out": target}, shape, rows=(0, shape.out_h))
    if not same:
        emit_requantize(ctx, target, y.type, node.name, y)


def lower_average(node: Node, ctx: LowerCtx) -> None:
    """One `avg_pool`."""
    x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
    if _planar(node) and x.type.quant is None and clamp_of(node) == (-math.inf, math.inf):
        emit_window(ctx, x, y, window_of(node, x.type), "average", include_pad=node.int_("count_include_pad"))
        return
    shape, include_pad = geometry(node, x.type, y.type), node.int_("count_include_pad")
    kernel, operands, rows = f"avg_pool_{x.type.dtype.value}", {"in": x, "out": y}, (0, shape.out_h)
    if is_tflite(node):
        _, *bounds = result_codes(y.type, *clamp_of(node)).bounds
        ctx.emit(f"{kernel}q31", operands, WholeAverage(shape, 0, _half(node), *bounds), rows=rows)
        return
    qx, qy = x.type.quant, y.type.quant
    if qx is None or qy is None:
        ctx.emit(kernel, operands, AverageFloat(shape, include_pad, Clamp(*clamp_of(node))), rows=rows)
        return
    out = OutCodes(qy.zero_point[0], *act_range(*clamp_of(node), qy, y.type.dtype))
    codes = AverageCodes(shape, include_pad, qx.zero_point[0], out, qx.scale[0], qy.scale[0])
    if is_whole(window_of(node, x.type)) and not node.int_("part"):
        ctx.emit(kernel, operands, codes, rows=rows)
    else:
        ctx.emit(f"{kernel}w", operands, AverageWindows(codes, _half(node)), rows=rows)


def _window(p: Pool, rows: range) -> Window:
    begin, end = (p.pad_top, p.pad_left), (p.pad_bottom, p.pad_right)
    kernel, stride, dilation = (p.k_h, p.k_w), (p.stride_h, p.stride_w), (p.dil_h, p.dil_w)
    return Window((p.in_h, p.in_w), (len(rows), p.out_w), kernel, stride, dilation, begin, end)


def _interpret_max(arrays: Arrays, p: Pool, rows: range) -> None:
    x = rows_of(arrays["in"], p)
    store_rows(arrays["out"], maximum(taps(x, _window(p, rows), lowest(x.dtype), rows.start)), p, rows)


def _interpret_float(arrays: Arrays, p: AverageFloat, rows: range) -> None:
    x, window = rows_of(arrays["in"], p.shape), _window(p.shape, rows)
    y = average_floats(taps(x, window, 0, rows.start), counts(window, p.include_pad == 1, rows.start))
    y = np.clip(y, x.dtype.type(F32(p.clamp.act_min)), x.dtype.type(F32(p.clamp.act_max)))
    store_rows(arrays["out"], y, p.shape, rows)


def _parts(arrays: Arrays, p: AverageCodes, rows: range) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the codes of the window positions less the zero point, and how many of them count."""
    window = _window(p.shape, rows)
    x = rows_of(arrays["in"], p.shape).astype(np.int64) - p.in_zp
    return taps(x, window, 0, rows.start), counts(window, p.include_pad == 1, rows.start)


def _interpret_codes(arrays: Arrays, p: AverageCodes, rows: range) -> None:
    y = average_codes(*_parts(arrays, p, rows), (F32(p.in_scale), F32(p.out_scale)), *p.out.bounds)
    store_rows(arrays["out"], y, p.shape, rows)


def _interpret_windows(arrays: Arrays, p: AverageWindows, rows: range) -> None:
    c = p.codes
    y = average_real(*_parts(arrays, c, rows), (F32(c.in_scale), F32(c.out_scale)), *c.out.bounds, p.half)
    store_rows(arrays["out"], y, c.shape, rows)


def _interpret_whole(arrays: Arrays, p: WholeAverage, rows: range) -> None:
    window = _window(p.shape, rows)
    x = rows_of(arrays["in"], p.shape).astype(np.int64) + p.half
    total = np.sum(np.stack(taps(x, window, 0, rows.start)), axis=0)
    n = np.maximum(counts(window, False, rows.start), 1)[..., None].astype(np.int64)
    y = np.where(total > 0, (total + n // 2) // n, -((n // 2 - total) // n))
    store_rows(arrays["out"], np.clip(y - p.half, p.out_min, p.out_max), p.shape, rows)


def _average_rows(p: AverageCodes | AverageFloat | WholeAverage, y: int) -> tuple[int, int]:
    return window_rows(p.shape, y)


_OPERANDS = ("in in", "out out")
KERNELS = (
    *(
        KernelDef(f"max_pool_{t.value}", _OPERANDS, Pool, interpret_rows=_interpret_max, row_window=window_rows,
                  template="max_pool", needs_math=t.is_float, kind=t.value, doc="maximum of windows")
        for t in (DType.S8, DType.U8, DType.S16, DType.F32, DType.F64)
    ),
    *(
        KernelDef(f"avg_pool_{t.value}", _OPERANDS, AverageCodes, interpret_rows=_interpret_codes,
                  row_window=_average_rows, template="avg_pool_s8", kind=t.value,
                  doc="quantized average of the whole image")
        for t in (DType.S8, DType.S16)
    ),
    *(
        KernelDef(f"avg_pool_{t.value}w", _OPERANDS, AverageWindows, interpret_rows=_interpret_windows,
                  template="avg_pool_s8w", kind=t.value,
                  doc="quantized average of windows")
        for t in (DType.S8, DType.S16)
    ),
    *(
        KernelDef(f"avg_pool_{t.value}q31", _OPERANDS, WholeAverage, interpret_rows=_interpret_whole,
                  row_window=_average_rows, template="avg_pool_q31", kind=t.value,
                  doc="average of windows of codes, half away from zero")
        for t in (DType.S8, DType.S16)
    ),
    *(
        KernelDef(f"avg_pool_{t.value}", _OPERANDS, AverageFloat, interpret_rows=_interpret_float,
                  row_window=_average_rows, template="avg_pool_f32", needs_math=True, kind=t.value,
                  doc="average of windows")
        for t in (DType.F32, DType.F64)
    ),
)  # fmt: skip

_ATTRS: Mapping[str, Attr] = {**WINDOW, "kernel_shape": IntList(), "ceil_mode": Int(0)}
_AVERAGE = {"count_include_pad": Int(0), "unsigned": Int(0), "mixed": Int(0), "part": Int(0), **ROUNDING}
OPS = (
    OpDef("MaxPool", infer, derived, lower_max, {**_ATTRS, "layout": LAYOUT, "storage_order": Int(0)},
          max_version=22, int8=True, doc="maximum of windows"),
    OpDef("AveragePool", infer, derived, lower_average, {**_ATTRS, **CLAMP, **_AVERAGE, "layout": LAYOUT},
          max_version=22, int8=True, doc="average of windows"),
    OpDef("LpPool", infer, derived, lower_lp, {**_ATTRS, "p": Int(2)}, max_version=22,
          doc="p-norm of windows"),
)  # fmt: skip
