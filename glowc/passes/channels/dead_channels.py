"""dead-channels: removes channels that cannot matter, without changing one output byte.

A channel goes when every reader multiplies it by zero, or when it can hold one code only and its readers can
take that constant into their biases (a constant other than the zero point only where no window reaches
padding). Producers lose the channel, consumers' weights shrink. Channels of tensors that are tied
position by position (elementwise operators, pools, depthwise convolutions) go together or stay together.
Kernels take channels in pairs: where an odd number would be left, another one stays, with weights of zero.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, TypedDict

import numpy as np

from glowc.graph.graph import Graph, GraphEditor, Node
from glowc.graph.types import TensorType
from glowc.ops.conv import is_planar
from glowc.passes.base import GraphPass, PassCtx
from glowc.passes.channels.groups import ChannelGroups
from glowc.passes.channels.ranges import (
    BINARY,
    Range,
    centred,
    channel_ranges,
    groups_of,
    is_channel_vector,
    is_depthwise,
    is_weighted,
    pads_reach,
)

_INT32 = 2**31 - 1
_LEAST = 3  # channels that another one is added to where they are odd


@dataclass(frozen=True, slots=True)
class _Masks:
    """Channels that matter, by value, and those that stay."""

    live: dict[str, np.ndarray]
    keep: dict[str, np.ndarray]


class DeadChannels(GraphPass):
    """Interval analysis forwards, need backwards, then a rewrite of weights, biases and shapes."""

    name: ClassVar[str] = "dead-channels"

    def run(self, graph: Graph, ctx: PassCtx) -> Graph:
        """Return the graph without dead channels; the same graph when all of them matter."""
        if not any(is_weighted(graph, node) for node in graph.nodes):
            return graph
        ranges = channel_ranges(graph)
        groups = ChannelGroups(graph, ranges)
        live = _needed(graph, ranges, groups)
        if all(mask.all() for mask in live.values()):
            return graph
        masks = _Masks(live, _filled(live, groups))
        biases = {n.name: _bias(graph, n, ranges, live) for n in graph.nodes if is_weighted(graph, n)}
        if any(np.abs(bias).max(initial=0) > _INT32 for bias in biases.values()):
            return graph
        editor = GraphEditor(graph)
        for node in graph.nodes:
            _rewrite(graph, editor, node, masks, biases)
        for name, mask in masks.keep.items():
            if name in editor.types and not mask.all():
                old = editor.types[name]
                editor.types[name] = replace(old, shape=(*old.shape[:-1], int(mask.sum())))
        return editor.finish()


def foldable(graph: Graph, node: Node, x: Range) -> np.ndarray:
    """Return the input channels of a weighted node that are constants its bias can hold."""
    type_ = graph.types[node.inputs[0]]
    assert type_.quant is not None
    if is_depthwise(graph, node) or is_planar(node) or groups_of(node) > 1:
        return np.zeros(x.low.size, bool)
    at_zero = x.low == type_.quant.zero_point[0]
    return np.asarray(x.constant & (at_zero if pads_reach(node) else True))


def _needed(graph: Graph, ranges: dict[str, Range], groups: ChannelGroups) -> dict[str, np.ndarray]:
    """Return a keep mask for every value, the smallest that is consistent; a fixed point from below."""
    keep = groups.initial()
    changed = True
    while changed:
        changed = False
        for node in reversed(graph.nodes):
            for name, need in _node_needs(graph, node, ranges, keep).items():
                changed |= groups.require(keep, name, need)
        changed = changed or groups.fill_empty(keep)
    return keep


def _filled(live: dict[str, np.ndarray], groups: ChannelGroups) -> dict[str, np.ndarray]:
    """Return the keep masks with channels that fill groups, and those tied to them."""
    keep = dict(live)
    for name, mask in live.items():
        missing = _missing(int(mask.sum())) - int((keep[name] & ~mask).sum())
        groups.require(keep, name, ~keep[name] & (np.cumsum(~keep[name]) <= missing))
    return keep


def _missing(count: int) -> int:
    return count % 2 if count >= _LEAST else 0


def _node_needs(
    graph: Graph, node: Node, ranges: dict[str, Range], keep: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """What this node needs of its inputs beyond the ties between tensors."""
    if not is_weighted(graph, node) or is_depthwise(graph, node) or node.inputs[0] not in keep:
        return {}
    name = node.inputs[0]
    if is_planar(node) or groups_of(node) > 1:
        return {name: np.ones(keep[name].size, bool)}
    alive = keep.get(node.outputs[0], np.ones(graph.types[node.outputs[0]].shape[-1], bool))
    used = centred(graph, node)[alive].any(axis=(0, 1))
    return {name: used & ~foldable(graph, node, ranges[name])}


def _bias(graph: Graph, node: Node, ranges: dict[str, Range], live: dict[str, np.ndarray]) -> np.ndarray:
    """Return the bias (int64) with removed constant inputs inside; 0 where nothing needs the output."""
    bias = graph.consts[node.inputs[2]].astype(np.int64)
    x_type = graph.types[node.inputs[0]]
    if not is_depthwise(graph, node) and node.inputs[0] in live and x_type.quant is not None:
        gone = ~live[node.inputs[0]]
        if gone.any():
            fixed = ranges[node.inputs[0]].low[gone] - x_type.quant.zero_point[0]
            dead_weights = centred(graph, node)[..., gone].sum(axis=1)
            bias = bias + dead_weights @ fixed
    return np.asarray(bias * live.get(node.outputs[0], True))


def _rewrite(graph: Graph, editor: GraphEditor, node: Node, masks: _Masks, biases: dict[str, np.ndarray]) -> None:
    keep = masks.keep
    if node.name in biases:
        _rewrite_weighted(graph, editor, node, masks, biases[node.name])
    elif node.op == "Reshape" and node.outputs[0] in keep and not keep[node.outputs[0]].all():
        shape = (*node.ints("shape")[:-1], int(keep[node.outputs[0]].sum()))
        editor.update(editor.nodes[node.name], attrs={**node.attrs, "shape": shape})
    elif node.op in BINARY:
        _rewrite_binary(graph, editor, node, keep)


def _rewrite_weighted(graph: Graph, editor: GraphEditor, node: Node, masks: _Masks, bias: np.ndarray) -> None:
    weights, type_ = graph.consts[node.inputs[1]], graph.types[node.inputs[1]]
    live_rows, live_columns = _of_weights(graph, node, masks.live)
    rows, columns = _of_weights(graph, node, masks.keep)
    dead = ~(live_rows[:, None, None] & live_columns)
    silent = weights - (centred(graph, node) * dead).reshape(weights.shape).astype(weights.dtype)
    if rows.all() and columns.all() and np.array_equal(silent, weights):
        return
    smaller = np.ascontiguousarray(silent[rows][..., columns])
    new_w = editor.add_const(f"{node.inputs[1]}.live", smaller, _filtered(type_, smaller, rows, live_rows))
    new_b = editor.add_const(f"{node.inputs[2]}.live", bias[rows].astype(np.int32))
    attrs = {**node.attrs, "group": int(rows.sum())} if is_depthwise(graph, node) else node.attrs
    editor.update(editor.nodes[node.name], inputs=(node.inputs[0], new_w, new_b), attrs=attrs)


def _of_weights(graph: Graph, node: Node, masks: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the masks of a layer's outputs, and of its inputs that weights multiply by channel."""
    type_ = graph.types[node.inputs[1]]
    rows = masks.get(node.outputs[0], np.ones(type_.shape[0], bool))
    cut = not (is_depthwise(graph, node) or is_planar(node) or groups_of(node) > 1)
    return rows, masks.get(node.inputs[0] if cut else "", np.ones(type_.shape[-1], bool))


def _filtered(type_: TensorType, array: np.ndarray, rows: np.ndarray, live: np.ndarray) -> TensorType:
    """Return the type of the weights of `rows`; those not `live` are zeros, and have the least scale of the others.

    With their own they could have a factor that is rounded in another way, for which kernels split layers.
    """
    quant = type_.quant
    if quant is not None and quant.axis == 0:
        chosen = np.flatnonzero(rows)
        least = min((quant.scale[i] for i in np.flatnonzero(live)), default=1.0)
        scale = tuple(quant.scale[i] if live[i] else least for i in chosen)
        quant = replace(quant, scale=scale, zero_point=tuple(quant.zero_point[i] for i in chosen))
    return replace(type_, shape=array.shape, quant=quant)


def _rewrite_binary(graph: Graph, editor: GraphEditor, node: Node, keep: dict[str, np.ndarray]) -> None:
    mask = keep.get(node.outputs[0])
    if mask is None or mask.all():
        return
    inputs = []
    for name in node.inputs:
        type_ = graph.types[name]
        if name in graph.consts and type_.elements > 1 and is_channel_vector(type_, graph.types[node.outputs[0]]):
            array = np.ascontiguousarray(graph.consts[name][..., mask])
            name = editor.add_const(f"{name}.live", array, replace(type_, shape=array.shape))
        inputs.append(name)
    editor.update(editor.nodes[node.name], inputs=tuple(inputs))


class RemovedChannels(TypedDict):
    """A layer of the report that lost output channels."""

    name: str
    before: int
    after: int


def removed_channels(imported: Graph, graph: Graph) -> list[RemovedChannels]:
    """Return name, channels before and channels after of each layer of `imported` that lost some in `graph`."""
    before = {
        node.origin[0]: imported.types[node.inputs[1]].shape[0]
        for node in imported.nodes
        if node.op == "Conv" and node.origin
    }
    rows: list[RemovedChannels] = []
    for node in graph.nodes:
        name = node.origin[0] if node.origin else ""
        after = graph.types[node.inputs[1]].shape[0] if node.op == "Conv" else 0
        if node.op == "Conv" and before.get(name, after) > after:
            rows.append({"name": name, "before": before[name], "after": after})
    return rows
