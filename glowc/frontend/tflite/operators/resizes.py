"""RESIZE_NEAREST_NEIGHBOR, RESIZE_BILINEAR, MIRROR_PAD, BROADCAST_ARGS, DYNAMIC_UPDATE_SLICE: indices by a rule."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from glowc.frontend.problems import NodeError
from glowc.frontend.tflite.net import NHWC, Net
from glowc.frontend.tflite.operators.movement import ints
from glowc.frontend.tflite.operators.options import operands, option
from glowc.frontend.tflite.operators.reductions import ONNX_KINDS
from glowc.frontend.tflite.reader import Operator
from glowc.graph.attrs import AttrValue
from glowc.graph.fixed_point import round_away
from glowc.graph.types import DType, TensorType

_F32 = np.float32
_REFLECT = 0


def taken(net: Net, value: str, indices: Sequence[Sequence[int]], out: int) -> None:
    """Let a tensor be a value with elements of its axes taken by constant indices."""
    for axis, index in enumerate(indices):
        type_ = net.types[value]
        if list(index) == list(range(type_.shape[axis])):
            continue
        shape = [*type_.shape[:axis], len(index), *type_.shape[axis + 1 :]]
        where = net.add_const("indices", np.asarray(index, np.int32))
        value = net.emit("Gather", (value, where), {"axis": axis}, type_=type_.with_shape(shape))
    net.emit("Identity", (value,), out=out)


def nearest(operator: Operator, net: Net) -> None:
    """RESIZE_NEAREST_NEIGHBOR: rows and columns by float32 coordinates."""
    x, y = net.type(operator.inputs[0]), _resized(operator, net)
    align, half = option(operator, "AlignCorners"), option(operator, "HalfPixelCenters")
    whole = [range(n) for n in x.shape]
    rows, columns = (_nearest(x.shape[a], y.shape[a], bool(align), bool(half)) for a in (1, 2))
    taken(net, net.value(operator.inputs[0]), (whole[0], rows, columns, whole[3]), operator.outputs[0])


def _resized(operator: Operator, net: Net) -> TensorType:
    """Return the type of the result of a resize: rows and columns are those of the second input."""
    x, y = net.type(operator.inputs[0]), net.type(operator.outputs[0])
    if x.rank == 4 and net.is_open(operator.outputs[0]):
        y = y.with_shape((x.shape[0], *ints(net, operator.inputs[1], "the size"), x.shape[3]))
    if x.rank != 4 or y.rank != 4 or 0 in y.shape:
        raise NodeError(f"{x} has no rows and columns")
    return y


def _nearest(size: int, to: int, align: bool, half: bool) -> list[int]:
    scale = _F32(size - 1) / _F32(to - 1) if align and to > 1 else _F32(size) / _F32(to)
    at = (np.arange(to).astype(_F32) + _F32(0.5 if half else 0.0)) * scale
    found = round_away(at) if align else np.floor(at)
    return [int(i) for i in np.clip(found, 0, size - 1)]


def bilinear(operator: Operator, net: Net) -> None:
    """RESIZE_BILINEAR of floats and int8; of uint8 TensorFlow Lite interpolates in floats and rounds half up."""
    x, y = net.type(operator.inputs[0]), _resized(operator, net)
    align, half = option(operator, "AlignCorners"), option(operator, "HalfPixelCenters")
    unsigned = net.tensor(operator.inputs[0]).kind == "uint8"
    if x.quant is not None and not unsigned:
        attrs: dict[str, AttrValue] = {"sizes": y.shape[1:3], "align": align, "half": half}
        net.emit("FixedBilinear", (net.value(operator.inputs[0]),), attrs, out=operator.outputs[0])
        return
    mode = "align_corners" if align else "half_pixel" if half else "asymmetric"
    attrs = {
        "sizes": y.shape, "scales": tuple(n / d for n, d in zip(y.shape, x.shape, strict=True)), "mode": "linear",
        "coordinate_transformation_mode": mode, **NHWC,
    }  # fmt: skip
    if x.quant is None:
        net.emit("Resize", (net.value(operator.inputs[0]),), attrs, out=operator.outputs[0])
        return
    real = net.emit("Cast", (net.plain(operator.inputs[0]),), {"to": ONNX_KINDS[DType.F32]})
    moved = net.emit("Add", (net.emit("Resize", (real,), attrs), net.add_const("half", np.asarray(0.5, np.float32))))
    codes = net.emit("Cast", (net.emit("Floor", (moved,)),), {"to": ONNX_KINDS[y.dtype]})
    net.emit("AssignQuant", (codes,), out=operator.outputs[0])


def mirror_pad(operator: Operator, net: Net) -> None:
    """MIRROR_PAD: elements in front are those behind the first one (REFLECT) or from the first one on (SYMMETRIC)."""
    x = net.type(operator.inputs[0])
    amounts = net.need(operator.inputs[1], "the padding").reshape(-1, 2)
    if "Mode" not in operator.options:
        raise NodeError("its options are missing", "convert the network again, e.g. with tf.lite.TFLiteConverter")
    apart = 1 if option(operator, "Mode") == _REFLECT else 0
    if any(max(a) > n - apart for n, a in zip(x.shape, amounts, strict=True)):
        raise NodeError(f"padding {amounts.tolist()} of {x}")
    indices = [_mirrored(n, int(a[0]), int(a[1]), apart) for n, a in zip(x.shape, amounts, strict=True)]
    taken(net, net.value(operator.inputs[0]), indices, operator.outputs[0])


def _mirrored(size: int, before: int, after: int, apart: int) -> list[int]:
    front = [i + apart for i in reversed(range(before))]
    return [*front, *range(size), *(size - 1 - apart - i for i in range(after))]


def broadcast_args(operator: Operator, net: Net) -> None:
    """BROADCAST_ARGS: the shape that two constant shapes are broadcast to."""
    first, second = (ints(net, i, "a shape") for i in operands(operator, 2))
    found = np.asarray(np.broadcast_shapes(first, second), net.type(operator.outputs[0]).dtype.numpy)
    net.define(operator.outputs[0], net.add_const("shape", found))


def dynamic_update_slice(operator: Operator, net: Net) -> None:
    """DYNAMIC_UPDATE_SLICE: a part of the operand replaced; its place is moved into the operand."""
    x, update = net.type(operator.inputs[0]), net.type(operator.inputs[1])
    if any(u > d for u, d in zip(update.shape, x.shape, strict=True)):
        raise NodeError(f"an update {update} of {x}")
    strides = np.asarray([math.prod(x.shape[i + 1 :]) for i in range(x.rank)], np.int32)
    room = np.asarray([d - u for d, u in zip(x.shape, update.shape, strict=True)], np.int32)
    grid = sum((np.arange(n, dtype=np.int32) * s).reshape([-1 if j == i else 1 for j in range(x.rank)])
               for i, (n, s) in enumerate(zip(update.shape, strides, strict=True)))  # fmt: skip
    places = _places(operator, net, room, strides, np.asarray(grid, np.int32).reshape(-1))
    data = net.reshaped(net.value(operator.inputs[0]), (x.elements,))
    part = net.reshaped(net.value(operator.inputs[1]), (update.elements,))
    y = net.emit("ScatterElements", (data, places, part), {"axis": 0}, type_=x.with_shape((x.elements,)))
    net.emit("Reshape", (y,), {"shape": x.shape}, out=operator.outputs[0])


def _places(operator: Operator, net: Net, room: np.ndarray, strides: np.ndarray, grid: np.ndarray) -> str:
    """Return where each element of the update goes, for an operand in one line."""
    start = net.const(operator.inputs[2])
    if start is not None:
        offset = int((np.clip(start.astype(np.int64), 0, room) * strides).sum())
        return net.add_const("places", (grid + offset).astype(np.int32))
    least, most = net.add_const("least", np.zeros_like(room)), net.add_const("room", room)
    inside = net.emit("Min", (net.emit("Max", (net.value(operator.inputs[2]), least)), most))
    steps = net.emit("Mul", (inside, net.add_const("strides", strides)))
    found = net.add_const("grid", grid)
    for axis in range(strides.size):
        one = net.emit("Slice", (steps,), {"starts": (axis,), "ends": (axis + 1,), "axes": (0,), "steps": (1,)})
        found = net.emit("Add", (found, one))
    return found


HANDLERS = {
    "RESIZE_NEAREST_NEIGHBOR": nearest, "RESIZE_BILINEAR": bilinear, "MIRROR_PAD": mirror_pad,
    "BROADCAST_ARGS": broadcast_args, "DYNAMIC_UPDATE_SLICE": dynamic_update_slice,
}  # fmt: skip
