"""The end of a network with float outputs: sums of a last layer that need not be rounded to codes.

A last fully connected layer on codes can hand on its sums as floats (onnxruntime's QGemm without an output scale,
glowc's pass fold-dq-product), so that neither they nor the Softmax behind them are rounded.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import NodeProto

from glowc.quant.net import Net
from glowc.quant.plan import weights_of
from glowc.quant.weights import channel_axis

_BEHIND = frozenset({"Softmax", "LogSoftmax", "Sigmoid", "Tanh", "Reshape", "Flatten", "Squeeze", "Unsqueeze"})
_LARGEST_SHARE = 0.1  # of all multiplications: kernels for sums that become floats are slower than those for codes


def unrounded_sums(net: Net, elements: Mapping[str, int]) -> frozenset[str]:
    """Return the results of last layers that stay float. `elements` has the size of each float value."""
    layers = [n for n in net.nodes if weights_of(net, n) is not None and n.output[0] in elements]
    macs = {n.output[0]: _macs(n, net.consts[n.input[1]], elements[n.output[0]]) for n in layers}
    found = {_last_layer(net, port.name) for port in net.outputs}
    return frozenset(n for n in found if n in macs and macs[n] <= _LARGEST_SHARE * sum(macs.values()))


def _macs(layer: NodeProto, weights: np.ndarray, results: int) -> int:
    """Return the multiplications of a layer: each result takes the weights of one output channel."""
    return results * int(weights.size) // int(weights.shape[channel_axis(layer, weights)])


def _last_layer(net: Net, name: str) -> str:
    """Return the result of the Gemm in front of an output, where nobody else reads what lies between; else nothing."""
    producers, users = net.producers(), net.users()
    while (node := producers.get(name)) is not None:
        if node.op_type == "Gemm":
            return name if node.input[1] in net.consts else ""
        before = node.input[0]
        if node.op_type not in _BEHIND or len(users[before]) != 1 or before in net.output_names():
            return ""
        name = before
    return ""
