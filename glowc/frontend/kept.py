"""States that a model's metadata note: inputs that are what outputs were at the call before."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx
from onnx import helper, numpy_helper

from glowc.errors import ModelError, ModelFileError
from glowc.graph.graph import Graph, State
from glowc.graph.types import TensorType

STATES_KEY = "glowc.states"
"""In the metadata: which output each of these inputs is at the next call, as JSON.

The first value is an initializer called like the input with this in front; zero where there is none.
"""


@dataclass(frozen=True, slots=True)
class Kept:
    """An input, the output that it is at the next call, and what it is at first."""

    input: str
    output: str
    initial: np.ndarray


def note_states(model: onnx.ModelProto, states: Sequence[Kept]) -> None:
    """Write states into a model's metadata, besides those that are noted there."""
    if states:
        pairs = {**noted_states(model), **{s.input: s.output for s in states}}
        props = {entry.key: entry.value for entry in model.metadata_props}
        helper.set_model_props(model, {**props, STATES_KEY: json.dumps(pairs)})
    first = [numpy_helper.from_array(s.initial, _first(s.input)) for s in states if np.any(s.initial)]
    model.graph.initializer.extend(first)


def _first(name: str) -> str:
    return f"{STATES_KEY}.{name}"


def with_noted_states(graph: Graph, model: onnx.ModelProto, label: str) -> Graph:
    """Return a graph with the states that the model's metadata note; one whose input got a value is none.

    Raises ModelFileError where the metadata do not fit the model, ModelError where nothing but states comes out.
    """
    first = first_values(model)
    noted = noted_states(model, label)
    pairs = {name: out for name, out in noted.items() if name in graph.inputs}
    wrong = [f'"{name}" and "{out}"' for name, out in pairs.items() if not _is_pair(graph, name, out)]
    if wrong:
        raise ModelFileError(f"{label}: the metadata {STATES_KEY} name no states of the model", details=wrong)
    if pairs and set(pairs.values()) == set(graph.outputs):
        hint = "return what an inference computes, besides the states"
        raise ModelError(f"{label}: every output is a state: nothing would be left for the caller", hint=hint)
    states = tuple(State(name, out, _initial(graph, name, first.get(name))) for name, out in pairs.items())
    types = {**graph.types, **{name: state_type(graph, name) for name in pairs}}
    return replace(
        graph, types=types, inputs=tuple(n for n in graph.inputs if n not in pairs), states=(*graph.states, *states),
        outputs=tuple(n for n in graph.outputs if n not in pairs.values()),
    )  # fmt: skip


def noted_states(model: onnx.ModelProto, label: str = "model") -> dict[str, str]:
    """Return which output each of these inputs is at the next call. Raises ModelFileError for damaged metadata."""
    texts = [entry.value for entry in model.metadata_props if entry.key == STATES_KEY]
    try:
        return {str(name): str(out) for text in texts for name, out in json.loads(text).items()}
    except (ValueError, AttributeError):
        raise ModelFileError(f"{label}: the metadata {STATES_KEY} are damaged", hint="export the model again") from None


def _is_pair(graph: Graph, name: str, out: str) -> bool:
    return out in graph.outputs and state_type(graph, name) == graph.types[out]


def state_type(graph: Graph, name: str) -> TensorType:
    """Return the type of an input, of codes with the quantisation that all its readers take them to have."""
    readers = graph.users().get(name, [])
    kinds = [graph.types[node.outputs[0]] for node in readers if node.op == "AssignQuant"]
    return kinds[0] if kinds and kinds == kinds[:1] * len(readers) else graph.types[name]


def first_values(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """Return the first values that the model has for states, by input."""
    ends = {_first(name): name for name in noted_states(model)}
    return {ends[i.name]: numpy_helper.to_array(i) for i in model.graph.initializer if i.name in ends}


def _initial(graph: Graph, name: str, first: np.ndarray | None) -> np.ndarray:
    type_ = graph.types[name]
    kind = type_.dtype.numpy
    return np.zeros(type_.shape, kind) if first is None else first.astype(kind)
