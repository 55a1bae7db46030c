"""time-stream: each inference takes the next steps of its input instead of a whole window (`--input-stream time`).

Layers that treat all steps alike compute the new ones only; what they need of older steps stays in the arena (operator
TimeWindow). The first operator that needs all steps of the window gets them from such a state. Runs after the
pipeline. What time streaming means for the results is in docs/MEMORY.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from glowc.errors import InputError, StreamError
from glowc.graph.attrs import AttrValue
from glowc.graph.graph import Graph, GraphEditor, Node
from glowc.graph.types import TensorType
from glowc.ops.interp import run_graph
from glowc.ops.recurrent_spec import LENS
from glowc.ops.verify import verify
from glowc.passes.classes import NARY
from glowc.passes.time.rules import (
    COMPUTES,
    POOLED,
    RECURRENT,
    SPATIAL,
    out_axis,
    spatial_axes,
    split_axis,
    window_along,
)
from glowc.passes.time.states import state_problems
from glowc.passes.time.steps import Steps, Window, beside_steps, chosen_steps, merge, sliced, slide

_HINT = "pad the past only (kernel steps - 1 in front), or not at all; docs/MEMORY.md tells what can be streamed"


@dataclass(frozen=True, slots=True)
class TimeStream:
    """A graph that takes `hop` steps of axis `axis` at a time, where the model takes `window` of them.

    `sequence` says that results are those of one inference over all steps since a reset, which begin with `lead` steps
    of the reset value; otherwise they are those of the latest window. The first `warmup_calls` results after a reset
    depend on steps that were not given.
    """

    graph: Graph
    axis: int
    window: int
    hop: int
    sequence: bool
    lead: int
    warmup_calls: int


def time_stream(graph: Graph, hop: int, axis: int | None = None) -> TimeStream:
    """Rewrite `graph` for `hop` new steps an inference along `axis` of its input, or along the axis that allows it.

    Raises InputError for a hop or an axis that the input has not, ModelError naming every layer that stands against it.
    """
    if len(graph.inputs) != 1:
        raise StreamError(
            f"model {graph.name!r} has {len(graph.inputs)} inputs; --input-stream time needs exactly one",
            hint="compile it without --input-stream",
        )
    shape = graph.types[graph.inputs[0]].shape
    axes = _candidates(shape) if axis is None else [axis]
    if not axes or not all(-len(shape) <= a < len(shape) for a in axes):
        raise InputError(f"input {graph.inputs[0]!r} with shape {list(shape)} has no time axis {axis}")
    tried = [_Streamer(graph, hop, a % len(shape)) for a in axes if 0 < hop < shape[a]]
    if not tried:
        sizes = ", ".join(f"axis {a} has {shape[a]}" for a in axes)
        raise InputError(f"--hop {hop}: the input of a window must have more steps than that ({sizes})")
    for one in tried:
        one.run()
    fitting = [one for one in tried if not one.problems and one.computing]
    if fitting:
        return max(fitting, key=lambda one: len(one.computing)).finish()
    closest = next((one for one in tried if one.problems), tried[0])
    raise StreamError(
        f"model {graph.name!r} cannot be compiled with --input-stream time along axis {closest.axis} of its input",
        details=closest.problems or ["every layer needs the whole window, nothing could be computed step by step"],
        hint=_HINT,
    )


def _candidates(shape: Sequence[int]) -> list[int]:
    """Axes that may be time, the usual one first: [N,T], [N,C,T] or [N,T,C], images [N,C,T,F] or [N,C,F,T]."""
    order = {2: [1], 3: [2, 1], 4: [2, 3, 1]}.get(len(shape), list(range(1, len(shape))))
    return [axis for axis in order if shape[axis] > 1] or order


class _RefusalError(Exception):
    """Why a node cannot be computed step by step; the message names it."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """A state that was made: the constant that a reset writes, its source in the whole graph, and padding."""

    start: str
    source: str
    steps: Steps
    fill: float | None


@dataclass(frozen=True, slots=True)
class _Anchor:
    """A layer whose result depends on where the sequence begins: a padded or a recurrent one."""

    label: str
    offset: int
    problem: str = ""


class _Streamer:
    def __init__(self, graph: Graph, hop: int, axis: int) -> None:
        self.graph, self.hop, self.axis = graph, hop, axis
        self.editor = GraphEditor(graph)
        self.steps: dict[str, Steps] = {}
        self.problems: list[str] = []
        self.computing: list[str] = []
        self._kept: dict[str, _Kept] = {}
        self._windows: dict[tuple[str, int, float | None], str] = {}
        self._anchors: list[_Anchor] = []
        self._of_window: list[str] = []
        self._producers = graph.producers()

    @property
    def window(self) -> int:
        """Steps of a whole window."""
        return self.graph.types[self.graph.inputs[0]].shape[self.axis]

    def run(self) -> None:
        """Walk over the graph and rewrite it; what stands against it is in `problems`."""
        name = self.graph.inputs[0]
        self._set(name, Steps(self.axis, self.window, self.hop))
        for node in self.graph.nodes:
            if any(name in self.steps for name in node.inputs):
                self._visit(node)
        for name in self.graph.outputs:
            if name in self.steps and self.steps[name].late:
                self._late(self.steps[name])
        if self.sequence:
            self._check_sequence()

    @property
    def sequence(self) -> bool:
        """True when an output depends on all steps since a reset."""
        outputs = [self.steps[name] for name in self.graph.outputs if name in self.steps]
        recurrent = any(self.editor.nodes[n.name].int_("stateful") for n in self.graph.nodes if n.op in RECURRENT)
        return recurrent or any(s.seen for s in outputs)

    def finish(self) -> TimeStream:
        """Return the graph with its states filled in."""
        self._fill_starts()
        graph = self.editor.finish()
        verify(graph, "time-stream")
        lead = self._anchors[0].offset if self.sequence and self._anchors else 0
        offsets = [self.steps[name].offset for name in graph.outputs if name in self.steps]
        missing = max([o - lead for o in offsets], default=0) if self.sequence else self.window - self.hop
        return TimeStream(graph, self.axis, self.window, self.hop, self.sequence, lead, max(0, -(-missing // self.hop)))

    def _visit(self, node: Node) -> None:
        try:
            done = self._step_by_step(node)
            if not done:
                self._materialise(node)
        except _RefusalError as refusal:
            self.problems.append(str(refusal))

    def _step_by_step(self, node: Node) -> bool:
        """Rewrite a node so that it computes new steps; False when it needs the whole window."""
        x = self.steps.get(node.inputs[0])
        if any(name and name not in self.steps and name not in self.graph.consts for name in node.inputs):
            return False  # what comes from the whole window changes what older steps give
        if node.op in ("Slice", "Gather") and x is not None:
            return self._select(node, x)
        if x is not None and x.late:
            passing = out_axis(self.graph, node, x.axis) if node.op not in COMPUTES else None
            if passing is None:
                self._late(x)
                x = replace(x, late=0)
        if node.op in SPATIAL and x is not None and len(self._timed(node)) == 1:
            return self._spatial(node, x)
        if node.op in RECURRENT and x is not None and len(self._timed(node)) == 1:
            return self._recurrent(node, x)
        return self._pointwise(node) or (node.op == "Reshape" and x is not None and self._frames(node, x))

    def _timed(self, node: Node) -> list[str]:
        return [name for name in node.inputs if name in self.steps]

    def _pointwise(self, node: Node) -> bool:
        """Operators that compute each step from the same step of their inputs."""
        values = []
        for i, name in enumerate(node.inputs):
            if name in self.steps:
                first = replace(node, inputs=(name, *node.inputs[:i], *node.inputs[i + 1 :]))
                axis = out_axis(self.graph, first, self.steps[name].axis)
                if axis is None or (i and node.op in COMPUTES):
                    return False
                values.append(replace(self.steps[name], axis=axis))
        steps, rank = merge(values), self.graph.types[node.outputs[0]].rank
        if steps is None or any(self._varies(node, name, rank, steps.axis) for name in node.inputs):
            return False
        if node.op == "Reshape":
            shape = list(self.graph.types[node.outputs[0]].shape)
            shape[steps.axis] = steps.new
            self._update(node, attrs={**node.attrs, "shape": tuple(shape)})
        for out in node.outputs:
            if out:
                self._set(out, steps)
        if node.op in COMPUTES:
            self.computing.append(node.name)
        return True

    def _frames(self, node: Node, x: Steps) -> bool:
        """A Reshape that cuts time into frames, of which each hop brings whole ones."""
        found = split_axis(self.graph, node, x.axis)
        if found is None or x.late or x.seen:
            return False
        axis, steps = found
        if x.new % steps:
            self.problems.append(f"{node.label}: makes frames of {steps} steps; take --hop as a multiple of that")
        length, new = self.graph.types[node.outputs[0]].shape[axis], max(1, x.new // steps)
        shape = list(self.graph.types[node.outputs[0]].shape)
        shape[axis] = new
        self._update(node, attrs={**node.attrs, "shape": tuple(shape)})
        self._set(node.outputs[0], replace(x, axis=axis, length=length, new=new, stride=x.stride * steps))
        return True

    def _varies(self, node: Node, name: str, rank: int, axis: int) -> bool:
        """True when an operand that is no stream has a value of its own for each step."""
        if name in self.steps or not name or node.op not in NARY | {"Concat"}:
            return False
        type_ = self.graph.types[name]
        own = axis - (rank - type_.rank)
        return node.op == "Concat" or (own >= 0 and type_.shape[own] > 1)

    def _spatial(self, node: Node, x: Steps) -> bool:
        inner, outer = spatial_axes(self.graph, node)
        if x.axis not in inner or len([o for o in node.outputs if o]) != 1:
            return False
        index = inner.index(x.axis)
        window = window_along(self.graph, node, index)
        out_length = self.graph.types[node.outputs[0]].shape[outer[index]]
        full = (x.length + window.begin + window.end - window.kernel) // window.stride + 1
        if full != out_length:
            raise _RefusalError(f"{node.label}: rounds the number of its steps up (ceil_mode)")
        if out_length == 1 and not window.begin and not window.end:
            return False
        if x.new % window.stride:
            self.problems.append(
                f"{node.label}: its stride {window.stride} does not divide the {x.new} steps that --hop {self.hop} "
                f"brings it; take a multiple of {x.stride * window.stride}"
            )
        padded = window.begin > 0 or window.end > 0
        counted = node.op == "AveragePool" and node.int_("count_include_pad")
        if padded and node.op in POOLED and node.op != "MaxPool" and not counted:
            raise _RefusalError(f"{node.label}: takes the mean over fewer steps where there is padding")
        moved = slide(x, window, out_length, node.label)
        if moved is None:
            return False
        fill = self._fill(node) if window.begin else None
        if window.begin:
            self._anchor_padding(node, x, window, moved.keep)
        source = self._with_past(node.inputs[0], x, moved.keep, fill)
        pads = list(node.ints("pads", 2 * len(inner)))
        pads[index] = pads[index + len(inner)] = 0
        part: dict[str, AttrValue] = {"part": 1} if node.op == "AveragePool" else {}
        self._update(node, inputs=(source, *node.inputs[1:]), attrs={**node.attrs, "pads": tuple(pads), **part})
        self._set(node.outputs[0], replace(moved.out, axis=outer[index]))
        self.computing.append(node.name)
        return True

    def _fill(self, node: Node) -> float:
        """The code, or number, that stands for padding in front of the input."""
        type_ = self.graph.types[node.inputs[0]]
        if node.op == "MaxPool":
            return float("-inf") if type_.dtype.is_float else type_.dtype.qmin
        return 0.0 if type_.quant is None else type_.quant.zero_point[0]

    def _anchor_padding(self, node: Node, x: Steps, window: Window, keep: int) -> None:
        problem = ""
        if keep != window.begin:
            problem = f"{node.label}: pads {window.begin} steps in front, a causal layer of its kernel pads {keep}"
        self._anchors.append(_Anchor(node.label, x.offset, problem))

    def _recurrent(self, node: Node, x: Steps) -> bool:
        if x.axis != (1 if node.int_("batch_first") else 0):
            return False
        problems = state_problems(self.graph, node)
        if len(node.inputs) > LENS and node.inputs[LENS]:
            problems.append(f"{node.label}: has its own sequence lengths")
        if problems:
            raise _RefusalError("\n  ".join(problems))
        self._anchors.append(_Anchor(node.label, x.offset))
        self._update(node, attrs={**node.attrs, "stateful": 1})
        if node.outputs[0]:
            self._set(node.outputs[0], replace(x, seen=0, pad_from="", memory=True))
        self.computing.append(node.name)
        return True

    def _select(self, node: Node, x: Steps) -> bool:
        """Slice and Gather: the same steps of each window, counted from its end."""
        chosen = chosen_steps(self.graph, node, x)
        if chosen is None:
            axis = beside_steps(self.graph, node, x)
            if axis is None:
                if x.late:
                    self._late(x)
                return False
            self._set(node.outputs[0], replace(x, axis=axis))
            return True
        begin, end = chosen
        behind = x.length - x.late - end  # newest steps that are cut off
        if behind < 0:
            self._late(x)
            return False
        length = end - begin
        new = min(x.new, length)
        source = self._with_past(node.inputs[0], x, behind, None)
        out = replace(
            x, length=length, new=new, seen=max(0, x.seen - begin), late=0, late_from="",
            offset=x.offset + behind * x.stride,
        )  # fmt: skip
        if not out.seen:
            out = replace(out, pad_from="")
        first = x.new - new
        if node.op == "Gather":
            index = self.editor.add_const(f"{node.inputs[1]}.new", np.asarray(first, np.int64))
            self._update(node, inputs=(source, index))
            if out.seen:
                raise _RefusalError(self._sees_padding(node, out))
            return True
        attrs = sliced(node, self.graph.types[node.inputs[0]].rank, x.axis, first, first + new)
        self._update(node, inputs=(source,), attrs=attrs)
        self._set(node.outputs[0], out)
        return True

    def _materialise(self, node: Node) -> None:
        """Give a node that needs all steps the whole window of each input."""
        inputs = []
        for name in node.inputs:
            if name in self.steps:
                name = self._whole(node, name)
            inputs.append(name)
        self._update(node, inputs=tuple(inputs))

    def _whole(self, node: Node, name: str) -> str:
        x = self.steps[name]
        if x.late:
            self._late(x)
        if x.memory:
            raise _RefusalError(
                f"{node.label}: needs the whole window of what a recurrent layer carries from step to step"
            )
        if x.seen:
            raise _RefusalError(self._sees_padding(node, x))
        self._of_window.append(node.label)
        return self._with_past(name, x, x.length - x.new, None)

    def _sees_padding(self, node: Node, x: Steps) -> str:
        return (
            f"{node.label}: needs steps of the window that see the padding in front of {x.pad_from}, "
            "where a stream has earlier steps"
        )

    def _late(self, x: Steps) -> None:
        text = f"{x.late_from}: pads after the window, its last {x.late} steps would need steps that are still to come"
        if text not in self.problems:
            self.problems.append(text)

    def _with_past(self, name: str, x: Steps, keep: int, fill: float | None) -> str:
        """Return the value of the new steps with `keep` older ones in front; fewer than none cuts new ones off."""
        if keep == 0:
            return name
        if keep < 0:
            return self._cut(name, x, -keep)
        key = (name, keep, fill)
        if key not in self._windows:
            self._windows[key] = self._add_window(name, x, keep, fill)
        return self._windows[key]

    def _add_window(self, name: str, x: Steps, keep: int, fill: float | None) -> str:
        type_ = self._resized(name, x.axis, keep + x.new)
        start = self.editor.add_const(f"{name}.start", np.zeros(type_.shape, type_.dtype.numpy), type_)
        out = self.editor.add_value(f"{name}.window", type_)
        producer = self._producers.get(name)
        self.editor.add_node(
            "TimeWindow", (name, start), (out,), {"axis": x.axis}, origin=producer.origin if producer else ()
        )
        self._kept[start] = _Kept(start, name, x, fill)
        return out

    def _cut(self, name: str, x: Steps, first: int) -> str:
        out = self.editor.add_value(f"{name}.used", self._resized(name, x.axis, x.new - first))
        attrs: dict[str, AttrValue] = {"starts": (first,), "ends": (x.new,), "axes": (x.axis,), "steps": (1,)}
        self.editor.add_node("Slice", (name,), (out,), attrs)
        return out

    def _resized(self, name: str, axis: int, length: int) -> TensorType:
        type_ = self.graph.types[name]
        return replace(type_, shape=(*type_.shape[:axis], length, *type_.shape[axis + 1 :]))

    def _set(self, name: str, steps: Steps) -> None:
        """Note that a value is a stream, unless each inference computes all of it."""
        self.editor.types[name] = self._resized(name, steps.axis, steps.new)
        if not steps.whole:
            self.steps[name] = steps

    def _update(self, node: Node, **fields: object) -> None:
        self.editor.update(self.editor.nodes[node.name], **fields)

    def _check_sequence(self) -> None:
        """All layers that know where the sequence begins must agree on it."""
        self.problems += [a.problem for a in self._anchors if a.problem]
        first = self._anchors[0]
        self.problems += [
            f"{label}: needs the latest window, but what {first.label} gives depends on all steps since a reset"
            for label in dict.fromkeys(self._of_window)
        ]
        self.problems += [
            f"{a.label}: begins {abs(a.offset - first.offset)} input steps away from where {first.label} begins: "
            "layers without padding stand before one of them"
            for a in self._anchors[1:]
            if a.offset != first.offset
        ]
        strides = [self.steps[name].stride for name in self.graph.outputs if name in self.steps]
        self.problems += [
            f"the window of {self.window} steps is no multiple of the output's stride {stride}"
            for stride in sorted(set(strides))
            if self.window % stride
        ]

    def _fill_starts(self) -> None:
        """Write what the states hold after a reset: padding, or what a stream of the reset value leaves there."""
        name = self.graph.inputs[0]
        type_ = self.graph.types[name]
        rest = 0 if type_.quant is None else type_.quant.zero_point[0]
        values = run_graph(self.graph, {name: np.full(type_.shape, rest, type_.dtype.numpy)}, keep_all=True)
        for start, kept in self._kept.items():
            target = self.editor.types[start]
            if self.sequence and kept.fill is not None:
                self.editor.consts[start] = np.full(target.shape, kept.fill, target.dtype.numpy)
                continue
            last = kept.steps.length - kept.steps.late - 1
            step = np.take(values[kept.source], [last], kept.steps.axis)
            self.editor.consts[start] = np.ascontiguousarray(np.broadcast_to(step, target.shape))
