"""Time axes of values that arrive step by step, and what a window that slides along time needs of the past.

`Steps` describes a value of which each inference computes only the newest steps. The arithmetic is that of one axis;
which operator has which axis is in `time_rules`; which steps a Slice or Gather takes of each window stands below.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from glowc.graph.attrs import AttrValue
from glowc.graph.graph import Graph, Node


@dataclass(frozen=True, slots=True)
class Steps:
    """The time axis of a value that is computed step by step.

    `length` steps belong to a whole window, an inference computes the `new` ones, `stride` input steps stand for one.
    The first `seen` steps of a whole window see padding of layer `pad_from`. The last `late` steps would see padding
    after the window, of layer `late_from`: they are never computed, and a Slice has to cut them off. `offset` input
    steps before the first one are a part of step 0. `memory` says that a recurrent layer stands before.
    """

    axis: int
    length: int
    new: int
    stride: int = 1
    seen: int = 0
    pad_from: str = ""
    late: int = 0
    late_from: str = ""
    offset: int = 0
    memory: bool = False

    @property
    def whole(self) -> bool:
        """True when an inference computes all steps of the window, as a whole-window inference does."""
        return self.new == self.length and self.seen == 0 and self.late == 0

    def same_pace(self, other: Steps) -> bool:
        """True when the two values bring the same steps at each inference."""
        return (self.length, self.new, self.stride, self.late) == (other.length, other.new, other.stride, other.late)


@dataclass(frozen=True, slots=True)
class Window:
    """Kernel, stride and padding of an operator along time; `kernel` counts the steps from first to last tap."""

    kernel: int
    stride: int
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Slide:
    """How a window moves over its input: `keep` older steps in front of the new ones (negative: new ones left out)."""

    keep: int
    out: Steps


def slide(x: Steps, w: Window, out_length: int, label: str) -> Slide | None:
    """Return how window `w` moves over `x`, None where all of its outputs are computed each time.

    The newest output ends at the newest step, but for steps that the whole window leaves unused, too. `w.stride`
    has to divide `x.new`.
    """
    unpadded = (x.length + w.begin - w.kernel) // w.stride + 1
    new = max(1, x.new // w.stride)
    if unpadded < 1 or new > unpadded or (new == unpadded and w.begin == 0):
        return None
    unused = x.length + w.begin - ((unpadded - 1) * w.stride + w.kernel)
    keep = w.kernel - w.stride + unused
    late = out_length - unpadded
    seen = min(unpadded, -(-(x.seen + w.begin) // w.stride))
    out = replace(
        x, length=out_length, new=new, stride=x.stride * w.stride, seen=seen,
        pad_from=(x.pad_from or label) if seen else "", late=late, late_from=label if late else "",
        offset=x.offset + (keep - w.begin) * x.stride,
    )  # fmt: skip
    return Slide(keep, out)


def merge(values: list[Steps]) -> Steps | None:
    """Return the steps of an elementwise result, None when the operands do not go along time together."""
    first = values[0]
    if not all(first.same_pace(v) and v.axis == first.axis for v in values):
        return None
    padded = max(values, key=lambda v: v.seen)
    return replace(
        first, seen=padded.seen, pad_from=padded.pad_from, offset=max(v.offset for v in values),
        memory=any(v.memory for v in values),
    )  # fmt: skip


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
