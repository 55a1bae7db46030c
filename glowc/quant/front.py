"""The spectrum at the inputs of a network: a transform, its squares, sums of bands, a logarithm or root.

Its values span many powers of ten, of which codes of 8 bits hold two: what is quiet becomes 0, and a logarithm spreads
that. Whether it stays float is measured by `quantizer`; here it is found.
"""

from __future__ import annotations

from onnx import NodeProto

from glowc.quant.net import Net
from glowc.quant.plan import BINARY, LAYERS, SAME

REASON = "part of a spectrum, whose int8 codes lose accuracy (--no-float-spectrum)"
_ROOTS = frozenset({"Log", "Sqrt"})
_PARTS = LAYERS | BINARY | SAME | _ROOTS | {
    "Abs", "Clip", "DFT", "Div", "Max", "Min", "Neg", "Pow", "ReduceL2", "ReduceSum", "ReduceSumSquare", "STFT",
}  # fmt: skip


def spectrum(net: Net) -> frozenset[str]:
    """Return the first results of the nodes from inputs to logarithms and roots that no activation comes before."""
    early, found = {p.name for p in net.inputs}, set[str]()
    for node in net.nodes:
        if node.op_type in _PARTS and all(n in early or n in net.consts for n in node.input if n):
            early |= {*node.output}
    wanted = set[str]()
    for node in reversed(net.nodes):
        if node.output[0] in early and (_spreads(net, node) or wanted & {*node.output}):
            wanted |= {*node.input}
            found.add(node.output[0])
    return frozenset(found)


def _spreads(net: Net, node: NodeProto) -> bool:
    """Say whether a node is a logarithm, or a root."""
    power = net.consts.get(node.input[1]) if node.op_type == "Pow" else None
    return node.op_type in _ROOTS or (power is not None and power.size == 1 and float(power.reshape(())) < 1)
