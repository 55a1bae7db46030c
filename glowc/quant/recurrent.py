"""Recurrent layers: LSTM and GRU on codes, weights int8 with a scale per row, gates and cells left to the compiler.

The file has the layer of ONNX between DequantizeLinear and QuantizeLinear: other runtimes compute it in float. A row of
W or R has one scale for both directions.

A stateful layer has initial states that are no zeros, or its cells are read. What the layer keeps from step to step in
16 bits, cells of an LSTM and states of a GRU, is int16 in just these units before the first step and after the last,
the other state of an LSTM has the codes of its results: a state that goes round loses nothing.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from onnx import NodeProto

from glowc.quant.net import Net, float_of, int_of, text_of
from glowc.quant.scheme import Params
from glowc.quant.weights import Weights, nearest

RECURRENT = {"LSTM": ("sigmoid", "tanh", "tanh"), "GRU": ("sigmoid", "tanh")}
"""By operator, ONNX's activations of a direction."""
_ROW_AXIS = 1  # of W and R: directions, rows of gates, inputs
_W, _R, _B = range(1, 4)
_STATES = {"LSTM": (5, 6), "GRU": (5,)}  # inputs
_CELLS = {"LSTM": 2, "GRU": 1}
"""The output of what is kept in 16 bits; the last of the states is the same before the first step."""
_CELL_PARAMS = {"LSTM": Params(2.0**-11, 0, 16), "GRU": Params(2.0**-15, 0, 16)}


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
    if any(name for i, name in inputs.items() if i > _B and i not in _STATES[node.op_type]):
        return "it has lengths or peepholes"
    return None


def _has_defaults(node: NodeProto) -> bool:
    names = next(([s.decode().lower() for s in a.strings] for a in node.attribute if a.name == "activations"), [])
    dirs = 2 if text_of(node, "direction", "forward") == "bidirectional" else 1
    usual = names in ([], [*RECURRENT[node.op_type]] * dirs)
    return usual and not float_of(node, "clip", 0) and not int_of(node, "input_forget", 0)


def _is_zero(net: Net, name: str) -> bool:
    return name in net.consts and not net.consts[name].any()


def is_stateful(net: Net, node: NodeProto) -> bool:
    """Say whether a layer has initial states besides zeros, or cells that are read."""
    states = [node.input[i] for i in _STATES[node.op_type] if i < len(node.input) and node.input[i]]
    read = node.op_type == "LSTM" and {*node.output[2:]} & {*net.users(), *net.output_names()}
    return bool(read) or not all(_is_zero(net, name) for name in states)


def cells_of(net: Net, node: NodeProto) -> dict[str, Params]:
    """Return the values before the first step and after the last that are int16, with their quantisation."""
    if node.op_type not in RECURRENT or not is_stateful(net, node):
        return {}
    names = [*node.input[_STATES[node.op_type][-1] :][:1], *node.output[_CELLS[node.op_type] :][:1]]
    return dict.fromkeys(filter(None, names), _CELL_PARAMS[node.op_type])


def results(net: Net, node: NodeProto) -> list[str]:
    """Return the values that have the codes of the result: of all steps, after the last one, before the first one."""
    cells, first = cells_of(net, node), _STATES["LSTM"][0]
    start = node.input[first : first + 1] if node.op_type == "LSTM" and is_stateful(net, node) else []
    return [name for name in (*node.output[:2], *start) if name and name not in cells]


def coded_weights(array: np.ndarray) -> Weights:
    """Return the nearest codes of W or R, a scale per row of gates."""
    return nearest(array, _ROW_AXIS, np.full(array.shape[_ROW_AXIS], 1e-12))


def rounded_weights(net: Net, quantised: Collection[str]) -> dict[str, np.ndarray]:
    """Return the weights of the layers with a first result in `quantised`, as their codes hold them."""
    nodes = [n for n in net.nodes if n.op_type in RECURRENT and n.output[0] in quantised]
    return {name: coded_weights(net.consts[name]).values() for node in nodes for name in weight_names(node)}
