"""Variables: VAR_HANDLE, READ_VARIABLE, ASSIGN_VARIABLE, CALL_ONCE become states of the graph.

A variable begins as the subgraph of CALL_ONCE assigns it, or as real zero. What is read after an assignment of the same
inference is what was assigned.
"""

from __future__ import annotations

import numpy as np

from glowc.frontend.problems import NodeError
from glowc.frontend.tflite.net import Net, Variable
from glowc.frontend.tflite.operators.options import option
from glowc.frontend.tflite.reader import Operator
from glowc.graph.types import TensorType


def _name(operator: Operator) -> str:
    """Return what tells variables apart: container and shared name."""
    return "/".join(_text(operator, key) for key in ("Container", "SharedName"))


def _text(operator: Operator, key: str) -> str:
    found = operator.options.get(key)
    return found.decode("utf-8", "replace") if isinstance(found, bytes) else ""


def var_handle(operator: Operator, net: Net) -> None:
    """VAR_HANDLE: the output is a handle, not a value."""
    name = _name(operator)
    net.handles[operator.outputs[0]] = name
    net.variables.setdefault(name, Variable())


def _variable(operator: Operator, net: Net) -> Variable:
    name = net.handles.get(operator.inputs[0])
    if name is None:
        raise NodeError("its first input is no handle of a variable")
    return net.variables[name]


def read_variable(operator: Operator, net: Net) -> None:
    """READ_VARIABLE: the state, or what was assigned to it."""
    variable, type_ = _variable(operator, net), net.type(operator.outputs[0])
    if not variable.now:
        variable.value = variable.now = net.fresh(net.tensor(operator.outputs[0]).name)
        net.types[variable.value] = type_
        variable.initial = _initial(variable.initial, type_)
    elif net.types[variable.now].shape != type_.shape:
        raise NodeError(f"the variable is {net.types[variable.now]}, read as {type_}")
    net.define(operator.outputs[0], variable.now)


def _initial(array: np.ndarray | None, type_: TensorType) -> np.ndarray:
    """Return what a variable of a type begins with."""
    if array is None:
        zero = type_.quant.zero_point[0] if type_.quant is not None else 0
        return np.full(type_.shape, zero, type_.dtype.numpy)
    if array.shape != type_.shape or array.dtype != type_.dtype.numpy:
        raise NodeError(f"the variable begins as {array.dtype}{list(array.shape)} but is {type_}")
    return array


def assign_variable(operator: Operator, net: Net) -> None:
    """ASSIGN_VARIABLE."""
    _variable(operator, net).now = net.value(operator.inputs[1])


def call_once(operator: Operator, net: Net) -> None:
    """CALL_ONCE: its subgraph assigns constants."""
    number = option(operator, "InitSubgraphIndex")
    if not 0 <= number < len(net.subgraphs):
        raise NodeError(f"subgraph {number} is none of the file's {len(net.subgraphs)}")
    inner = Net(net.subgraphs[number], net.subgraphs)
    for op in inner.graph.operators:
        if op.code == "VAR_HANDLE":
            var_handle(op, inner)
        elif op.code == "ASSIGN_VARIABLE":
            name = inner.handles.get(op.inputs[0], "")
            array = inner.need(op.inputs[1], "the initial value")
            net.variables.setdefault(name, Variable()).initial = array
        else:
            raise NodeError(f"its subgraph has {op.label}; only constants are assigned before the first inference")


HANDLERS = {
    "VAR_HANDLE": var_handle, "READ_VARIABLE": read_variable, "ASSIGN_VARIABLE": assign_variable,
    "CALL_ONCE": call_once,
}  # fmt: skip
