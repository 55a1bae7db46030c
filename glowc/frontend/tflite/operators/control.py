"""IF and WHILE with conditions that are known at compile time: the branch, or every turn of the loop, in their place.

The operators of a subgraph are imported as if they stood in the graph. Of an IF whose condition is computed at run time
both branches run, where neither keeps anything, and the results are chosen; a WHILE needs a condition that is known.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from glowc.frontend.problems import NodeError
from glowc.frontend.tflite.net import WITH_STATE, Net
from glowc.frontend.tflite.operators.options import option
from glowc.frontend.tflite.reader import Operator, Subgraph

MOST_TURNS = 1000
_BRANCHES = ("ThenSubgraphIndex", "ElseSubgraphIndex")
_HINT = "convert the network with a condition that is known, or compute both sides and choose with tf.where"


def _subgraph(net: Net, number: int) -> Subgraph:
    if not 0 < number < len(net.subgraphs):
        raise NodeError(f"subgraph {number} is none of the file's {len(net.subgraphs)} that can be called")
    return net.subgraphs[number]


def _results(net: Net, graph: Subgraph, values: Sequence[str]) -> list[str]:
    """Return the values of a subgraph's outputs, given those of its inputs; its operators join the graph."""
    from glowc.frontend.tflite.operators import handler_of

    if len(values) != len(graph.inputs):
        raise NodeError(f"{len(values)} inputs for the {len(graph.inputs)} of subgraph {graph.name!r}")
    with net.inside(graph):
        for index, value in zip(graph.inputs, values, strict=True):
            net.define(index, value)
        for operator in graph.operators:
            handler = handler_of(operator, net)
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
    """IF: the branch that is taken; both and a choice where the condition is computed at run time."""
    given, numbers = [net.value(i) for i in operator.inputs[1:]], [option(operator, key) for key in _BRANCHES]
    condition = net.folded(net.value(operator.inputs[0]))
    if condition in net.consts:
        number = numbers[0 if _known(net, condition, "the condition") else 1]
        _define(operator, net, _results(net, _subgraph(net, number), given))
        return
    if net.types[condition].elements != 1:
        raise NodeError(f"the condition is {net.types[condition]}, not one truth value")
    before, first = net.kept(), len(net.nodes)
    both = [_results(net, _subgraph(net, number), given) for number in numbers]
    if net.kept() != before or any(node.op in WITH_STATE for node in net.nodes[first:]):
        raise NodeError("a branch keeps values between inferences, and the condition is computed at run time", _HINT)
    _choose(operator, net, condition, both)


def _choose(operator: Operator, net: Net, condition: str, both: Sequence[Sequence[str]]) -> None:
    """Let the results be those of the first branch where the condition holds, else of the second."""
    one = net.reshaped(condition, ())
    for out, then, otherwise in zip(operator.outputs, *both, strict=True):
        types = [net.types[value] for value in (then, otherwise)]
        if (types[0].shape, types[0].dtype, types[0].quant) != (types[1].shape, types[1].dtype, types[1].quant):
            raise NodeError(
                f"its branches give {types[0]} and {types[1]}, and the condition is computed at run time", _HINT
            )
        net.define(out, net.emit("Where", (one, then, otherwise), type_=types[0]))


def composite(operator: Operator, net: Net) -> None:
    """STABLEHLO_COMPOSITE: the subgraph that says what it is made of."""
    number = option(operator, "DecompositionSubgraphIndex")
    _define(operator, net, _results(net, _subgraph(net, number), [net.value(i) for i in operator.inputs]))


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


HANDLERS = {"IF": branch, "WHILE": loop, "STABLEHLO_COMPOSITE": composite}
