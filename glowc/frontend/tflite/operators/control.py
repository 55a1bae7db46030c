"""IF and WHILE with conditions that are known at compile time: the branch, or every turn of the loop, in their place.

The operators of a subgraph are imported as if they stood in the graph; a condition that is computed at run time is
refused by the operator's name.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from glowc.frontend.problems import NodeError
from glowc.frontend.tflite.net import Net
from glowc.frontend.tflite.operators.options import option
from glowc.frontend.tflite.reader import Operator, Subgraph

MOST_TURNS = 1000


def _subgraph(net: Net, number: int) -> Subgraph:
    if not 0 < number < len(net.subgraphs):
        raise NodeError(f"subgraph {number} is none of the file's {len(net.subgraphs)} that can be called")
    return net.subgraphs[number]


def _results(net: Net, graph: Subgraph, values: Sequence[str]) -> list[str]:
    """Return the values of a subgraph's outputs, given those of its inputs; its operators join the graph."""
    from glowc.frontend.tflite.operators import HANDLERS

    if len(values) != len(graph.inputs):
        raise NodeError(f"{len(values)} inputs for the {len(graph.inputs)} of subgraph {graph.name!r}")
    with net.inside(graph):
        for index, value in zip(graph.inputs, values, strict=True):
            net.define(index, value)
        for operator in graph.operators:
            handler = HANDLERS.get(operator.code)
            if handler is None:
                raise NodeError(f"subgraph {graph.name!r} has {operator.label}, which is not supported")
            net.current = operator
            handler(operator, net)
        return [net.value(index) for index in graph.outputs]


def _known(net: Net, value: str, what: str) -> bool:
    array = net.consts.get(net.folded(value))
    if array is None:
        raise NodeError(f"{what} is computed at run time; glowc needs one that is known at compile time")
    return bool(np.asarray(array).reshape(-1)[0])


def branch(operator: Operator, net: Net) -> None:
    """IF: the branch that is taken."""
    taken = _known(net, net.value(operator.inputs[0]), "the condition")
    number = option(operator, "ThenSubgraphIndex" if taken else "ElseSubgraphIndex")
    values = _results(net, _subgraph(net, number), [net.value(i) for i in operator.inputs[1:]])
    _define(operator, net, values)


def loop(operator: Operator, net: Net) -> None:
    """WHILE: its turns, one after the other."""
    condition = _subgraph(net, option(operator, "CondSubgraphIndex"))
    body = _subgraph(net, option(operator, "BodySubgraphIndex"))
    values = [net.value(i) for i in operator.inputs]
    for _ in range(MOST_TURNS):
        if not _known(net, net.folded(_results(net, condition, values)[0]), "the condition"):
            _define(operator, net, values)
            return
        values = [net.folded(value) for value in _results(net, body, values)]
    raise NodeError(f"the loop has more than {MOST_TURNS} turns")


def _define(operator: Operator, net: Net, values: Sequence[str]) -> None:
    for index, value in zip(operator.outputs, values, strict=True):
        net.define(index, value)


HANDLERS = {"IF": branch, "WHILE": loop}
