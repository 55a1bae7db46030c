"""RFFT2D and what follows it: a tensor of complex numbers has a last axis of real and imaginary part.

Other operators do not know of that last axis, and refuse complex numbers.
"""

from __future__ import annotations

import numpy as np

from glowc.frontend.problems import NodeError
from glowc.frontend.tflite.net import Net
from glowc.frontend.tflite.operators.movement import ints
from glowc.frontend.tflite.reader import Operator
from glowc.graph.attrs import AttrValue


def rfft2d(operator: Operator, net: Net) -> None:
    """RFFT2D: each row's spectrum, then along the columns; more than the lengths is left out, less is followed by 0."""
    x = net.type(operator.inputs[0])
    rows, columns = ints(net, operator.inputs[1], "the lengths")
    value, kept = (
        net.value(operator.inputs[0]),
        tuple(min(n, m) for n, m in zip(x.shape[-2:], (rows, columns), strict=True)),
    )
    if kept != x.shape[-2:]:
        axes = (x.rank - 2, x.rank - 1)
        value = net.emit("Slice", (value,), {"starts": (0, 0), "ends": kept, "axes": axes, "steps": (1, 1)})
    if columns < 2:
        raise NodeError(f"rows of {columns} samples")
    high, half = x.shape[:-2], columns // 2 + 1
    y = net.emit("SignalRfft", (net.reshaped(value, (int(np.prod(high)) * kept[0], kept[1])),), {"fft_length": columns})
    y = net.reshaped(y, (*high, kept[0], half, 2))
    if rows > 1:
        rank = len(high) + 3
        perm = (*range(rank - 3), rank - 2, rank - 3, rank - 1)
        turned = net.emit("Fft", (net.emit("Transpose", (y,), {"perm": perm}),), {"fft_length": rows, "inverse": 0})
        y = net.emit("Transpose", (turned,), {"perm": perm})
    net.emit("Identity", (y,), out=operator.outputs[0])


def magnitude(operator: Operator, net: Net) -> None:
    """COMPLEX_ABS."""
    x = net.type(operator.inputs[0])
    attrs: dict[str, AttrValue] = {"axes": (x.rank - 1,), "keepdims": 0}
    net.emit("ReduceL2", (net.value(operator.inputs[0]),), attrs, out=operator.outputs[0])


def part(operator: Operator, net: Net) -> None:
    """REAL and IMAG."""
    x, index = net.type(operator.inputs[0]), np.asarray(int(operator.code == "IMAG"), np.int32)
    values = (net.value(operator.inputs[0]), net.add_const("part", index))
    net.emit("Gather", values, {"axis": x.rank - 1}, out=operator.outputs[0])


def reshape(operator: Operator, net: Net) -> None:
    """RESHAPE, SQUEEZE and EXPAND_DIMS of complex numbers, to the shape that the file has."""
    shape = net.type(operator.outputs[0]).shape
    net.emit("Reshape", (net.value(operator.inputs[0]),), {"shape": shape}, out=operator.outputs[0])


HANDLERS = {"RFFT2D": rfft2d, "COMPLEX_ABS": magnitude, "REAL": part, "IMAG": part}
RESHAPES = dict.fromkeys(("RESHAPE", "SQUEEZE", "EXPAND_DIMS"), reshape)
