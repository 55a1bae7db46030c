"""Functions of two or more operands besides sums and products: quotients, relations, extremes, choices."""

from __future__ import annotations

import math

import numpy as np

from glowc.frontend.problems import NodeError
from glowc.frontend.tflite.net import Net
from glowc.frontend.tflite.operators.options import clamp, operands
from glowc.frontend.tflite.reader import Operator
from glowc.graph.types import DType, TensorType

_RELATIONS = {
    "LESS": ("<", "Less"), "LESS_EQUAL": ("<=", "LessOrEqual"), "GREATER": (">", "Greater"),
    "GREATER_EQUAL": (">=", "GreaterOrEqual"), "EQUAL": ("==", "Equal"), "NOT_EQUAL": ("!=", "Equal"),
}  # fmt: skip
_FLOAT = {"FLOOR_DIV": "FloorDiv", "FLOOR_MOD": "Mod"}
_LOGIC = {"LOGICAL_AND": "And", "LOGICAL_OR": "Or"}
_EXTREMES = {"MAXIMUM": "Max", "MINIMUM": "Min"}


def _pair(operator: Operator, net: Net) -> tuple[list[str], list[TensorType]]:
    both = operands(operator, 2)
    return [net.value(i) for i in both], [net.type(i) for i in both]


def divide(operator: Operator, net: Net) -> None:
    """DIV of codes, floats and whole numbers."""
    values, types = _pair(operator, net)
    bounds = clamp(operator)
    if types[0].quant is not None:
        net.emit("FixedDiv", values, bounds, out=operator.outputs[0])
        return
    if bounds and not types[0].dtype.is_float:
        raise NodeError("a fused activation of integers")
    net.emit("Div", values, bounds, out=operator.outputs[0])


def relation(operator: Operator, net: Net) -> None:
    """Relations: of codes with their scales, else of the numbers."""
    values, types = _pair(operator, net)
    sign, name = _RELATIONS[operator.code]
    if types[0].quant is not None:
        net.emit("FixedCompare", values, {"relation": sign}, out=operator.outputs[0])
    elif sign == "!=":
        equal = net.emit(name, values)
        net.emit("Not", (equal,), out=operator.outputs[0])
    else:
        net.emit(name, values, out=operator.outputs[0])


def floats(operator: Operator, net: Net) -> None:
    """FLOOR_DIV and FLOOR_MOD of floats and whole numbers."""
    values, types = _pair(operator, net)
    if types[0].quant is not None:
        raise NodeError(f"{operator.code} of codes {types[0]} is not supported")
    net.emit(_FLOAT[operator.code], values, out=operator.outputs[0])


def logic(operator: Operator, net: Net) -> None:
    """LOGICAL_AND and LOGICAL_OR."""
    net.emit(_LOGIC[operator.code], _pair(operator, net)[0], out=operator.outputs[0])


def squared_difference(operator: Operator, net: Net) -> None:
    """SQUARED_DIFFERENCE of codes, floats and whole numbers."""
    values, types = _pair(operator, net)
    if types[0].quant is not None:
        net.emit("FixedSquaredDifference", values, out=operator.outputs[0])
        return
    difference = net.emit("Sub", values)
    net.emit("Mul", (difference, difference), out=operator.outputs[0])


def extreme(operator: Operator, net: Net) -> None:
    """MAXIMUM and MINIMUM: of codes, which must have one quantisation, as of whole numbers."""
    out = operator.outputs[0]
    types = [net.type(i) for i in (*operands(operator, 2), out)]
    name = _EXTREMES[operator.code]
    if types[0].quant is None:
        net.emit(name, _pair(operator, net)[0], out=out)
        return
    if any(t.quant != types[0].quant for t in types):
        raise NodeError("operands and result need one scale and zero point")
    found = net.emit(name, [net.plain(i) for i in operands(operator, 2)])
    net.emit("AssignQuant", (found,), out=out)


def arc_tangent(operator: Operator, net: Net) -> None:
    """ATAN2 of floats: the angle of (second, first), by its quadrant."""
    (y, x), types = _pair(operator, net)
    if not types[0].dtype.is_float:
        raise NodeError(f"ATAN2 of {types[0]} is not supported")
    zero, half, pi = (net.add_const("angle", np.asarray(v, np.float32)) for v in (0.0, math.pi / 2, math.pi))
    flat = net.emit("Atan", (net.emit("Div", (y, x)),))
    below = net.emit("Less", (y, zero))
    turned = net.emit("Where", (below, net.emit("Sub", (flat, pi)), net.emit("Add", (flat, pi))))
    steep = net.emit("Where", (below, net.emit("Neg", (half,)), half))
    level = net.emit("Where", (net.emit("Equal", (y, zero)), y, steep))
    right = net.emit("Where", (net.emit("Greater", (x, zero)), flat, level))
    net.emit("Where", (net.emit("Less", (x, zero)), turned, right), out=operator.outputs[0])


def power(operator: Operator, net: Net) -> None:
    """POW of floats and whole numbers."""
    values, types = _pair(operator, net)
    if types[0].quant is not None:
        raise NodeError(f"POW of codes {types[0]} is not supported")
    net.emit("Pow", values, out=operator.outputs[0])


def prelu(operator: Operator, net: Net) -> None:
    """PRELU with slopes that are broadcast."""
    values, types = _pair(operator, net)
    net.emit("PRelu" if types[0].quant is None else "FixedPrelu", values, out=operator.outputs[0])


def select(operator: Operator, net: Net) -> None:
    """SELECT and SELECT_V2: operands and result have one quantisation; conditions of SELECT may be of whole rows."""
    out = net.type(operator.outputs[0])
    if any(net.type(i).quant != out.quant for i in operator.inputs[1:3]):
        raise NodeError("operands and result need one scale and zero point")
    condition, *both = (net.value(i) for i in operands(operator, 3))
    of, rank = net.types[condition], net.type(operator.inputs[1]).rank
    if operator.code == "SELECT" and of.rank == 1 < rank:
        condition = net.reshaped(condition, (*of.shape, *(1,) * (rank - 1)))
    net.emit("Where", (condition, *both), out=operator.outputs[0])


def add_n(operator: Operator, net: Net) -> None:
    """ADD_N of floats: sums from the left; of int8 codes of one quantisation, each scaled and added."""
    types = [net.type(i) for i in operator.inputs]
    values = [net.value(i) for i in operator.inputs]
    if types[0].quant is None:
        total = values[0]
        for value in values[1:-1]:
            total = net.emit("Add", (total, value))
        net.emit("Add", (total, values[-1]), out=operator.outputs[0])
        return
    if types[0].dtype is not DType.S8 or any(t.quant != types[0].quant for t in types):
        raise NodeError("operands need to be int8 of one scale and zero point")
    net.emit("FixedAddN", values, out=operator.outputs[0])


HANDLERS = {
    "DIV": divide, **dict.fromkeys(_RELATIONS, relation), **dict.fromkeys(_FLOAT, floats),
    **dict.fromkeys(_LOGIC, logic), "SQUARED_DIFFERENCE": squared_difference, **dict.fromkeys(_EXTREMES, extreme),
    "PRELU": prelu, **dict.fromkeys(("SELECT", "SELECT_V2"), select), "ADD_N": add_n, "POW": power,
    "ATAN2": arc_tangent,
}  # fmt: skip
