"""Per-channel intervals of integer tensors: which codes can a channel take, whatever the input is.

Interval arithmetic on the exact integer formulas. Channels are the last axis (NHWC). Every operator used here
is monotone in each of its inputs, so that the results of the extreme inputs bound all others.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from glowc.graph.graph import Graph, Node
from glowc.graph.types import DType, TensorType
from glowc.ops.base import Call
from glowc.ops.conv import is_planar
from glowc.ops.integer import code_bounds, ending_of
from glowc.ops.reduce import axes_of
from glowc.ops.registry import get_op
from glowc.passes.classes import UNARY

_AT_ONCE = 1 << 18  # weights that are computed with
POOLS = frozenset(("MaxPool", "AveragePool"))
BINARY = frozenset(("Add", "Sub", "Mul", "FixedAdd", "FixedSub", "FixedMul"))


@dataclass(frozen=True, slots=True)
class Range:
    """Smallest and largest code of each channel (int64 arrays of one length)."""

    low: np.ndarray
    high: np.ndarray

    @property
    def constant(self) -> np.ndarray:
        """True for channels that hold one code only."""
        return np.asarray(self.low == self.high)


def is_code(type_: TensorType | None) -> bool:
    """True for int8 tensors with per-tensor quantisation and a channel axis."""
    return (
        type_ is not None and type_.dtype is DType.S8 and type_.quant is not None and not type_.quant.per_axis
        and type_.rank >= 2
    )  # fmt: skip


def channel_ranges(graph: Graph) -> dict[str, Range]:
    """Return the range of every int8 value of `graph`."""
    ranges: dict[str, Range] = {}
    for name in graph.sources:
        if is_code(graph.types[name]):
            ranges[name] = full_range(graph.types[name])
    for node in graph.nodes:
        name = node.outputs[0]
        if is_code(graph.types.get(name)):
            ranges[name] = _range_of(graph, node, ranges)
    return ranges


def full_range(type_: TensorType) -> Range:
    """Return the range of a tensor about which nothing is known."""
    channels = type_.shape[-1]
    return Range(np.full(channels, type_.dtype.qmin, np.int64), np.full(channels, type_.dtype.qmax, np.int64))


def _range_of(graph: Graph, node: Node, ranges: Mapping[str, Range]) -> Range:
    out = graph.types[node.outputs[0]]
    known = [ranges.get(name) for name in node.inputs]
    first = known[0] if known else None
    if first is None:
        return full_range(out)
    if node.op in ("Conv", "FullyConnected") and is_weighted(graph, node):
        return _weighted(graph, node, first)
    if (node.op in POOLS and node.is_nhwc) or node.op in UNARY or is_spatial_mean(graph, node):
        return _corners(graph, node, [(first.low, first.high)])
    if node.op in BINARY:
        return _binary(graph, node, known)
    if node.op == "Reshape" and flatten_positions(graph, node) is not None:
        count = flatten_positions(graph, node) or 1
        return Range(np.tile(first.low, count), np.tile(first.high, count))
    if joins_channels(graph, node) and None not in known:
        return Range(*(np.concatenate([getattr(r, end) for r in known]) for end in ("low", "high")))
    return full_range(out)


def is_weighted(graph: Graph, node: Node) -> bool:
    """True for an NHWC Conv or FullyConnected on codes with constant weights and bias."""
    types = graph.in_types(node)
    if "shift_div" in node.attrs:  # its multipliers are attributes, which this pass does not cut
        return False
    nhwc = node.op == "FullyConnected" or (node.op == "Conv" and node.is_nhwc)
    constant = len(node.inputs) > 2 and all(name in graph.consts for name in node.inputs[1:3])
    weights = types[1] if len(types) > 1 else None
    return nhwc and constant and is_code(types[0]) and weights is not None and weights.quant is not None


def is_depthwise(graph: Graph, node: Node) -> bool:
    """True for a depthwise Conv with one output channel an input channel."""
    group = groups_of(node)
    weights = graph.types[node.inputs[1]]
    return group > 1 and weights.shape[-1] == 1 and weights.shape[0] == group


def groups_of(node: Node) -> int:
    """Return the groups of a Conv; a FullyConnected has one."""
    return node.int_("group") if node.op == "Conv" else 1


def centred(graph: Graph, node: Node) -> np.ndarray:
    """Return the weights minus their zero points as [O, taps, I / group]: int16 of bytes, else int64."""
    weights, type_ = graph.consts[node.inputs[1]], graph.types[node.inputs[1]]
    assert type_.quant is not None
    kind = np.int16 if weights.dtype.itemsize == 1 else np.int64
    points = np.asarray(type_.quant.zero_point, kind)
    if points.size > 1:
        points = points.reshape([-1 if i == type_.quant.axis else 1 for i in range(type_.rank)])
    centred = np.subtract(weights, points, dtype=kind)
    return np.asarray(centred.reshape(type_.shape[0], -1, type_.shape[-1]))


def pads_reach(node: Node) -> bool:
    """True when a window may lie partly on padding."""
    return node.op == "Conv" and any(node.ints("pads", 4))


def _weighted(graph: Graph, node: Node, x: Range) -> Range:
    x_type, y_type = graph.types[node.inputs[0]], graph.types[node.outputs[0]]
    w_type, bias = graph.types[node.inputs[1]], graph.consts[node.inputs[2]].astype(np.int64)
    if x_type.quant is None or w_type.quant is None or y_type.quant is None:
        return full_range(y_type)
    planar = is_planar(node)
    weights, zero = centred(graph, node), x_type.quant.zero_point[0]
    group = groups_of(node)
    if planar or (group > 1 and not is_depthwise(graph, node)):
        low = np.full(weights.shape[-1], -128 - zero)
        high = np.full(weights.shape[-1], 127 - zero)
    else:
        low, high = x.low - zero, x.high - zero
    if pads_reach(node):
        low, high = np.minimum(low, 0), np.maximum(high, 0)
    shape = (-1, 1) if is_depthwise(graph, node) and not planar else (1, -1)
    least, most = _extreme_sums(weights, low.reshape(shape), high.reshape(shape))
    sums = [least + bias, most + bias]
    bounds = code_bounds(node, y_type.quant, y_type.dtype)
    ending = ending_of(node, x_type.quant, w_type.quant, y_type.quant)
    codes = [ending.codes(s, y_type.quant.zero_point[0], *bounds) for s in sums]
    return Range(codes[0], codes[1])


def _extreme_sums(weights: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the largest sums of weights[O, taps, I] and inputs between low and high, [O or 1, I].

    A few rows at a time: of many weights nothing else is held.
    """
    least, most = np.empty(len(weights), np.int64), np.empty(len(weights), np.int64)
    rows = max(1, _AT_ONCE // max(weights[0].size, 1)) if len(weights) else 1
    for begin in range(0, len(weights), rows):
        part = slice(begin, begin + rows)
        positive = np.maximum(weights[part], 0).sum(axis=1, dtype=np.int64)
        negative = weights[part].sum(axis=1, dtype=np.int64) - positive
        small, large = (end if len(end) == 1 else end[part] for end in (low, high))
        least[part] = (positive * small + negative * large).sum(axis=1)
        most[part] = (positive * large + negative * small).sum(axis=1)
    return least, most


def joins_channels(graph: Graph, node: Node) -> bool:
    """True for a Concat of tensors with equal codes along the channels."""
    out = graph.types[node.outputs[0]]
    if node.op != "Concat" or node.int_("axis") not in (-1, out.rank - 1):
        return False
    types = [graph.types[name] for name in node.inputs]
    return all(is_code(t) and t.quant == out.quant for t in types)


def is_spatial_mean(graph: Graph, node: Node) -> bool:
    """True for a mean over neither images nor channels."""
    if node.op != "ReduceMean":
        return False
    rank = graph.types[node.inputs[0]].rank
    return not {0, rank - 1} & {*axes_of(node, rank)}


def _binary(graph: Graph, node: Node, known: list[Range | None]) -> Range:
    out = graph.types[node.outputs[0]]
    ends: list[tuple[np.ndarray, np.ndarray]] = []
    for name, range_ in zip(node.inputs, known, strict=True):
        type_ = graph.types[name]
        if range_ is not None and type_.shape == out.shape:
            ends.append((range_.low, range_.high))
        elif name in graph.consts and is_channel_vector(type_, out):
            row = np.broadcast_to(graph.consts[name].reshape(-1).astype(np.int64), (out.shape[-1],))
            ends.append((row, row))
        else:
            return full_range(out)
    return _corners(graph, node, ends)


def is_channel_vector(type_: TensorType, out: TensorType) -> bool:
    """True for a constant that is one number, or one per channel of `out`."""
    last = type_.shape[-1] if type_.rank else 0
    return type_.elements == 1 or type_.elements == last == out.shape[-1]


def _corners(graph: Graph, node: Node, ends: list[tuple[np.ndarray, np.ndarray]]) -> Range:
    """Evaluate the operator on every combination of extreme inputs; extremes over positions, per channel."""
    out = graph.types[node.outputs[0]]
    types = [graph.types[name] for name in node.inputs]
    lows, highs = [], []
    for chosen in itertools.product(*ends):
        if node.op in UNARY and np.any(ends[0][0] != ends[0][1]):
            return _table_range(graph, node, ends[0])
        arrays = tuple(_filled(t, row) for t, row in zip(types, chosen, strict=True))
        result = get_op(node.op).reference(Call(node, arrays, tuple(types), (out,)))[0]
        flat = result.reshape(-1, out.shape[-1]).astype(np.int64)
        lows.append(flat.min(axis=0))
        highs.append(flat.max(axis=0))
    return Range(np.min(lows, axis=0), np.max(highs, axis=0))


def _filled(type_: TensorType, row: np.ndarray) -> np.ndarray:
    values = row if type_.shape and type_.shape[-1] == row.size else row[0]
    return np.ascontiguousarray(np.broadcast_to(np.asarray(values, type_.dtype.numpy), type_.shape))


def _table_range(graph: Graph, node: Node, ends: tuple[np.ndarray, np.ndarray]) -> Range:
    """A unary function need not be monotone: look at all codes between the ends."""
    codes = np.arange(-128, 128, dtype=np.int8)
    x, y = graph.types[node.inputs[0]], graph.types[node.outputs[0]]
    call = Call(node, (codes,), (replace(x, shape=(256,)),), (replace(y, shape=(256,)),))
    table = get_op(node.op).reference(call)[0].astype(np.int64)
    spans = [table[low + 128 : high + 129] for low, high in zip(*ends, strict=True)]
    return Range(np.asarray([s.min() for s in spans]), np.asarray([s.max() for s in spans]))


def flatten_positions(graph: Graph, node: Node) -> int | None:
    """Return how many positions a Reshape [N,H,W,C] -> [N,H*W*C] puts one after another, None for another one."""
    x, y = graph.types[node.inputs[0]], graph.types[node.outputs[0]]
    channels = x.shape[-1] if x.rank else 0
    if not channels or y.rank < 2 or y.shape[-1] % channels or y.shape[0] != x.shape[0]:
        return None
    count = y.shape[-1] // channels
    return count if math.prod(x.shape[1:-1]) == count * math.prod(y.shape[1:-1]) else None
