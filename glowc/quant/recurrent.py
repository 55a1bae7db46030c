"""Recurrent layers: LSTM and GRU on codes, weights int8 with a scale per row, gates and cells left to the compiler.

The file has the layer of ONNX between DequantizeLinear and QuantizeLinear: other runtimes compute it in float. A row of
W or R has one scale for both directions.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from onnx import NodeProto

from glowc.quant.net import Net, float_of, int_of, text_of
from glowc.quant.weights import Weights, nearest

RECURRENT = {"LSTM": ("sigmoid", "tanh", "tanh"), "GRU": ("sigmoid", "tanh")}
"""By operator, ONNX's activations of a direction."""
_ROW_AXIS = 1  # of W and R: directions, rows of gates, inputs
_W, _R, _B = range(1, 4)
_STATES = {"LSTM": (5, 6), "GRU": (5,)}  # inputs
_CELL = 2  # the output of the last cells


def weight_names(node: NodeProto) -> list[str]:
    """Return W and R of a recurrent layer."""
    return list(node.input[_W : _R + 1])


def why_not(net: Net, node: NodeProto) -> str | None:
    """Return what keeps a layer from its int8 form."""
    inputs = dict(enumerate(node.input))
    if any(inputs[i] not in net.consts for i in (_W, _R)) or (inputs.get(_B) or inputs[_W]) not in net.consts:
        return "its weights are computed"
    if int_of(node, "layout", 0):
        return "its batch is the first axis"
    if not _has_defaults(node):
        return "it has activations, a clip or gates of its own"
    if any(name and not (i in _STATES[node.op_type] and _is_zero(net, name)) for i, name in inputs.items() if i > _B):
        return "it has lengths, initial states or peepholes"
    if len(node.output) > _CELL and node.output[_CELL] in {*net.users(), *net.output_names()}:
        return "its cells are read"
    return None


def _has_defaults(node: NodeProto) -> bool:
    names = next(([s.decode().lower() for s in a.strings] for a in node.attribute if a.name == "activations"), [])
    dirs = 2 if text_of(node, "direction", "forward") == "bidirectional" else 1
    usual = names in ([], [*RECURRENT[node.op_type]] * dirs)
    return usual and not float_of(node, "clip", 0) and not int_of(node, "input_forget", 0)


def _is_zero(net: Net, name: str) -> bool:
    return name in net.consts and not net.consts[name].any()


def results(node: NodeProto) -> list[str]:
    """Return the outputs that become codes: those of all steps and of the last one."""
    return [name for name in node.output[:_CELL] if name]


def coded_weights(array: np.ndarray) -> Weights:
    """Return the nearest codes of W or R, a scale per row of gates."""
    return nearest(array, _ROW_AXIS, np.full(array.shape[_ROW_AXIS], 1e-12))


def rounded_weights(net: Net, quantised: Collection[str]) -> dict[str, np.ndarray]:
    """Return the weights of the layers with a first result in `quantised`, as their codes hold them."""
    nodes = [n for n in net.nodes if n.op_type in RECURRENT and n.output[0] in quantised]
    return {name: coded_weights(net.consts[name]).values() for node in nodes for name in weight_names(node)}
