"""Element by element: sums and products with broadcasting, activations, changes of quantisation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from glowc.frontend.problems import NodeError
from glowc.frontend.tflite.net import Net
from glowc.frontend.tflite.operators.options import clamp, fixed, number, operands
from glowc.frontend.tflite.reader import Operator
from glowc.graph.fixed_functions import saturating_codes
from glowc.graph.types import DType, type_of

_FIXED = {"ADD": "FixedAdd", "SUB": "FixedSub", "MUL": "FixedMul"}
_FLOAT = {"ADD": "Add", "SUB": "Sub", "MUL": "Mul"}


def arithmetic(operator: Operator, net: Net) -> None:
    """ADD, SUB, MUL of codes, floats or integers."""
    types = [net.type(i) for i in operands(operator, 2)]
    codes = any(t.quant is not None for t in types)
    names = _FIXED if codes else _FLOAT
    if operator.code not in names:
        raise NodeError(f"{operator.code} of codes {types[0]} is not supported")
    bounds = clamp(operator)
    if bounds and not codes and not types[0].dtype.is_float:
        raise NodeError("a fused activation of integers")
    net.emit(names[operator.code], [net.value(i) for i in operands(operator, 2)], bounds, out=operator.outputs[0])


def table(net: Net, source: int, out: int, codes: np.ndarray) -> None:
    """Let the tensor `out` be a function of int8 codes, given by its 256 results."""
    found = np.asarray(codes, np.int8)
    net.emit("Lut", (net.value(source), net.add_const("table", found, type_of(found))), out=out)


def _saturating(function: str, out_bits: int, low: int, high: int, offset: int) -> Callable[[Operator, Net], None]:
    def handler(operator: Operator, net: Net) -> None:
        x = net.type(operator.inputs[0])
        if x.quant is None:
            names = {"logistic": "Sigmoid", "tanh": "Tanh"}
            net.emit(names[function], (net.value(operator.inputs[0]),), out=operator.outputs[0])
        elif x.dtype is DType.S8:
            centred = np.arange(-128, 128, dtype=np.int64) - x.quant.zero_point[0]
            found = saturating_codes(centred, x.quant.scale[0], function, out_bits, low, high, offset)
            table(net, operator.inputs[0], operator.outputs[0], found)
        else:
            net.emit(f"Fixed{function.capitalize()}", (net.value(operator.inputs[0]),), out=operator.outputs[0])

    return handler


def quantize(operator: Operator, net: Net) -> None:
    """QUANTIZE: floats to codes, or codes to codes."""
    x, y = net.type(operator.inputs[0]), net.type(operator.outputs[0])
    if y.quant is None or (x.quant is None and not x.dtype.is_float):
        raise NodeError(f"{x} to {y} without a scale", "convert the model with full integer quantization")
    op = "FixedQuantize" if x.dtype.is_float else "FixedRescale"
    net.emit(op, (net.value(operator.inputs[0]),), {"dtype": y.dtype.value}, out=operator.outputs[0])


def dequantize(operator: Operator, net: Net) -> None:
    """DEQUANTIZE of codes; values of float16 are float32 already."""
    source, out = operator.inputs[0], operator.outputs[0]
    if net.type(source).dtype is DType.F32:
        net.define(out, net.value(source))
    else:
        net.emit("DequantizeLinear", (net.value(source),), out=out)


def leaky_relu(operator: Operator, net: Net) -> None:
    """LEAKY_RELU."""
    x, y = net.type(operator.inputs[0]), net.type(operator.outputs[0])
    alpha = {"alpha": number(operator, "Alpha", 0.0)}
    if x.quant is None:
        net.emit("LeakyRelu", (net.value(operator.inputs[0]),), alpha, out=operator.outputs[0])
    else:
        attrs = {**alpha, "dtype": y.dtype.value}
        net.emit("FixedRescale", (net.value(operator.inputs[0]),), attrs, out=operator.outputs[0])


def softmax(operator: Operator, net: Net) -> None:
    """SOFTMAX along the last axis."""
    x, y = net.type(operator.inputs[0]), net.type(operator.outputs[0])
    if "Beta" not in operator.options:
        raise NodeError("its options are missing", "convert the network again, e.g. with tf.lite.TFLiteConverter")
    beta = number(operator, "Beta", 1.0)
    value = net.value(operator.inputs[0])
    if x.quant is not None:
        net.emit("Softmax", (value,), {"beta": beta, "dtype": y.dtype.value, **fixed(x)}, out=operator.outputs[0])
        return
    if beta != 1.0:
        value = net.emit("Mul", (value, net.add_const("beta", np.asarray(beta, np.float32))), type_=x)
    net.emit("Softmax", (value,), {"axis": -1}, out=operator.outputs[0])


def log_softmax(operator: Operator, net: Net) -> None:
    """LOG_SOFTMAX along the last axis."""
    value, x, y = net.value(operator.inputs[0]), net.type(operator.inputs[0]), net.type(operator.outputs[0])
    if x.quant is not None and (y.quant is None or (y.quant.scale[0], y.quant.zero_point[0]) != (1 / 16, 127)):
        raise NodeError(f"the result {y} needs the scale 1/16 and the zero point 127")
    net.emit("LogSoftmax", (value,), fixed(x), out=operator.outputs[0])


HANDLERS = {
    **dict.fromkeys(("ADD", "SUB", "MUL"), arithmetic),
    "QUANTIZE": quantize, "DEQUANTIZE": dequantize, "LEAKY_RELU": leaky_relu,
    "LOGISTIC": _saturating("logistic", 8, -128, 127, -128), "TANH": _saturating("tanh", 7, -128, 127, 0),
    "SOFTMAX": softmax, "LOG_SOFTMAX": log_softmax,
}  # fmt: skip
