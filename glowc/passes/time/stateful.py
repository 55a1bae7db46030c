"""stateful: recurrent layers keep their state between inferences (`glowc compile --stateful`).

Marks every operator that knows the attribute `stateful`. Runs after the pipeline, when initial states that the model
computes from constants have become constants: a reset writes them.
"""

from __future__ import annotations

from typing import ClassVar

from glowc.errors import ModelError
from glowc.graph.graph import Graph, GraphEditor, Node
from glowc.ops.recurrent_spec import C0, H0
from glowc.ops.registry import find_op
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
            raise ModelError(f"model {graph.name!r} cannot be compiled with --stateful", details=problems)
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
