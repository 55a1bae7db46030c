"""Which int8 tensors must keep the same channels, and the keep masks under these ties."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from glowc.graph.graph import Graph, Node
from glowc.passes.channel_ranges import (
    BINARY,
    POOLS,
    Range,
    flatten_positions,
    is_channel_vector,
    is_depthwise,
    is_weighted,
)
from glowc.passes.classes import UNARY


class ChannelGroups:
    """Ties between values: equal channels (elementwise, pools, depthwise) or the same channels at each of
    several positions (flattening). Values that something unknown reads or writes are frozen: they keep all."""

    def __init__(self, graph: Graph, ranges: Mapping[str, Range]) -> None:
        self._graph = graph
        self._channels = {name: r.low.size for name, r in ranges.items()}
        self._ties: dict[str, list[tuple[str, int, int]]] = {name: [] for name in self._channels}
        self._frozen = {name for name in (*graph.inputs, *graph.outputs) if name in self._channels}
        for node in graph.nodes:
            self._add(node)

    def initial(self) -> dict[str, np.ndarray]:
        """Return masks that keep all channels of frozen values and none of the others."""
        keep = {name: np.zeros(count, bool) for name, count in self._channels.items()}
        for name in self._frozen:
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
            for other, times, over in self._ties[current]:
                wanted = np.asarray(keep[current].reshape(over, -1).any(axis=0))
                stack.append((other, np.tile(wanted, times)))
            tiled = self._tiled(current, keep)
            if tiled is not None:
                stack.append((current, tiled))
        return changed

    def _tiled(self, name: str, keep: dict[str, np.ndarray]) -> np.ndarray | None:
        """A flattened value keeps a channel at every position or at none."""
        for _, _, over in self._ties[name]:
            if over > 1:
                mask = np.tile(keep[name].reshape(over, -1).any(axis=0), over)
                if (mask & ~keep[name]).any():
                    return np.asarray(mask)
        return None

    def _tie(self, a: str, b: str, positions: int = 1) -> None:
        """Channels of b are those of a, `positions` times behind each other."""
        self._ties[a].append((b, positions, 1))
        self._ties[b].append((a, 1, positions))

    def _add(self, node: Node) -> None:
        graph, out = self._graph, node.outputs[0]
        x = node.inputs[0] if node.inputs else ""
        known = x in self._channels and out in self._channels and len(node.outputs) == 1
        if is_weighted(graph, node):
            if is_depthwise(graph, node) and known and not node.int_("planar"):
                self._tie(x, out)
            elif is_depthwise(graph, node) or node.int_("group", 1) > 1 or not known:
                self._freeze(node)
            elif node.int_("planar"):
                self._frozen.add(x)
            return
        if known and self._same_channels(node):
            for name in node.inputs:
                if name in self._channels:
                    self._tie(name, out)
            return
        count = flatten_positions(graph, node) if known and node.op == "Reshape" else None
        if count is not None:
            self._tie(x, out, count)
            return
        self._freeze(node)

    def _same_channels(self, node: Node) -> bool:
        graph, out = self._graph, self._graph.types[node.outputs[0]]
        if node.op in UNARY:
            return True
        if node.op in POOLS:
            return node.str_("layout") == "nhwc"
        if node.op == "ReduceMean":
            last = graph.types[node.inputs[0]].rank - 1
            return last not in node.ints("axes") and 0 not in node.ints("axes")
        if node.op in BINARY:
            return all(
                (name in self._channels and graph.types[name].shape == out.shape)
                or (name in graph.consts and is_channel_vector(graph.types[name], out))
                for name in node.inputs
            )
        return False

    def _freeze(self, node: Node) -> None:
        self._frozen.update(name for name in (*node.inputs, *node.outputs) if name in self._channels)
