"""Checks that a graph is well formed: names, order, types and each operator's own type rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from glowc.errors import InternalError
from glowc.graph.attrs import Attr
from glowc.graph.graph import Graph, Node, State
from glowc.graph.types import TensorType

if TYPE_CHECKING:
    from glowc.ops.base import OpDef


def verify(graph: Graph, where: str = "") -> None:
    """Raise InternalError naming every violation found in `graph`; `where` names the pass that made it."""
    problems = [*_check_values(graph), *_check_nodes(graph)]
    if problems:
        raise InternalError(f"invalid graph {graph.name!r}" + (f" after {where}" if where else ""), details=problems)


def _check_values(graph: Graph) -> list[str]:
    problems = [f"{name}: no type" for name in (*graph.sources, *graph.results) if name not in graph.types]
    for name, array in graph.consts.items():
        type_ = graph.types.get(name)
        if type_ is None:
            problems.append(f"constant {name}: no type")
        elif tuple(array.shape) != type_.shape or array.dtype != type_.dtype.numpy:
            problems.append(f"constant {name}: array {array.dtype}{list(array.shape)} but type {type_}")
    problems += [f"{name}: {why}" for name, t in graph.types.items() for why in quant_problems(t)]
    return problems


def quant_problems(type_: TensorType) -> list[str]:
    """Return what is wrong with a type's quantisation parameters."""
    q = type_.quant
    if q is None:
        return []
    if not type_.dtype.is_integer:
        return [f"quantization on {type_}"]
    if len(q.scale) != len(q.zero_point):
        return [f"{len(q.scale)} scales but {len(q.zero_point)} zero points"]
    if q.axis is None:
        return [] if len(q.scale) == 1 else [f"{len(q.scale)} scales without an axis"]
    if not 0 <= q.axis < type_.rank or type_.shape[q.axis] != len(q.scale):
        return [f"{len(q.scale)} scales along axis {q.axis} of {type_}"]
    return []


def _check_nodes(graph: Graph) -> list[str]:
    from glowc.ops.registry import find_op

    problems: list[str] = []
    defined = set(graph.sources) | set(graph.consts)
    seen: set[str] = set()
    for node in graph.nodes:
        if node.name in seen:
            problems.append(f"{node.label}: second node named {node.name}")
        seen.add(node.name)
        missing = [name for name in node.inputs if name and name not in defined]
        problems += [f"{node.label}: reads {name} before it is computed" for name in missing]
        twice = [name for name in node.outputs if name in defined]
        problems += [f"{node.label}: writes {name}, which already has a value" for name in twice]
        defined.update(name for name in node.outputs if name)
        op = find_op(node.op)
        if op is None:
            continue
        wrong = _check_attrs(node, op.attrs, op.required)
        problems += wrong
        if not missing and not wrong:
            problems += _check_types(graph, node, op)
    problems += [f"output {name} is never computed" for name in graph.results if name not in defined]
    problems += [problem for state in graph.states for problem in _check_state(graph, state)]
    return problems


def _check_state(graph: Graph, state: State) -> list[str]:
    if state.value not in graph.types or state.next not in graph.types:
        return []  # said already
    value, after = graph.types[state.value], graph.types[state.next]
    problems = []
    if (value.shape, value.dtype) != (after.shape, after.dtype):
        problems.append(f"state {state.value} is {value}, but becomes {after}")
    if state.initial.shape != value.shape or state.initial.dtype != value.dtype.numpy:
        problems.append(
            f"state {state.value} is {value}, but begins as {state.initial.dtype}{list(state.initial.shape)}"
        )
    if state.next in graph.sources:
        problems.append(f"state {state.value} becomes {state.next}, which no node computes")
    return problems


def _check_attrs(node: Node, known: Mapping[str, Attr], required: frozenset[str]) -> list[str]:
    problems = []
    if not required <= node.attrs.keys():
        problems = [f"{node.label}: lacks attribute {key}" for key in sorted(required - node.attrs.keys())]
    for key, value in node.attrs.items():
        attr = known.get(key)
        if attr is None:
            problems.append(f"{node.label}: unknown attribute {key}")
        elif not attr.accepts(value):
            problems.append(f"{node.label}: attribute {key} = {value!r}: needs {attr.wanted}")
    return problems


def _check_types(graph: Graph, node: Node, op: OpDef) -> list[str]:
    if any(name and name not in graph.types for name in (*node.inputs, *node.outputs)):
        return [f"{node.label}: a value has no type"]
    try:
        expected = op.infer(node, graph.in_types(node))
    except Exception as error:
        return [f"{node.label}: {error}"]
    problems = []
    for name, want in zip(node.outputs, expected, strict=False):
        have = graph.types[name] if name else want
        if have.shape != want.shape or have.dtype != want.dtype:
            problems.append(f"{node.label}: output {name} is {have}, its rule gives {want}")
    return problems
