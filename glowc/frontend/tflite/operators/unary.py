"""Functions of one operand: of int8 codes a table, of floats the operator itself, of int16 codes one in fixed point."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from glowc.frontend.problems import NodeError
from glowc.frontend.tflite.net import Net
from glowc.frontend.tflite.operators.elementwise import table
from glowc.frontend.tflite.operators.options import option
from glowc.frontend.tflite.reader import Operator
from glowc.graph import fixed_unary
from glowc.graph.attrs import AttrValue
from glowc.graph.types import DType, TensorType

_FLOAT = {
    "ABS": "Abs", "NEG": "Neg", "EXP": "Exp", "LOG": "Log", "SQRT": "Sqrt", "SIN": "Sin", "COS": "Cos",
    "FLOOR": "Floor", "CEIL": "Ceil", "ROUND": "Round", "RELU": "Relu", "ELU": "Elu", "HARD_SWISH": "HardSwish",
    "LOGICAL_NOT": "Not", "SIGN": "Sign",
}  # fmt: skip
_TABLES: Mapping[str, Callable[[np.ndarray, float, fixed_unary.Range], np.ndarray]] = {
    "ABS": fixed_unary.abs_codes, "RELU": fixed_unary.relu_codes, "RELU6": fixed_unary.relu6_codes,
    "RELU_N1_TO_1": fixed_unary.relu_n1_to_1_codes, "ELU": fixed_unary.elu_codes,
    "HARD_SWISH": fixed_unary.hard_swish_codes, "RSQRT": fixed_unary.rsqrt_codes,
    "RELU_0_TO_1": fixed_unary.relu_0_to_1_codes, "EXP": fixed_unary.exp_codes,
    "LOG": fixed_unary.log_codes,
}  # fmt: skip
_BOUNDS = {"RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0), "RELU_0_TO_1": (0.0, 1.0)}


def unary(operator: Operator, net: Net) -> None:
    """One function, by the kind of its operand."""
    x, y = net.type(operator.inputs[0]), net.type(operator.outputs[0])
    if x.quant is None:
        _floats(operator, net, x)
    elif operator.code in _TABLES and x.dtype is y.dtype is DType.S8:
        found = fixed_unary.table_of(_TABLES[operator.code], x, y)
        table(net, operator.inputs[0], operator.outputs[0], found)
    elif operator.code in _WIDE and x.dtype is DType.S16:
        _WIDE[operator.code](operator, net)
    else:
        raise NodeError(f"{operator.code} of {x} is not supported")


def _floats(operator: Operator, net: Net, x: TensorType) -> None:
    value, out = net.value(operator.inputs[0]), operator.outputs[0]
    if operator.code == "RSQRT":
        net.emit("Reciprocal", (net.emit("Sqrt", (value,), type_=x),), out=out)
    elif operator.code == "SQUARE":
        net.emit("Mul", (value, value), out=out)
    elif operator.code in _BOUNDS:
        low, high = _BOUNDS[operator.code]
        net.emit("Clip", (value,), {"min": low, "max": high}, out=out)
    else:
        net.emit(_FLOAT[operator.code], (value,), out=out)


def _rescaled(alpha: float) -> Callable[[Operator, Net], None]:
    def handler(operator: Operator, net: Net) -> None:
        attrs: dict[str, AttrValue] = {"alpha": alpha, "dtype": "s16"}
        net.emit("FixedRescale", (net.value(operator.inputs[0]),), attrs, out=operator.outputs[0])

    return handler


def _relu6_wide(operator: Operator, net: Net) -> None:
    """Codes between those of 0 and of 6, of one quantisation."""
    x = net.type(operator.inputs[0])
    assert x.quant is not None
    six = int(fixed_unary.relu6_codes(np.asarray([1 << 40]), x.quant.scale[0], fixed_unary.range_of(x))[0])
    plain = net.plain(operator.inputs[0])
    clipped = net.emit("Clip", (plain,), {"min": float(x.quant.zero_point[0]), "max": float(six)})
    net.emit("AssignQuant", (clipped,), out=operator.outputs[0])


def _rsqrt_wide(operator: Operator, net: Net) -> None:
    net.emit("FixedRsqrt", (net.value(operator.inputs[0]),), out=operator.outputs[0])


_WIDE = {
    "ABS": _rescaled(-1.0), "RELU": _rescaled(0.0), "RELU6": _relu6_wide, "RSQRT": _rsqrt_wide,
}  # fmt: skip


def gelu(operator: Operator, net: Net) -> None:
    """GELU by the error function or, `approximate`, by tanh; of int8 codes a table."""
    x, y, near = net.type(operator.inputs[0]), net.type(operator.outputs[0]), bool(option(operator, "Approximate"))
    if x.quant is None:
        attrs: dict[str, AttrValue] = {"approximate": "tanh" if near else "none"}
        net.emit("Gelu", (net.value(operator.inputs[0]),), attrs, out=operator.outputs[0])
        return
    if not x.dtype is y.dtype is DType.S8:
        raise NodeError(f"GELU of {x} is not supported")
    function = fixed_unary.gelu_tanh_codes if near else fixed_unary.gelu_codes
    table(net, operator.inputs[0], operator.outputs[0], fixed_unary.table_of(function, x, y))


HANDLERS = {**dict.fromkeys((*_FLOAT, *_TABLES, "SQUARE"), unary), "GELU": gelu}
