"""A model that takes steps of time instead of windows: from the options to the header and the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypedDict

from glowc.errors import InputError
from glowc.graph.graph import Graph
from glowc.passes.layout.edge import TO_NHWC, Change, Edge
from glowc.passes.time.time_stream import TimeStream, time_stream


class Steps(TypedDict):
    """How a model takes its input in time, as report.json says it."""

    axis: int
    hop_steps: int
    window_steps: int
    lead_steps: int
    warmup_calls: int
    results_of: str


class TimeReport(TypedDict, total=False):
    """The section of time."""

    time: Steps


@dataclass(frozen=True, slots=True)
class TimeForm:
    """A graph with its edge; `stream` is None for a model that takes whole windows."""

    graph: Graph
    edge: Edge
    stream: TimeStream | None = None

    @property
    def macros(self) -> Mapping[str, tuple[int, str]]:
        """What the header says about time: value and meaning by the name's end."""
        s = self.stream
        if s is None:
            return {}
        warm = "results after a reset that depend on steps which were not given"
        lead = "steps of the reset value with which the sequence begins"
        return {
            "HOP_STEPS": (s.hop, "new steps that each inference takes"),
            "WINDOW_STEPS": (s.window, "steps of the window that the model was made for"),
            "WARMUP_CALLS": (s.warmup_calls, warm),
            **({"LEAD_STEPS": (s.lead, lead)} if s.lead else {}),
        }

    @property
    def report(self) -> TimeReport:
        """What report.json says about time: nothing for a model that takes whole windows."""
        s = self.stream
        if s is None:
            return {}
        steps: Steps = {
            "axis": self.exported_axis, "hop_steps": s.hop, "window_steps": s.window, "lead_steps": s.lead,
            "warmup_calls": s.warmup_calls, "results_of": "sequence" if s.sequence else "window",
        }  # fmt: skip
        return {"time": steps}

    @property
    def exported_axis(self) -> int:
        """The time axis of the input as the model was exported."""
        assert self.stream is not None
        change = self.edge.changes.get(self.graph.inputs[0])
        return TO_NHWC[self.stream.axis] if change is not None and change.nhwc else self.stream.axis


def form_in_time(graph: Graph, edge: Edge, input_stream: str, hop: int | None, axis: int | None) -> TimeForm:
    """Return the graph for `hop` steps at a time, or as it is when the input does not come as time steps.

    `axis` counts the axes of the exported input. Raises InputError for options that do not go together, and what
    `time_stream` raises.
    """
    if input_stream != "time":
        own_hop = None if input_stream == "samples" else hop
        given = [flag for flag, value in (("--hop", own_hop), ("--time-axis", axis)) if value is not None]
        if given:
            raise InputError(f"{' and '.join(given)} without --input-stream time", hint="add --input-stream time")
        return TimeForm(graph, edge)
    if hop is None:
        raise InputError(
            "--input-stream time needs the number of steps that come at a time", hint="--hop N, for example --hop 1"
        )
    change = edge.changes.get(graph.inputs[0]) if graph.inputs else None
    if axis is not None and change is not None and change.nhwc:
        axis = TO_NHWC.index(axis % 4)
    stream = time_stream(graph, hop, axis)
    changes = {name: _resized(change, stream.graph.types[name].shape) for name, change in edge.changes.items()}
    return TimeForm(stream.graph, replace(edge, changes=changes), stream)


def _resized(change: Change, shape: tuple[int, ...]) -> Change:
    """Return the same change of a tensor that has another shape in the bundle."""
    exported = tuple(shape[TO_NHWC.index(i)] for i in range(4)) if change.nhwc else shape
    return replace(
        change, exported=replace(change.exported, shape=exported), bundle=replace(change.bundle, shape=shape)
    )
