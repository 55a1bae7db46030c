"""CONV_3D, and MediaPipe's pooling with the place of each maximum and what undoes it; all of floats.

Source of the last two: MediaPipe, mediapipe/util/tflite/operations. Options are TfLitePoolParams: padding (1 SAME, 2
VALID), steps along columns and rows, window along columns and rows. A place is row * columns of it + column + 0.1.
"""

from __future__ import annotations

import math
import struct

import numpy as np

from glowc.frontend.problems import NodeError
from glowc.frontend.tflite.net import NHWC, Net
from glowc.frontend.tflite.operators.layers import bias_of
from glowc.frontend.tflite.operators.options import clamp, option, padded, padding, positive
from glowc.frontend.tflite.reader import Operator
from glowc.graph.attrs import AttrValue
from glowc.graph.types import DType

_POOL = struct.Struct("<5i")
_WHOLE = {"to": 6}  # int32, as ONNX numbers kinds


def conv_3d(operator: Operator, net: Net) -> None:
    """CONV_3D: the slices that a window covers lie in the channels of an image, one image for each result slice."""
    x, w, out = (net.type(i) for i in (*operator.inputs[:2], operator.outputs[0]))
    array = net.need(operator.inputs[1], "the weights")
    if x.rank != 5 or w.rank != 5 or not x.dtype.is_float or x.shape[4] != w.shape[3]:
        raise NodeError(f"input {x} and weights {w} do not fit")
    stride = positive(operator, "StrideD", "StrideH", "StrideW")
    dilation = tuple(option(operator, f"Dilation{axis}Factor", 1) for axis in "DHW")
    (n, depth, *size, channels), kernel, made = x.shape, w.shape[:3], w.shape[4]
    pads = padding(operator, (depth, *size), kernel, stride, dilation)
    front, back = pads[0], pads[3]
    value = net.value(operator.inputs[0])
    if front or back:
        value = net.emit("Pad", (value,), {"pads": (0, front, 0, 0, 0, 0, back, 0, 0, 0)})
    slices = (depth + front + back - (kernel[0] - 1) * dilation[0] - 1) // stride[0] + 1
    at = np.arange(slices)[:, None] * stride[0] + np.arange(kernel[0]) * dilation[0]
    value = net.emit("Gather", (value, net.add_const("slices", at.astype(np.int32))), {"axis": 1})
    value = net.emit("Transpose", (value,), {"perm": (0, 1, 3, 4, 2, 5)})
    value = net.reshaped(value, (n * slices, *size, kernel[0] * channels))
    weights = array.transpose(4, 1, 2, 0, 3).reshape(made, *kernel[1:], kernel[0] * channels)
    attrs: dict[str, AttrValue] = {
        "kernel_shape": kernel[1:], "strides": stride[1:], "dilations": dilation[1:], "group": 1,
        "pads": (*pads[1:3], *pads[4:]), **clamp(operator), **NHWC,
    }  # fmt: skip
    y = net.emit("Conv", (value, net.add_const("weights", weights), bias_of(operator, net, made)), attrs)
    net.emit("Reshape", (y,), {"shape": (n, slices, *net.types[y].shape[1:])}, out=operator.outputs[0])
    if net.types[net.value(operator.outputs[0])].shape[:1] != out.shape[:1]:
        raise NodeError(f"the result {out} of {x}")


def _pool(operator: Operator) -> tuple[int, tuple[int, int], tuple[int, int]]:
    """Return the kind of padding, the steps and the window, of rows and columns."""
    if len(operator.custom) < _POOL.size:
        raise NodeError(f"{len(operator.custom)} bytes of options; {_POOL.size} are the least")
    mode, step_w, step_h, columns, rows = _POOL.unpack_from(operator.custom)
    if mode not in (1, 2) or min(step_w, step_h, columns, rows) < 1 or rows * columns > 256:
        raise NodeError(f"padding {mode}, steps {[step_h, step_w]}, window {[rows, columns]}")
    return mode - 1, (step_h, step_w), (rows, columns)


def max_pool_places(operator: Operator, net: Net) -> None:
    """MaxPoolingWithArgmax2D: the first maximum of each window and its place in the window, tap by tap."""
    x = net.type(operator.inputs[0])
    mode, steps, window = _pool(operator)
    if x.rank != 4 or x.dtype is not DType.F32:
        raise NodeError(f"input {x}: images of float32 are pooled")
    pads = padded(mode, x.shape[1:3], window, steps, (1, 1))
    value = net.value(operator.inputs[0])
    if any(pads):
        amounts = (0, *pads[:2], 0, 0, *pads[2:], 0)
        value = net.emit("Pad", (value,), {"pads": amounts, "value": float(np.finfo(np.float32).min)})
    high = net.types[value].shape[1:3]
    counts = [(n - k) // s + 1 for n, k, s in zip(high, window, steps, strict=True)]
    best = place = ""
    for tap in range(math.prod(window)):
        starts = (tap // window[1], tap % window[1])
        ends = tuple(a + (n - 1) * s + 1 for a, n, s in zip(starts, counts, steps, strict=True))
        here = net.emit("Slice", (value,), {"starts": starts, "ends": ends, "axes": (1, 2), "steps": steps})
        index = net.add_const("place", np.asarray(tap + 0.1, np.float32))
        if not best:
            best, place = here, net.emit("Expand", (index,), {"shape": net.types[here].shape})
            continue
        better = net.emit("Greater", (here, best))
        best, place = net.emit("Where", (better, here, best)), net.emit("Where", (better, index, place))
    for out, result in zip(operator.outputs, (best, place), strict=True):
        net.emit("Identity", (result,), out=out)


def max_unpool(operator: Operator, net: Net) -> None:
    """MaxUnpooling2D: each element at its place in a window of zeros; windows next to each other."""
    x, places = net.type(operator.inputs[0]), net.type(operator.inputs[1])
    _, steps, window = _pool(operator)
    if x.rank != 4 or places.shape != x.shape or steps != window:
        raise NodeError(
            f"{x} at {places}, steps {list(steps)}, window {list(window)}: windows that overlap are not read"
        )
    n, h, w, c = x.shape
    value, index = (net.reshaped(net.value(i), (n, h, 1, w, 1, c)) for i in operator.inputs[:2])
    taps = np.arange(math.prod(window), dtype=np.int32).reshape(1, 1, window[0], 1, window[1], 1)
    here = net.emit("Equal", (net.emit("Cast", (index,), _WHOLE), net.add_const("places", taps)))
    spread = net.emit("Where", (here, value, net.add_const("zero", np.zeros((), np.float32))))
    net.emit("Reshape", (spread,), {"shape": (n, h * window[0], w * window[1], c)}, out=operator.outputs[0])


HANDLERS = {"CONV_3D": conv_3d, "MaxPoolingWithArgmax2D": max_pool_places, "MaxUnpooling2D": max_unpool}
