"""Which channels hold the same codes at every position, whatever the input is: value numbering of channels.

A channel's class is a number; two channels of one value with one class are equal. Classes follow from the exact
formulas: the same operator on equal channels, with the same weights, bias and scale, gives equal channels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping

import numpy as np

from glowc.graph.graph import Graph, Node
from glowc.ops.conv import is_planar
from glowc.passes.channels.groups import keeps_channels
from glowc.passes.channels.ranges import (
    Range,
    centred,
    flatten_positions,
    groups_of,
    is_code,
    is_depthwise,
    is_weighted,
    joins_channels,
)


def channel_classes(graph: Graph, ranges: Mapping[str, Range]) -> dict[str, np.ndarray]:
    """Return the class of every channel of each value in `ranges` (int64 arrays)."""
    numbering = _Numbering()
    for name in graph.inputs:
        if name in ranges:
            numbering.give(name, [(name, c) for c in range(ranges[name].low.size)])
    for node in graph.nodes:
        name = node.outputs[0]
        if name in ranges:
            numbering.give(name, _keys(graph, node, numbering.classes, ranges[name]))
    return numbering.classes


class _Numbering:
    def __init__(self) -> None:
        self.classes: dict[str, np.ndarray] = {}
        self._ids: dict[Hashable, int] = {}

    def give(self, name: str, keys: list[Hashable]) -> None:
        """Number the channels of a value: equal keys, equal numbers."""
        self.classes[name] = np.asarray([self._ids.setdefault(key, len(self._ids)) for key in keys], np.int64)


def _keys(graph: Graph, node: Node, classes: Mapping[str, np.ndarray], range_: Range) -> list[Hashable]:
    """Return what determines each channel of the node's output; a constant channel is its code."""
    keys = _computed(graph, node, classes)
    if keys is None:
        keys = [(node.outputs[0], c) for c in range(range_.low.size)]
    codes = range_.low.tolist()
    return [("code", codes[c]) if fixed else keys[c] for c, fixed in enumerate(range_.constant.tolist())]


def _computed(graph: Graph, node: Node, classes: Mapping[str, np.ndarray]) -> list[Hashable] | None:
    x = node.inputs[0] if node.inputs else ""
    if x not in classes or len(node.outputs) != 1:
        return None
    if is_weighted(graph, node):
        return _weighted(graph, node, classes[x])
    shared = _shared(graph, node)
    if keeps_channels(graph, node):
        return [(shared, *row) for row in zip(*(_operand(graph, node, n, classes) for n in node.inputs), strict=True)]
    if joins_channels(graph, node) and all(name in classes for name in node.inputs):
        return [("part", int(c)) for name in node.inputs for c in classes[name]]
    count = flatten_positions(graph, node) if node.op == "Reshape" else None
    if count is not None:
        return [(shared, p, int(c)) for p in range(count) for c in classes[x]]
    return None


def _shared(graph: Graph, node: Node) -> Hashable:
    """What all channels of a node's output have in common."""
    attrs = tuple(sorted((k, v) for k, v in node.attrs.items() if k != "group"))
    x, y = graph.types[node.inputs[0]], graph.types[node.outputs[0]]
    return (node.op, attrs, x.shape[:-1], x.quant, x.layout, y.quant)


def _operand(graph: Graph, node: Node, name: str, classes: Mapping[str, np.ndarray]) -> list[Hashable]:
    """Return what an operand of an elementwise operator brings to each channel."""
    channels = graph.types[node.outputs[0]].shape[-1]
    if name in classes:
        return [(graph.types[name].quant, int(c)) for c in classes[name]]
    if name in graph.consts and is_code(graph.types[name]) and graph.types[name].elements == channels > 1:
        return [(graph.types[name].quant, int(v)) for v in graph.consts[name].reshape(-1)]
    return [name] * channels


def _weighted(graph: Graph, node: Node, x: np.ndarray) -> list[Hashable]:
    """Keys of a Conv or FullyConnected: the weights of equal input channels count as their sum."""
    weights, bias = centred(graph, node), graph.consts[node.inputs[2]].reshape(-1)
    quant = graph.types[node.inputs[1]].quant
    assert quant is not None
    outputs = weights.shape[0]
    scales = quant.scale if len(quant.scale) == outputs else quant.scale * outputs
    group = groups_of(node)
    sources: list[Hashable] = [node.inputs[0]] * outputs
    if is_depthwise(graph, node) and not is_planar(node):
        sources = x.tolist()
    elif group > 1:
        sources = [(node.inputs[0], o // (outputs // group)) for o in range(outputs)]
    elif not is_planar(node):
        distinct, index = np.unique(x, return_inverse=True)
        sources = [tuple(distinct.tolist())] * outputs
        weights = _summed(weights, index, distinct.size) if distinct.size < x.size else weights[..., np.argsort(x)]
    shared = _shared(graph, node)
    digests = [hashlib.sha256(np.ascontiguousarray(row).data).digest() for row in weights]  # the weights take much more
    return [(shared, sources[o], int(bias[o]), scales[o], digests[o]) for o in range(outputs)]


def _summed(weights: np.ndarray, index: np.ndarray, count: int) -> np.ndarray:
    """Add up the columns of [O, taps, I] with one index."""
    sums = np.zeros((*weights.shape[:2], count), np.int64)
    for column, target in enumerate(index.tolist()):
        sums[..., target] += weights[..., column]
    return sums
