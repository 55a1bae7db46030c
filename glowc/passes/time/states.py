"""States between inferences.

stateful: recurrent layers keep their state (`glowc compile --stateful`). Marks every operator that knows the attribute
`stateful`. Runs after the pipeline, when initial states that the model computes from constants have become constants: a
reset writes them.

state-window: a state that new steps are joined to, and whose last steps it becomes, is a TimeWindow. The state and what
it was joined to were two buffers and two copies; the window is one, whose steps move up.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from glowc.errors import StreamError
from glowc.graph.graph import Graph, GraphEditor, Node, State
from glowc.graph.types import TensorType
from glowc.ops.movement import slice_ranges
from glowc.ops.recurrent_spec import C0, H0
from glowc.ops.registry import find_op
from glowc.ops.strided import axis_of
from glowc.passes.base import GraphPass, PassCtx


class Stateful(GraphPass):
    """Set attribute `stateful` of every recurrent operator; ModelError names those that cannot keep a state."""

    name: ClassVar[str] = "stateful"

    def run(self, graph: Graph, ctx: PassCtx) -> Graph:
        """Mark, or raise; a model without recurrent operators has no state to keep."""
        nodes = [node for node in graph.nodes if _can_keep(node)]
        problems = [problem for node in nodes for problem in state_problems(graph, node)]
        if not nodes:
            problems = ["it has no LSTM, GRU or RNN"]
        if problems:
            raise StreamError(f"model {graph.name!r} cannot be compiled with --stateful", details=problems)
        editor = GraphEditor(graph)
        for node in nodes:
            editor.update(node, attrs={**node.attrs, "stateful": 1})
        return editor.finish()


def _can_keep(node: Node) -> bool:
    op = find_op(node.op)
    return op is not None and "stateful" in op.attrs


def state_problems(graph: Graph, node: Node) -> list[str]:
    problems = []
    direction = node.str_("direction")
    if direction != "forward":
        problems.append(f"{node.label}: direction {direction} begins at a window's end, which no state leads up to")
    initial = [node.inputs[i] for i in (H0, C0) if i < len(node.inputs) and node.inputs[i]]
    problems += [
        f'{node.label}: its initial state "{name}" is computed at run time; --stateful keeps the state itself'
        for name in initial
        if name not in graph.consts
    ]
    return problems


class StateWindow(GraphPass):
    """Concat(state, new) whose end is the state of the next inference becomes TimeWindow(new)."""

    name: ClassVar[str] = "state-window"

    def run(self, graph: Graph, ctx: PassCtx) -> Graph:
        """Rewrite every state that is such a window."""
        found = {state.value: joined for state in graph.states if (joined := _joined(graph, state)) is not None}
        if not found:
            return graph
        editor = GraphEditor(replace(graph, states=tuple(s for s in graph.states if s.value not in found)))
        for state in graph.states:
            if state.value in found:
                _rewrite(editor, found[state.value], state)
        return editor.finish()


def _joined(graph: Graph, state: State) -> Node | None:
    """Return the Concat that joins new steps to a state, when its last steps are the next state."""
    users, last = graph.users().get(state.value, []), graph.producers().get(state.next)
    if len(users) != 1 or users[0].op != "Concat" or last is None or last.op != "Slice" or state.value in graph.results:
        return None
    (join,) = users
    read = tuple(join.inputs) == (state.value, join.inputs[-1]) and last.inputs[0] == join.outputs[0]
    kinds = [graph.types[name] for name in (*join.inputs, *join.outputs)]
    same = all((t.dtype, t.quant) == (kinds[0].dtype, kinds[0].quant) for t in kinds)
    return join if read and same and _is_end(last, kinds[-1], kinds[0], _axis(join, kinds[0])) else None


def _axis(join: Node, type_: TensorType) -> int:
    return axis_of(join.int_("axis"), type_.rank)


def _is_end(last: Node, whole: TensorType, kept: TensorType, axis: int) -> bool:
    """Say whether a Slice of `whole` is its last steps, as many as `kept` has, along one axis."""
    want = [range(n) for n in whole.shape]
    want[axis] = range(whole.shape[axis] - kept.shape[axis], whole.shape[axis])
    return slice_ranges(last, whole.shape) == want


def _rewrite(editor: GraphEditor, join: Node, state: State) -> None:
    axis, new = _axis(join, editor.types[join.inputs[1]]), editor.types[join.inputs[1]].shape
    gone = np.take(state.initial, [0] * new[axis], axis)  # moved out before it is read
    start = editor.add_const(f"{state.value}.start", np.concatenate([gone, state.initial], axis))
    editor.update(join, op="TimeWindow", inputs=(join.inputs[1], start), attrs={"axis": axis})
