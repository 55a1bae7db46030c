"""Which steps a Slice or Gather takes of each window."""

from __future__ import annotations

from glowc.graph.attrs import AttrValue
from glowc.graph.graph import Graph, Node
from glowc.passes.time.steps import Steps


def chosen_steps(graph: Graph, node: Node, x: Steps) -> tuple[int, int] | None:
    """Return the steps [begin, end) that a node takes, None when it takes all of them, or not one range."""
    rank = graph.types[node.inputs[0]].rank
    if node.op == "Gather":
        index = graph.consts.get(node.inputs[1])
        if index is None or index.size != 1 or index.ndim or node.int_("axis") % rank != x.axis:
            return None
        at = int(index) % x.length
        return at, at + 1
    for starts, ends, step, axis in _ranges(node, rank):
        if axis == x.axis:
            begin, end, step = slice(starts, ends, step).indices(x.length)
            return (begin, end) if step == 1 and begin < end and (begin, end) != (0, x.length) else None
    return None


def beside_steps(graph: Graph, node: Node, x: Steps) -> int | None:
    """Return the time axis after a Slice or Gather along other axes, None when it takes steps in another way."""
    rank = graph.types[node.inputs[0]].rank
    if node.op == "Gather":
        axis = node.int_("axis") % rank
        if axis == x.axis or node.inputs[1] not in graph.consts:
            return None
        return x.axis + (graph.consts[node.inputs[1]].ndim - 1 if axis < x.axis else 0)
    along = [step for _, _, step, axis in _ranges(node, rank) if axis == x.axis]
    same = graph.types[node.outputs[0]].shape[x.axis] == x.length
    return x.axis if same and all(step == 1 for step in along) else None


def sliced(node: Node, rank: int, time: int, begin: int, end: int) -> dict[str, AttrValue]:
    """Return the attributes of a Slice with other bounds along axis `time`."""
    starts, ends = list(node.ints("starts")), list(node.ints("ends"))
    for k, (_, _, _, axis) in enumerate(_ranges(node, rank)):
        if axis == time:
            starts[k], ends[k] = begin, end
    return {**node.attrs, "starts": tuple(starts), "ends": tuple(ends)}


def _ranges(node: Node, rank: int) -> list[tuple[int, int, int, int]]:
    """Return start, end, step and axis for each range of a Slice."""
    starts, ends = node.ints("starts"), node.ints("ends")
    steps = node.ints("steps", len(starts))
    axes = [axis % rank for axis in node.ints("axes") or tuple(range(len(starts)))]
    return list(zip(starts, ends, steps, axes, strict=True))
