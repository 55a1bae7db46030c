"""duplicate-channels: of channels that are equal at every position one is read, without changing an output byte.

A consumer's weights of the duplicates are added to those of the channel that stays, where each sum fits the type of
the weights. Nothing reads the duplicates then, and pass dead-channels removes them. Channels that are tied to
others (elementwise operators, pools, depthwise convolutions, concatenations) have to be duplicates together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from glowc.graph.graph import Graph, GraphEditor, Node
from glowc.passes.base import GraphPass, PassCtx
from glowc.passes.channels.groups import ChannelGroups
from glowc.passes.channels.ranges import channel_ranges, is_depthwise, is_weighted
from glowc.passes.channels.values import channel_classes

Slot = tuple[str, int]
"""A value and one of its channels."""


class DuplicateChannels(GraphPass):
    """Value numbering of channels forwards, then weights move from duplicates to the channel that stays."""

    name: ClassVar[str] = "duplicate-channels"

    def run(self, graph: Graph, ctx: PassCtx) -> Graph:
        """Return the graph in which no duplicate is needed; the same graph when there is none."""
        if not any(is_weighted(graph, node) for node in graph.nodes):
            return graph
        ranges = channel_ranges(graph)
        classes = channel_classes(graph, ranges)
        if all(np.unique(c).size == c.size for c in classes.values()):
            return graph
        merger = _Merger(graph, classes, ChannelGroups(graph, ranges))
        merger.merge()
        return merger.finish()


@dataclass(frozen=True, slots=True)
class _Family:
    """Channels that stay or go together; `read` are those that weights multiply."""

    frozen: bool
    read: tuple[Slot, ...]


class _Merger:
    def __init__(self, graph: Graph, classes: dict[str, np.ndarray], groups: ChannelGroups) -> None:
        self._graph, self._classes = graph, classes
        self._readers = _readers(graph)
        self._weights = {node.name: graph.consts[node.inputs[1]] for nodes in self._readers.values() for node in nodes}
        self._changed: set[str] = set()
        self._families = _families(classes, groups, self._readers)

    def merge(self) -> None:
        """Let every family take over the duplicates that it can; families that must stay come first."""
        staying: dict[tuple[str, int], list[_Family]] = {}
        for family in sorted(self._families, key=lambda f: not f.frozen):
            if not family.frozen and not self._needed(family):
                continue
            if not family.frozen and any(self._take(f, family) for f in staying.get(self._key(family.read[0]), [])):
                continue
            for key in dict.fromkeys(map(self._key, family.read)):
                staying.setdefault(key, []).append(family)

    def finish(self) -> Graph:
        """Return the graph with the weights as they are now."""
        editor = GraphEditor(self._graph)
        for name in sorted(self._changed):
            node = editor.nodes[name]
            type_ = self._graph.types[node.inputs[1]]
            array = self._weights[name]
            editor.update(
                node, inputs=(node.inputs[0], editor.add_const(f"{node.inputs[1]}.sum", array, type_), *node.inputs[2:])
            )
        return editor.finish()

    def _key(self, slot: Slot) -> tuple[str, int]:
        return slot[0], int(self._classes[slot[0]][slot[1]])

    def _needed(self, family: _Family) -> bool:
        return any(
            (self._weights[node.name][..., channel] != _zero(self._graph, node)).any()
            for name, channel in family.read
            for node in self._readers[name]
        )

    def _take(self, stays: _Family, goes: _Family) -> bool:
        """Move the weights of `goes` to equal channels of `stays`; False when it has none or a sum is too large."""
        free: dict[tuple[str, int], list[int]] = {}
        for slot in reversed(stays.read):
            free.setdefault(self._key(slot), []).append(slot[1])
        sums = {}
        for name, old in goes.read:
            twins = free.get(self._key((name, old)))
            if not twins:
                return False
            new = twins.pop()
            for node in self._readers[name]:
                weights, dtype = self._weights[node.name], self._graph.types[node.inputs[1]].dtype
                total = weights[..., old].astype(np.int64) + weights[..., new] - _zero(self._graph, node)
                if total.min() < dtype.qmin or total.max() > dtype.qmax:
                    return False
                sums[node.name, old, new] = (node, total)
        for (name, old, new), (node, total) in sums.items():
            if name not in self._changed:
                self._weights[name] = self._weights[name].copy()
            self._weights[name][..., new] = total
            self._weights[name][..., old] = _zero(self._graph, node)
            self._changed.add(name)
        return True


def _zero(graph: Graph, node: Node) -> np.ndarray:
    """Return the zero points of the weights, shaped for one input channel of all of them."""
    type_ = graph.types[node.inputs[1]]
    assert type_.quant is not None
    points = np.asarray(type_.quant.zero_point, np.int64)
    return points.reshape(-1, *[1] * (type_.rank - 2)) if points.size > 1 else points[0]


def _readers(graph: Graph) -> dict[str, list[Node]]:
    """Return the nodes that add up weighted channels of each value."""
    readers: dict[str, list[Node]] = {}
    for node in graph.nodes:
        if is_weighted(graph, node) and not is_depthwise(graph, node):
            readers.setdefault(node.inputs[0], []).append(node)
    return readers


def _families(classes: dict[str, np.ndarray], groups: ChannelGroups, readers: dict[str, list[Node]]) -> list[_Family]:
    """Return the connected components of all channels under the ties, in the order of their first channel."""
    starts, total = {}, 0
    for name, channels in classes.items():
        starts[name] = total
        total += channels.size
    edges = [
        (starts[name] + own, starts[other] + theirs)
        for name, ties in groups.ties.items()
        for other, own, theirs in ties
    ]
    labels = _components(total, edges)
    members: dict[int, list[Slot]] = {}
    frozen: set[int] = set()
    for name, channels in classes.items():
        found = labels[starts[name] : starts[name] + channels.size].tolist()
        frozen |= set(found) if name in groups.frozen else set()
        for channel, label in enumerate(found):
            members.setdefault(label, []).append((name, channel))
    return [
        _Family(label in frozen, tuple(slot for slot in members[label] if slot[0] in readers))
        for label in sorted(members)
    ]


def _components(count: int, edges: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Return for each of `count` items the smallest item that edges connect it with."""
    labels = np.arange(count)
    while True:
        before = labels.copy()
        for a, b in edges:
            least = np.minimum(labels[a], labels[b])
            np.minimum.at(labels, a, least)
            np.minimum.at(labels, b, least)
        if (labels == before).all():
            return labels
