"""Where the time axis goes: for each operator that works step by step, the axis of its output.

A rule returns the output's axis, or None for an operator that needs all steps at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from glowc.graph.graph import Graph, Node
from glowc.ops.conv import is_planar
from glowc.ops.reduce import axes_of
from glowc.passes.axes import perm_of
from glowc.passes.classes import NARY, REDUCE, UNARY
from glowc.passes.time.steps import Window

Rule = Callable[[Graph, Node, int], int | None]
POOLED = frozenset(("MaxPool", "AveragePool", "LpPool"))
SPATIAL = POOLED | {"Conv"}
RECURRENT = frozenset(("LSTM", "GRU", "RNN"))
COMPUTES = frozenset(("Conv", "FullyConnected", "MatMul", *RECURRENT))
"""Operators that make a time stream worth while."""


def out_axis(graph: Graph, node: Node, axis: int) -> int | None:
    """Return the time axis of the node's output when its first input has time axis `axis`."""
    rule = _RULES.get(node.op)
    return rule(graph, node, axis) if rule is not None else None


def spatial_axes(graph: Graph, node: Node) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the spatial axes of a convolution's or pool's input and of its output."""
    rank = graph.types[node.inputs[0]].rank
    inner, outer = tuple(range(1, rank - 1)), tuple(range(2, rank))
    if not node.is_nhwc:
        return outer, outer
    return (outer if is_planar(node) else inner), inner


def window_along(graph: Graph, node: Node, index: int) -> Window:
    """Return the window of a convolution or pool along its spatial axis number `index`."""
    count = len(spatial_axes(graph, node)[0])
    if node.op == "Conv":
        weights = graph.types[node.inputs[1]].shape
        taps = weights[1 + index] if node.is_nhwc else weights[2 + index]
    else:
        taps = node.ints("kernel_shape")[index]
    pads = node.ints("pads", 2 * count)
    kernel = (taps - 1) * node.ints("dilations", count)[index] + 1
    return Window(kernel, node.ints("strides", count)[index], pads[index], pads[index + count])


def _same(graph: Graph, node: Node, axis: int) -> int | None:
    return axis


def _elementwise(graph: Graph, node: Node, axis: int) -> int | None:
    """Operands are aligned at their last axes; other operands must not change along time."""
    out = graph.types[node.outputs[0]]
    return axis + out.rank - graph.types[node.inputs[0]].rank


def _not_last(graph: Graph, node: Node, axis: int) -> int | None:
    return axis if axis < graph.types[node.inputs[0]].rank - 1 else None


def _matmul(graph: Graph, node: Node, axis: int) -> int | None:
    """A row of the first factor gives a row of the result; the second one must be the same for all rows."""
    a, b, y = (graph.types[name] for name in (*node.inputs[:2], node.outputs[0]))
    if any(f"perm_{key}" in node.attrs for key in "aby") or axis == a.rank - 1 or b.rank > 2:
        return None
    return axis + y.rank - a.rank


def _beside(graph: Graph, node: Node, axis: int) -> int | None:
    """Operators with attribute `axis`: time must be another one."""
    rank = graph.types[node.inputs[0]].rank
    return axis if node.int_("axis") % rank != axis else None


def _in_front(graph: Graph, node: Node, axis: int) -> int | None:
    """Normalisations over `axis` and all after it."""
    rank = graph.types[node.inputs[0]].rank
    return axis if axis < node.int_("axis") % rank else None


def _reduce(graph: Graph, node: Node, axis: int) -> int | None:
    rank = graph.types[node.inputs[0]].rank
    axes = axes_of(node, rank)
    if axis in axes:
        return None
    return axis if node.int_("keepdims") else axis - sum(a < axis for a in axes)


def _transpose(graph: Graph, node: Node, axis: int) -> int | None:
    rank = graph.types[node.inputs[0]].rank
    return perm_of(node, rank).index(axis)


def _reshape(graph: Graph, node: Node, axis: int) -> int | None:
    """Time stays an axis of its own when as many elements are in front of it as before."""
    x, y = graph.types[node.inputs[0]].shape, graph.types[node.outputs[0]].shape
    front = math.prod(x[:axis])
    found = [i for i, d in enumerate(y) if d == x[axis] and math.prod(y[:i]) == front]
    return found[0] if x[axis] > 1 and found else None


def split_axis(graph: Graph, node: Node, axis: int) -> tuple[int, int] | None:
    """Return the axis of frames that a Reshape makes of time axis `axis`, and how many old steps a frame has."""
    x, y = graph.types[node.inputs[0]].shape, graph.types[node.outputs[0]].shape
    front = math.prod(x[:axis])
    for i, frames in enumerate(y):
        frame = [math.prod(y[i + 1 : j]) for j in range(i + 2, len(y) + 1)]
        if math.prod(y[:i]) == front and frames > 1 and x[axis] in [frames * f for f in frame]:
            return i, x[axis] // frames
    return None


_RULES: dict[str, Rule] = {
    **dict.fromkeys(UNARY | {"Lut", "Dropout", "FlipSign"}, _same),
    **dict.fromkeys(NARY, _elementwise),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax", "Concat", "Split", "ChannelLines"), _beside),
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), _in_front),
    **dict.fromkeys(REDUCE, _reduce),
    "FullyConnected": _not_last,
    "MatMul": _matmul,
    "Transpose": _transpose,
    "Reshape": _reshape,
}  # fmt: skip
