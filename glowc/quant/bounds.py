"""What a value can be at most, by the operators that make it: no range goes beyond, however few samples there are.

States of usual LSTM and GRU layers lie between -1 and 1, a Softmax and a Sigmoid between 0 and 1, a Clip within its
bounds; means and maxima of such values as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from onnx import NodeProto

from glowc.quant.net import Net
from glowc.quant.plan import SAME
from glowc.quant.recurrent import RECURRENT, why_not

Bounds = tuple[float, float]
_ANY: Bounds = (-np.inf, np.inf)
_KNOWN: dict[str, Bounds] = {
    **dict.fromkeys(("Tanh", "Softsign", *RECURRENT), (-1.0, 1.0)),
    **dict.fromkeys(("Softmax", "Sigmoid", "HardSigmoid"), (0.0, 1.0)),
}
_WITHIN = frozenset({"AveragePool", "GlobalAveragePool", "GlobalMaxPool", "ReduceMean"}) | SAME - {"Concat", "Pad"}
"""Operators whose results lie within the range of their first input, or are 0."""


def bounds_of(net: Net, names: Iterable[str]) -> Bounds:
    """Return the bounds of all values of some tensors."""
    producers = net.producers()
    found = [_bounds(net, producers, name) for name in names]
    return min(low for low, _ in found), max(high for _, high in found)


def _bounds(net: Net, producers: Mapping[str, NodeProto], name: str) -> Bounds:
    while (node := producers.get(name)) is not None and node.op_type in _WITHIN:
        name = node.input[0]
    if node is None or (node.op_type in RECURRENT and why_not(net, node) is not None):
        return _ANY
    if node.op_type != "Clip":
        return _KNOWN.get(node.op_type, _ANY)
    ends = [net.consts.get(n) if n else None for n in [*node.input[1:], "", ""][:2]]
    low, high = (float(e.reshape(())) if e is not None else a for e, a in zip(ends, _ANY, strict=True))
    return low, high
