"""Runs a graph in numpy by each operator's `reference`: the definition that generated C is compared with."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from glowc.errors import UnsupportedError
from glowc.graph.graph import Graph
from glowc.ops.base import Call
from glowc.ops.registry import find_op


def run_graph(
    graph: Graph, inputs: Mapping[str, np.ndarray], *, keep_all: bool = False,
    states: dict[str, np.ndarray] | None = None,
) -> dict[str, np.ndarray]:  # fmt: skip
    """Return the outputs by name, or every value with `keep_all`.

    `states` holds what the graph's states are before, by value, where that is not what they begin with; afterwards
    what they are then. Raises ModelError for an operator that has no reference.
    """
    values: dict[str, np.ndarray] = {**graph.consts, **{n: np.asarray(inputs[n]) for n in graph.inputs}}
    values |= {s.value: (states or {}).get(s.value, s.initial) for s in graph.states}
    for node in graph.nodes:
        op = find_op(node.op)
        if op is None:
            raise UnsupportedError(f"{node.label}: the interpreter does not know this operator")
        arrays = tuple(values[name] if name else None for name in node.inputs)
        call = Call(node, arrays, graph.in_types(node), tuple(graph.types[n] for n in node.outputs if n))
        for name, array in zip(node.outputs, op.reference(call), strict=False):
            if name:
                values[name] = array
    if states is not None:
        states |= {s.value: values[s.next] for s in graph.states}
    return values if keep_all else {name: values[name] for name in graph.outputs}
