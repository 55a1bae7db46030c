"""Windows, reductions, and what searches or runs along an axis."""

from __future__ import annotations

import numpy as np

from glowc.frontend.problems import NodeError
from glowc.frontend.tflite.net import NHWC, Net
from glowc.frontend.tflite.operators.movement import axis_of, ints
from glowc.frontend.tflite.operators.options import clamp, fixed, option, padding, positive
from glowc.frontend.tflite.reader import Operator
from glowc.graph.attrs import AttrValue
from glowc.graph.types import DType


def pool(operator: Operator, net: Net) -> None:
    """AVERAGE_POOL_2D and MAX_POOL_2D."""
    x = net.type(operator.inputs[0])
    kernel = positive(operator, "FilterHeight", "FilterWidth")
    stride = positive(operator, "StrideH", "StrideW")
    attrs: dict[str, AttrValue] = {
        "kernel_shape": kernel, "strides": stride,
        "pads": padding(operator, x.shape[1:3], kernel, stride, (1, 1)), **NHWC,
    }  # fmt: skip
    value, bounds, out = net.value(operator.inputs[0]), clamp(operator), operator.outputs[0]
    if operator.code == "AVERAGE_POOL_2D":
        unsigned = int(net.tensor(operator.inputs[0]).kind == "uint8")
        net.emit("AveragePool", (value,), {**attrs, **bounds, "unsigned": unsigned, **fixed(x)}, out=out)
        return
    if bounds and x.quant is None and not x.dtype.is_float:
        raise NodeError(f"a fused activation of {x} without a scale")
    if not bounds:
        net.emit("MaxPool", (value,), attrs, out=out)
        return
    largest = net.emit("MaxPool", (value,), attrs, like=out)
    net.emit("Clip", (largest,), {k.removeprefix("act_"): v for k, v in bounds.items()}, out=out)


def mean(operator: Operator, net: Net) -> None:
    """MEAN over constant axes."""
    axes = net.need(operator.inputs[1], "the axes").reshape(-1)
    x = net.type(operator.inputs[0])
    attrs: dict[str, AttrValue] = {
        "axes": tuple(sorted({int(a) % x.rank for a in axes})),
        "keepdims": option(operator, "KeepDims"), **fixed(x),
    }  # fmt: skip
    net.emit("ReduceMean", (net.value(operator.inputs[0]),), attrs, out=operator.outputs[0])


_EXTREMES = {"REDUCE_MAX": "ReduceMax", "REDUCE_MIN": "ReduceMin"}
_ARGS = {"ARG_MAX": "ArgMax", "ARG_MIN": "ArgMin"}
ONNX_KINDS = {
    DType.F32: 1, DType.U8: 2, DType.S8: 3, DType.U16: 4, DType.S16: 5, DType.S32: 6, DType.S64: 7, DType.BOOL: 9,
    DType.F64: 11, DType.U32: 12, DType.U64: 13,
}  # fmt: skip
_L2_LEAST = 1e-6


def _axes(operator: Operator, net: Net) -> dict[str, AttrValue]:
    rank = net.type(operator.inputs[0]).rank
    axes = sorted({axis_of(a, rank) for a in ints(net, operator.inputs[1], "the axes")})
    return {"axes": tuple(axes), "keepdims": option(operator, "KeepDims")}


def total(operator: Operator, net: Net) -> None:
    """SUM over constant axes."""
    attrs = {**_axes(operator, net), **fixed(net.type(operator.inputs[0]))}
    net.emit("ReduceSum", (net.value(operator.inputs[0]),), attrs, out=operator.outputs[0])


def extreme(operator: Operator, net: Net) -> None:
    """REDUCE_MAX and REDUCE_MIN: of codes, which have one quantisation, as of whole numbers."""
    x, y = net.type(operator.inputs[0]), net.type(operator.outputs[0])
    if x.quant != y.quant:
        raise NodeError(f"the input {x} is quantized otherwise than the result {y}")
    net.emit(_EXTREMES[operator.code], (net.value(operator.inputs[0]),), _axes(operator, net), out=operator.outputs[0])


def product(operator: Operator, net: Net) -> None:
    """REDUCE_PROD of floats and whole numbers."""
    x = net.type(operator.inputs[0])
    if x.quant is not None:
        raise NodeError(f"REDUCE_PROD of codes {x} is not supported")
    net.emit("ReduceProd", (net.value(operator.inputs[0]),), _axes(operator, net), out=operator.outputs[0])


def any_all(operator: Operator, net: Net) -> None:
    """REDUCE_ANY and REDUCE_ALL: the largest and the smallest of 0 and 1."""
    numbers = net.emit("Cast", (net.value(operator.inputs[0]),), {"to": ONNX_KINDS[DType.S8]})
    op = "ReduceMax" if operator.code == "REDUCE_ANY" else "ReduceMin"
    found = net.emit(op, (numbers,), _axes(operator, net))
    net.emit("Cast", (found,), {"to": ONNX_KINDS[DType.BOOL]}, out=operator.outputs[0])


def arg(operator: Operator, net: Net) -> None:
    """ARG_MAX and ARG_MIN along a constant axis."""
    x, y = net.type(operator.inputs[0]), net.type(operator.outputs[0])
    axis = axis_of(ints(net, operator.inputs[1], "the axis")[0], x.rank)
    attrs: dict[str, AttrValue] = {"axis": axis, "keepdims": 0}
    found = net.emit(_ARGS[operator.code], (net.plain(operator.inputs[0]),), attrs)
    if y.dtype is DType.S64:
        net.emit("Identity", (found,), out=operator.outputs[0])
    else:
        net.emit("Cast", (found,), {"to": ONNX_KINDS[y.dtype]}, out=operator.outputs[0])


def cast(operator: Operator, net: Net) -> None:
    """CAST: codes are the whole numbers that they are."""
    y = net.type(operator.outputs[0])
    if y.dtype not in ONNX_KINDS:
        raise NodeError(f"a cast to {y}")
    found = net.emit("Cast", (net.plain(operator.inputs[0]),), {"to": ONNX_KINDS[y.dtype]})
    net.emit("AssignQuant" if y.quant is not None else "Identity", (found,), out=operator.outputs[0])


def cumsum(operator: Operator, net: Net) -> None:
    """CUMSUM along a constant axis."""
    x = net.type(operator.inputs[0])
    attrs: dict[str, AttrValue] = {
        "axis": axis_of(ints(net, operator.inputs[1], "the axis")[0], x.rank),
        "exclusive": option(operator, "Exclusive"), "reverse": option(operator, "Reverse"),
    }  # fmt: skip
    op = "CumSum" if x.quant is None else "FixedCumSum"
    net.emit(op, (net.value(operator.inputs[0]),), attrs, out=operator.outputs[0])


def l2_pool(operator: Operator, net: Net) -> None:
    """L2_POOL_2D of floats: the root of the average square."""
    x, out = net.type(operator.inputs[0]), operator.outputs[0]
    if x.quant is not None:
        raise NodeError(f"L2_POOL_2D of codes {x} is not supported")
    kernel = positive(operator, "FilterHeight", "FilterWidth")
    stride = positive(operator, "StrideH", "StrideW")
    attrs: dict[str, AttrValue] = {
        "kernel_shape": kernel, "strides": stride,
        "pads": padding(operator, x.shape[1:3], kernel, stride, (1, 1)), **NHWC,
    }  # fmt: skip
    value, bounds = net.value(operator.inputs[0]), clamp(operator)
    square = net.emit("Mul", (value, value), type_=x)
    average = net.emit("AveragePool", (square,), attrs, like=out)
    if not bounds:
        net.emit("Sqrt", (average,), out=out)
        return
    root = net.emit("Sqrt", (average,), like=out)
    net.emit("Clip", (root,), {k.removeprefix("act_"): v for k, v in bounds.items()}, out=out)


def l2_normalization(operator: Operator, net: Net) -> None:
    """L2_NORMALIZATION along the last axis; sums of squares are at least 1e-6."""
    x, value = net.type(operator.inputs[0]), net.value(operator.inputs[0])
    if x.quant is not None:
        net.emit("FixedL2Norm", (value,), out=operator.outputs[0])
        return
    square = net.emit("ReduceSumSquare", (value,), {"axes": (x.rank - 1,), "keepdims": 1})
    least = net.add_const("least", np.asarray(_L2_LEAST, np.float32))
    root = net.emit("Sqrt", (net.emit("Max", (square, least)),))
    net.emit("Div", (value, root), out=operator.outputs[0])


HANDLERS = {
    "AVERAGE_POOL_2D": pool, "MAX_POOL_2D": pool, "MEAN": mean,
    "SUM": total, **dict.fromkeys(_EXTREMES, extreme), **dict.fromkeys(_ARGS, arg), "CAST": cast, "CUMSUM": cumsum,
    "REDUCE_PROD": product, **dict.fromkeys(("REDUCE_ANY", "REDUCE_ALL"), any_all),
    "L2_POOL_2D": l2_pool, "L2_NORMALIZATION": l2_normalization,
}  # fmt: skip
