"""Convolutions and fully connected layers: NHWC and O,kH,kW,I as the file has them, nothing is transposed."""

from __future__ import annotations

import math
import struct
from dataclasses import replace

import numpy as np

from glowc.frontend.problems import NodeError
from glowc.frontend.tflite.net import NHWC, Net
from glowc.frontend.tflite.operators.movement import Ints, ints
from glowc.frontend.tflite.operators.options import clamp, operands, option, padding, positive, same_count
from glowc.frontend.tflite.reader import Operator
from glowc.graph.attrs import AttrValue
from glowc.graph.fixed_point import multiplier
from glowc.graph.types import DType, TensorType
from glowc.ops.integer import fixed_bounds
from glowc.ops.requant_shift import Shift

_TRANSPOSE_OPTIONS = struct.Struct("<3i")  # padding (1 SAME, 2 VALID), strides along rows and columns
_MOST = 31  # shifts of a product in 64 bits


def rounding(operator: Operator, net: Net, bias: int = 2) -> dict[str, AttrValue]:
    """Return how a layer on codes rounds: sums in 64 bits for int16, unless its bias is of 32; nothing for floats.

    Of uint8 TensorFlow Lite, whose runtime for microcontrollers has no such convolutions, rounds products of scales.
    """
    x = net.type(operator.inputs[0])
    if x.quant is None:
        return {}
    index = operator.inputs[bias] if len(operator.inputs) > bias else -1
    if x.dtype is DType.S16 and (index < 0 or net.tensor(index).kind == "int64"):
        return {"rounding": "tflite_wide"}
    single = net.tensor(operator.inputs[0]).kind == "uint8" and operator.code != "FULLY_CONNECTED"
    return {"rounding": "tflite_single" if single else "tflite"}


def conv_2d(operator: Operator, net: Net) -> None:
    """CONV_2D: groups follow from the channels of input and weights."""
    x, weights = net.type(operator.inputs[0]), net.type(operator.inputs[1])
    if x.rank != 4 or weights.rank != 4 or x.shape[3] % weights.shape[3]:
        raise NodeError(f"input {x} and weights {weights} do not fit")
    _convolve(operator, net, _weights(operator, net), x.shape[3] // weights.shape[3])


def depthwise_conv_2d(operator: Operator, net: Net) -> None:
    """DEPTHWISE_CONV_2D: weights 1,kH,kW,O; output channel o reads input channel o / multiplier."""
    x, (array, type_) = net.type(operator.inputs[0]), _weights(operator, net)
    if type_.rank != 4 or type_.shape[0] != 1 or x.rank != 4 or type_.shape[3] % x.shape[3]:
        raise NodeError(f"input {x} and depthwise weights {type_} do not fit")
    if option(operator, "DepthMultiplier"):  # newer files may leave it out
        same_count(operator, "DepthMultiplier", type_.shape[3] // x.shape[3])
    quant = type_.quant
    if quant is not None and quant.per_axis:
        quant = replace(quant, axis=0)
    array = np.ascontiguousarray(array.transpose(3, 1, 2, 0))
    _convolve(operator, net, (array, TensorType(array.shape, type_.dtype, quant)), x.shape[3])


def _weights(operator: Operator, net: Net) -> tuple[np.ndarray, TensorType]:
    """Return the constant weights and their type; those of a layer on floats as floats or int8 codes."""
    return net.need(operator.inputs[1], "the weights"), net.type(operator.inputs[1])


def _convolve(operator: Operator, net: Net, weights: tuple[np.ndarray, TensorType], groups: int) -> None:
    x, out = operator.inputs[0], operator.outputs[0]
    array, type_ = weights
    stride = positive(operator, "StrideH", "StrideW")
    dilation = positive(operator, "DilationHFactor", "DilationWFactor")
    kernel = type_.shape[1:3]
    attrs = {
        "kernel_shape": kernel, "strides": stride, "dilations": dilation, "group": groups,
        "pads": padding(operator, net.type(x).shape[1:3], kernel, stride, dilation),
        **clamp(operator), **NHWC, **rounding(operator, net),
    }  # fmt: skip
    name = net.tensor(operator.inputs[1]).name
    values = (net.value(x), net.add_const(name, array, type_), bias_of(operator, net, type_.shape[0]))
    net.emit("Conv", values, attrs, out=out)


def bias_of(operator: Operator, net: Net, count: int, at: int = 2, of: int = 0) -> str:
    """Return the bias of a layer on input `of`, in units of its sums where they are of codes; else zeros."""
    is_float = net.type(operator.inputs[of]).quant is None
    index = operator.inputs[at] if len(operator.inputs) > at else -1
    if index < 0:
        return net.add_const(f"{net.tensor(operator.outputs[0]).name}.bias", np.zeros(count, _bias_kind(is_float)))
    array = net.need(index, "the bias")
    if array.size != count:
        raise NodeError(f"bias {list(array.shape)} but {count} output channels")
    array = array.reshape(count)
    if is_float:
        return net.add_const(net.tensor(index).name, array.astype(np.float32))
    return net.add_const(net.tensor(index).name, array)


def _bias_kind(is_float: bool) -> type[np.generic]:
    return np.float32 if is_float else np.int32


def fully_connected(operator: Operator, net: Net) -> None:
    """FULLY_CONNECTED: the input is seen as rows of the weights' length."""
    x, out = net.type(operator.inputs[0]), net.type(operator.outputs[0])
    type_ = net.type(operator.inputs[1])
    if type_.rank != 2 or x.elements % type_.shape[1]:
        raise NodeError(f"input {x} and weights {type_} do not fit")
    if option(operator, "WeightsFormat"):
        raise NodeError("shuffled weights are not supported", "convert the model for TensorFlow Lite Micro")
    rows, outputs = x.elements // type_.shape[1], type_.shape[0]
    flat = net.reshaped(net.value(operator.inputs[0]), (rows, type_.shape[1]))
    kept = option(operator, "KeepNumDims") and x.shape[-1:] == type_.shape[1:]
    shape = out.shape if not net.is_open(operator.outputs[0]) else (*x.shape[:-1], outputs) if kept else (rows, outputs)
    if math.prod(shape) != rows * outputs:
        raise NodeError(f"the result {out} is not {rows} times {outputs}")
    if net.const(operator.inputs[1]) is None:
        _product(operator, net, flat, shape)
        return
    if net.tensor(operator.inputs[1]).blocks is None:
        weights = net.add_const(net.tensor(operator.inputs[1]).name, *_weights(operator, net))
    else:
        weights = net.value(operator.inputs[1])
    values, attrs = (flat, weights, bias_of(operator, net, outputs)), _ending(operator, net)
    if shape == (rows, outputs):
        net.emit("FullyConnected", values, attrs, out=operator.outputs[0])
        return
    y = net.emit("FullyConnected", values, attrs, type_=out.with_shape((rows, outputs)))
    net.emit("Reshape", (y,), {"shape": shape}, out=operator.outputs[0])


def _product(operator: Operator, net: Net, rows: str, shape: Ints) -> None:
    """Emit a layer of floats whose weights [outputs, inputs] are computed: a product, a sum, bounds."""
    x, w, *rest = operator.inputs
    if not (net.type(x).dtype.is_float and net.type(w).dtype.is_float):
        raise NodeError("weights of codes that are computed", "use a product of two tensors: tf.linalg.matmul")
    y = net.emit("MatMul", (rows, net.emit("Transpose", (net.value(w),), {"perm": (1, 0)})))
    if rest and rest[0] >= 0:
        y = net.emit("Add", (y, net.value(rest[0])))
    bounds = {key.removeprefix("act_"): value for key, value in clamp(operator).items()}
    y = net.emit("Clip", (y,), bounds) if bounds else y
    net.emit("Reshape", (y,), {"shape": shape}, out=operator.outputs[0])


def _ending(operator: Operator, net: Net) -> dict[str, AttrValue]:
    """Return how a fully connected layer ends; that of uint8 rounds once, half up, as TensorFlow Lite alone has it."""
    x, w, y = (net.type(i) for i in (*operator.inputs[:2], operator.outputs[0]))
    bounds, unsigned = clamp(operator), net.tensor(operator.inputs[0]).kind == "uint8"
    if not unsigned or x.quant is None or w.quant is None or y.quant is None or w.quant.per_axis:
        return {**bounds, **rounding(operator, net)}
    mul, shift = multiplier(x.quant.scale[0] * w.quant.scale[0] / y.quant.scale[0])
    if not -_MOST <= shift < _MOST:
        raise NodeError(f"the scales of {x}, {w} and {y} are too far apart")
    least, most = bounds.get("act_min", -math.inf), bounds.get("act_max", math.inf)
    low, high = (code - y.quant.zero_point[0] for code in fixed_bounds(least, most, y.quant, y.dtype))
    return dict(Shift((mul,), (0,), 1 << (31 - shift), low, high).attrs(y.dtype))


def transpose_conv(operator: Operator, net: Net) -> None:
    """TRANSPOSE_CONV: shape of the result, weights O,kH,kW,I, input, bias; sums of int16 are always of 64 bits."""
    x, out = net.type(operator.inputs[2]), net.type(operator.outputs[0])
    array, type_ = _weights(operator, net)
    if net.is_open(operator.outputs[0]):
        out = out.with_shape(ints(net, operator.inputs[0], "the shape of the result"))
    if x.rank != 4 or type_.rank != 4 or out.rank != 4 or x.shape[3] != type_.shape[3]:
        raise NodeError(f"input {x}, weights {type_} and result {out} do not fit")
    stride, size = positive(operator, "StrideH", "StrideW"), out.shape[1:3]
    pads = padding(operator, size, type_.shape[1:3], stride, (1, 1))[:2]
    name, value = net.tensor(operator.inputs[1]).name, net.value(operator.inputs[2])
    bias = bias_of(operator, net, type_.shape[0], at=3, of=2)
    if x.quant is not None:
        single = net.tensor(operator.inputs[2]).kind == "uint8"
        wide = "tflite_wide" if x.dtype is DType.S16 else "tflite_single" if single else "tflite"
        attrs: dict[str, AttrValue] = {
            "out_size": size,
            "strides": stride,
            "pads": pads,
            "rounding": wide,
            **clamp(operator),
        }
        net.emit("FixedConvTranspose", (value, net.add_const(name, array, type_), bias), attrs, out=operator.outputs[0])
        return
    geometry = _spread(x, type_, stride, pads, size)
    values = (value, net.add_const(name, np.ascontiguousarray(array.transpose(3, 1, 2, 0))), bias)
    bounds = clamp(operator)
    if not bounds:
        net.emit("ConvTranspose", values, geometry, out=operator.outputs[0])
        return
    y = net.emit("ConvTranspose", values, geometry, like=operator.outputs[0])
    net.emit("Clip", (y,), {k.removeprefix("act_"): v for k, v in bounds.items()}, out=operator.outputs[0])


def _spread(x: TensorType, w: TensorType, stride: Ints, before: Ints, size: Ints) -> dict[str, AttrValue]:
    """Return the geometry of a transposed convolution with weights O,kH,kW,I; the result's size leads to the ends."""
    axes = zip(x.shape[1:3], stride, w.shape[1:3], before, size, strict=True)
    ends = [(n - 1) * step + k - pad - wanted for n, step, k, pad, wanted in axes]
    return {"kernel_shape": w.shape[1:3], "strides": stride, "pads": (*before, *ends), **NHWC}


def transpose_conv_bias(operator: Operator, net: Net) -> None:
    """Convolution2DTransposeBias of MediaPipe: input, weights O,kH,kW,I, bias; options are three numbers of 32 bits.

    As TRANSPOSE_CONV of floats, with the sizes that padding and stride lead to.
    """
    x, (array, type_) = net.type(operator.inputs[0]), _weights(operator, net)
    if len(operator.custom) < _TRANSPOSE_OPTIONS.size or not x.dtype.is_float or x.rank != 4 or type_.rank != 4:
        raise NodeError(f"input {x}, weights {type_} and {len(operator.custom)} bytes of options do not fit")
    mode, stride_w, stride_h = _TRANSPOSE_OPTIONS.unpack_from(operator.custom)
    stride = (stride_h, stride_w)
    if mode not in (1, 2) or min(stride) < 1:
        raise NodeError(f"padding {mode} and strides {list(stride)}")
    whole = [(n - 1) * s + k for n, s, k in zip(x.shape[1:3], stride, type_.shape[1:3], strict=True)]
    size = whole if mode == 2 else [n * s for n, s in zip(x.shape[1:3], stride, strict=True)]
    before = tuple(max(w - n, 0) // 2 for w, n in zip(whole, size, strict=True))
    weights = net.add_const(net.tensor(operator.inputs[1]).name, np.ascontiguousarray(array.transpose(3, 1, 2, 0)))
    values = (net.value(operator.inputs[0]), weights, bias_of(operator, net, type_.shape[0]))
    net.emit("ConvTranspose", values, _spread(x, type_, stride, before, tuple(size)), out=operator.outputs[0])


def batch_matmul(operator: Operator, net: Net) -> None:
    """BATCH_MATMUL: an adjoint operand has its last two axes exchanged."""
    values, types = [net.value(i) for i in operands(operator, 2)], [net.type(i) for i in operands(operator, 2)]
    attrs: dict[str, AttrValue] = {}
    is_float = types[0].dtype.is_float
    wide = types[0].dtype is DType.S16 and types[1].dtype is DType.S8
    alike = types[0].dtype == types[1].dtype or wide
    if not alike or (not is_float and any(type_.quant is None for type_ in types)):
        text = f"a product of {types[0]} and {types[1]}; both float, or both quantized alike, are needed"
        raise NodeError(text, "quantize both with 8 bits; TensorFlow Lite itself answers 0 for such products")
    if wide and types[1].quant is not None and any(types[1].quant.zero_point):
        text = f"the right operand {types[1]} of an int16 product has a zero point"
        raise NodeError(text, "quantize it symmetrically, with zero point 0, as TensorFlow Lite does")
    for type_ in types:
        if type_.quant is not None and type_.quant.per_axis:
            text = f"{type_} has scales of its own for parts of it"
            raise NodeError(text, "use one scale, or FULLY_CONNECTED; TensorFlow Lite answers 0 for such products")
    for at, (type_, key, flag) in enumerate(zip(types, ("perm_a", "perm_b"), ("AdjX", "AdjY"), strict=True)):
        if type_.rank < 2:
            raise NodeError(f"{type_} is no matrix")
        if not option(operator, flag):
            continue
        perm = (*range(type_.rank - 2), type_.rank - 1, type_.rank - 2)
        if is_float:  # a pass takes the transposed operand into the product where that is better
            values[at] = net.emit("Transpose", (values[at],), {"perm": perm})
        else:
            attrs[key] = perm
    net.emit("MatMul" if is_float else "FixedMatMul", values, attrs, out=operator.outputs[0])


HANDLERS = {
    "CONV_2D": conv_2d, "DEPTHWISE_CONV_2D": depthwise_conv_2d, "FULLY_CONNECTED": fully_connected,
    "TRANSPOSE_CONV": transpose_conv, "BATCH_MATMUL": batch_matmul, "Convolution2DTransposeBias": transpose_conv_bias,
}  # fmt: skip
