"""Layers with a memory of their own: SVDF, UNIDIRECTIONAL_SEQUENCE_LSTM."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from glowc.frontend.problems import NodeError
from glowc.frontend.tflite.net import Net
from glowc.frontend.tflite.operators.layers import bias_of
from glowc.frontend.tflite.operators.options import clamp, number, operands, option
from glowc.frontend.tflite.reader import Operator
from glowc.graph.attrs import AttrValue
from glowc.graph.types import QuantParams, TensorType


def svdf(operator: Operator, net: Net) -> None:
    """SVDF: input, feature weights, time weights, bias, state. Of codes TFLM saturates and applies no activation."""
    x, feature, time, state = (net.type(operator.inputs[i]) for i in (0, 1, 2, 4))
    rank = option(operator, "Rank")
    if rank < 1 or feature.rank != 2 or feature.shape[0] % rank:
        raise NodeError(f"rank {rank} and feature weights {feature} do not fit")
    attrs: dict[str, AttrValue] = {"svdf_rank": rank}
    bias = bias_of(operator, net, feature.shape[0] // rank, at=3)
    values = [*(net.value(i) for i in operands(operator, 3)), bias]
    if x.quant is None:
        attrs |= clamp(operator)
    elif state.quant is None or state.dtype != time.dtype:
        raise NodeError(f"the state {state} needs the kind of the time weights {time} and a scale")
    else:
        attrs |= {"state_scale": state.quant.scale[0], "state_zp": state.quant.zero_point[0]}
    net.emit("Svdf", values, attrs, out=operator.outputs[0])


_WEIGHTS, _RECURRENT, _BIAS = range(1, 5), range(5, 9), range(12, 16)
_HIDDEN, _CELL = 18, 19
_LEFT_OUT = (*range(9, 12), 16, 17, *range(20, 24))  # peepholes, projection, normalisation of layers
_ONNX_ORDER = (0, 3, 1, 2)
_TANH = 4


def lstm(operator: Operator, net: Net) -> None:
    """UNIDIRECTIONAL_SEQUENCE_LSTM: gates in the order input, forget, cell, output; the states are kept."""
    if not operator.options:
        raise NodeError("its options are missing", "convert the network again, e.g. with tf.lite.TFLiteConverter")
    left_out = [i for i in _LEFT_OUT if i < len(operator.inputs) and operator.inputs[i] >= 0]
    if left_out:
        raise NodeError(f"input {left_out[0]}: peepholes, projection and layer normalization are not supported")
    if option(operator, "FusedActivationFunction", _TANH) != _TANH or number(operator, "ProjClip", 0.0):
        raise NodeError("an activation other than TANH or a clip of the projection is not supported")
    x, out = net.type(operator.inputs[0]), operator.outputs[0]
    if x.rank != 3:
        raise NodeError(f"input {x} of other than three axes")
    weights, recurrent, bias = (_stacked(operator, net, part) for part in (_WEIGHTS, _RECURRENT, _BIAS))
    major = option(operator, "TimeMajor")
    if x.quant is None:
        _float_lstm(operator, net, weights, recurrent, bias)
        return
    hidden, cell = net.type(operator.inputs[_HIDDEN]), net.type(operator.inputs[_CELL])
    if hidden.quant != net.type(out).quant:
        raise NodeError(f"the state {hidden} is quantized otherwise than the result {net.type(out)}")
    attrs: dict[str, AttrValue] = {
        "time_major": major, "cell_clip": number(operator, "CellClip", 0.0), "cell_power": _power(cell),
    }  # fmt: skip
    values = [net.add_const(name, *part) for name, part in
              (("weights", weights), ("recurrent", recurrent), ("bias", (bias[0], None)))]  # fmt: skip
    net.emit("FixedLstm", [net.value(operator.inputs[0]), *values], attrs, out=out)


def _power(cell: TensorType) -> int:
    """Return p of a cell state in units of 2^p."""
    if cell.quant is None or math.frexp(cell.quant.scale[0])[0] != 0.5 or cell.quant.zero_point[0]:
        raise NodeError(f"the cell state {cell} needs a scale that is a power of two and the zero point 0")
    power = math.frexp(cell.quant.scale[0])[1] - 1
    if not -30 <= power <= 0:
        raise NodeError(f"the cell state has the scale 2^{power}")
    return power


def _stacked(operator: Operator, net: Net, part: Sequence[int]) -> tuple[np.ndarray, TensorType]:
    """Return four constants as one, and its type: one scale for each."""
    arrays = [net.need(operator.inputs[i], "a weight") for i in part]
    types = [net.type(operator.inputs[i]) for i in part]
    if len({t.shape for t in types}) > 1 or len({t.dtype for t in types}) > 1:
        raise NodeError(f"gates of the sizes {', '.join(map(str, types))}")
    array, quants = np.stack(arrays), [t.quant for t in types if t.quant is not None]
    if len(quants) < len(types):
        return array, TensorType(array.shape, types[0].dtype)
    if any(q.per_axis or q.zero_point[0] for q in quants):
        raise NodeError("weights with several scales or a zero point")
    quant = QuantParams(tuple(q.scale[0] for q in quants), (0,) * len(quants), 0)
    return array, TensorType(array.shape, types[0].dtype, quant)


def _float_lstm(
    operator: Operator, net: Net, weights: tuple[np.ndarray, TensorType], recurrent: tuple[np.ndarray, TensorType],
    bias: tuple[np.ndarray, TensorType],
) -> None:  # fmt: skip
    w, r, b = (_gates(part) for part in (weights, recurrent, bias))
    values = [net.value(operator.inputs[0]), net.add_const("weights", w), net.add_const("recurrent", r),
              net.add_const("bias", np.concatenate((b, np.zeros_like(b)), axis=1))]  # fmt: skip
    attrs: dict[str, AttrValue] = {
        "stateful": 1, "batch_first": int(not option(operator, "TimeMajor")), "hidden_size": bias[0].shape[1],
    }  # fmt: skip
    if number(operator, "CellClip", 0.0) > 0:
        attrs["cell_clip"] = number(operator, "CellClip", 0.0)
    y = net.emit("LSTM", values, attrs)
    shape = (*net.type(operator.inputs[0]).shape[:2], bias[0].shape[1])
    net.emit("Reshape", (y,), {"shape": shape}, out=operator.outputs[0])


def _gates(part: tuple[np.ndarray, TensorType]) -> np.ndarray:
    """Return [1, 4 hidden, ..] in the order input, output, forget, cell; codes as the floats that they stand for."""
    array, type_ = part
    if type_.quant is not None:
        scale = np.asarray(type_.quant.scale, np.float32).reshape(-1, *(1,) * (array.ndim - 1))
        array = array.astype(np.float32) * scale
    ordered = array[list(_ONNX_ORDER)].astype(np.float32)
    return np.asarray(ordered.reshape(1, -1, *array.shape[2:]))


HANDLERS = {"SVDF": svdf, "UNIDIRECTIONAL_SEQUENCE_LSTM": lstm}
