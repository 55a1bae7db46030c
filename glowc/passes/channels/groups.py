"""Which channels of which int8 tensors must stay or go together, and the keep masks under these ties."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from glowc.graph.graph import Graph, Node
from glowc.ops.conv import is_planar
from glowc.passes.channels.ranges import (
    BINARY,
    POOLS,
    Range,
    flatten_positions,
    groups_of,
    is_channel_vector,
    is_code,
    is_depthwise,
    is_spatial_mean,
    is_weighted,
    joins_channels,
)
from glowc.passes.classes import UNARY

Tie = tuple[str, np.ndarray, np.ndarray]
"""Another value, channels of this one, and the channels of the other that stay or go with them."""


class ChannelGroups:
    """Ties between values: equal channels (elementwise, pools, depthwise), the same channels at each of several
    positions (flattening), or a part of the channels (concatenation). Values that something unknown reads or
    writes are frozen: they keep all."""

    def __init__(self, graph: Graph, ranges: Mapping[str, Range]) -> None:
        self._graph = graph
        self._channels = {name: r.low.size for name, r in ranges.items()}
        self.ties: dict[str, list[Tie]] = {name: [] for name in self._channels}
        self.frozen = {name for name in (*graph.sources, *graph.results) if name in self._channels}
        for node in graph.nodes:
            self._add(node)

    def initial(self) -> dict[str, np.ndarray]:
        """Return masks that keep all channels of frozen values and none of the others."""
        keep = {name: np.zeros(count, bool) for name, count in self._channels.items()}
        for name in self.frozen:
            self.require(keep, name, np.ones(self._channels[name], bool))
        return keep

    def fill_empty(self, keep: dict[str, np.ndarray]) -> bool:
        """Keep one channel of a value that would lose all of them; say whether there was one."""
        for name, mask in keep.items():
            if not mask.any():
                first = np.zeros(mask.size, bool)
                first[0] = True
                return self.require(keep, name, first)
        return False

    def require(self, keep: dict[str, np.ndarray], name: str, need: np.ndarray) -> bool:
        """Add `need` to the mask of `name` and of all values tied to it; say whether anything changed."""
        stack, changed = [(name, need)], False
        while stack:
            current, mask = stack.pop()
            if not (mask & ~keep[current]).any():
                continue
            keep[current] = keep[current] | mask
            changed = True
            for other, own, theirs in self.ties[current]:
                wanted = np.zeros(self._channels[other], bool)
                wanted[theirs[keep[current][own]]] = True
                stack.append((other, wanted))
        return changed

    def _tie(self, a: str, b: str, own: np.ndarray, theirs: np.ndarray) -> None:
        """Channels `own` of a stay with channels `theirs` of b."""
        self.ties[a].append((b, own, theirs))
        self.ties[b].append((a, theirs, own))

    def _tie_all(self, a: str, b: str, positions: int = 1) -> None:
        """Channels of b are those of a, `positions` times, one after another."""
        count = self._channels[a]
        self._tie(a, b, np.tile(np.arange(count), positions), np.arange(count * positions))

    def _tie_parts(self, node: Node) -> None:
        """Channels of a concatenation are those of its inputs, one after another."""
        first = 0
        for name in node.inputs:
            count = self._channels[name]
            self._tie(name, node.outputs[0], np.arange(count), np.arange(first, first + count))
            first += count

    def _add(self, node: Node) -> None:
        graph, out = self._graph, node.outputs[0]
        x = node.inputs[0] if node.inputs else ""
        known = x in self._channels and out in self._channels and len(node.outputs) == 1
        if is_weighted(graph, node):
            if is_depthwise(graph, node) and known and not is_planar(node):
                self._tie_all(x, out)
            elif is_depthwise(graph, node) or groups_of(node) > 1 or not known:
                self._freeze(node)
            elif is_planar(node):
                self.frozen.add(x)
            return
        if known and keeps_channels(graph, node):
            for name in node.inputs:
                if name in self._channels:
                    self._tie_all(name, out)
            return
        if known and joins_channels(graph, node) and all(name in self._channels for name in node.inputs):
            self._tie_parts(node)
            return
        count = flatten_positions(graph, node) if known and node.op == "Reshape" else None
        if count is not None:
            self._tie_all(x, out, count)
            return
        self._freeze(node)

    def _freeze(self, node: Node) -> None:
        self.frozen.update(name for name in (*node.inputs, *node.outputs) if name in self._channels)


def keeps_channels(graph: Graph, node: Node) -> bool:
    """True when every channel of the output is computed from that channel of each input that is no constant."""
    out = graph.types[node.outputs[0]]
    if node.op in UNARY:
        return True
    if node.op in POOLS:
        return node.is_nhwc
    if is_spatial_mean(graph, node):
        return True
    if node.op in BINARY:
        return all(
            (name not in graph.consts and is_code(graph.types[name]) and graph.types[name].shape == out.shape)
            or (name in graph.consts and is_channel_vector(graph.types[name], out))
            for name in node.inputs
        )
    return False
