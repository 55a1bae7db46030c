"""IF and WHILE with conditions that are known at compile time: the branch, or every turn of the loop, in their place.

The operators of a subgraph are imported as if they were in the graph. Of an IF whose condition is computed at run time
both branches run, where neither keeps anything, and the results are chosen. Of a WHILE with such a condition as many
turns run as a known part of it allows (tf.while_loop's maximum_iterations compares a counter, and another condition
joins it by LOGICAL_AND); values stay as they are from the turn on whose condition is false.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext

import numpy as np

from glowc.frontend.problems import NodeError
from glowc.frontend.tflite.net import WITH_STATE, Net
from glowc.frontend.tflite.operators.options import option
from glowc.frontend.tflite.reader import Operator, Subgraph

MOST_TURNS = 1000
_BRANCHES = ("ThenSubgraphIndex", "ElseSubgraphIndex")
_ENDLESS = "give it a maximum: tf.while_loop(..., maximum_iterations=20)"
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
    with _keeps_nothing(net, "a branch"):
        both = [_results(net, _subgraph(net, number), given) for number in numbers]
    _define(operator, net, _chosen(net, condition, both, "its branches give"))


@contextmanager
def _keeps_nothing(net: Net, part: str) -> Iterator[None]:
    """Refuse what keeps values between inferences: it would run where the condition is false."""
    before, first = net.kept(), len(net.nodes)
    yield
    if net.kept() != before or any(node.op in WITH_STATE for node in net.nodes[first:]):
        raise NodeError(f"{part} keeps values between inferences, and the condition is computed at run time", _HINT)


def _chosen(net: Net, condition: str, both: Sequence[Sequence[str]], said: str) -> list[str]:
    """Return the first values where the condition holds, else the second."""
    one, found = net.reshaped(condition, ()), list[str]()
    for then, otherwise in zip(*both, strict=True):
        types = [net.types[value] for value in (then, otherwise)]
        if (types[0].shape, types[0].dtype, types[0].quant) != (types[1].shape, types[1].dtype, types[1].quant):
            raise NodeError(f"{said} {types[0]} and {types[1]}, and the condition is computed at run time", _HINT)
        same = then == otherwise
        found.append(then if same else net.emit("Where", (one, then, otherwise), type_=types[0]))
    return found


def composite(operator: Operator, net: Net) -> None:
    """STABLEHLO_COMPOSITE: the subgraph that says what it is made of."""
    number = option(operator, "DecompositionSubgraphIndex")
    _define(operator, net, _results(net, _subgraph(net, number), [net.value(i) for i in operator.inputs]))


def loop(operator: Operator, net: Net) -> None:
    """WHILE: its turns, one after the other.

    What is known at compile time goes on to the next turn as it is: a counter is known for all turns.
    """
    condition = _subgraph(net, option(operator, "CondSubgraphIndex"))
    body = _subgraph(net, option(operator, "BodySubgraphIndex"))
    values = results = [net.value(i) for i in operator.inputs]
    going = ""  # the truth of all conditions so far, once one is computed
    for _ in range(MOST_TURNS):
        with _keeps_nothing(net, "its condition") if going else nullcontext():
            asked = net.folded(_results(net, condition, values)[0])
        if _is_false(net, asked):
            _define(operator, net, results)
            return
        going = going if asked in net.consts else _both_true(net, going, asked)
        with _keeps_nothing(net, "its body") if going else nullcontext():
            after = [net.folded(value) for value in _results(net, body, values)]
        results = _chosen(net, going, (after, results), "a value is") if going else after
        values = [new if new in net.consts else kept for new, kept in zip(after, results, strict=True)]
    if going:
        text = "its condition is computed at run time, and may hold for"
        raise NodeError(f"{text} more than {MOST_TURNS} turns", _ENDLESS)
    raise NodeError(f"the loop has more than {MOST_TURNS} turns")


def _is_false(net: Net, condition: str) -> bool:
    """Say whether a condition is known to be false, or joins one that is by LOGICAL_AND."""
    if (array := net.consts.get(net.folded(condition))) is not None:
        return not np.asarray(array).reshape(-1)[0]
    maker = net.maker(condition)
    return maker is not None and maker.op == "And" and any(_is_false(net, name) for name in maker.inputs)


def _both_true(net: Net, going: str, condition: str) -> str:
    if net.types[condition].elements != 1:
        raise NodeError(f"the condition is {net.types[condition]}, not one truth value")
    one = net.reshaped(condition, ())
    return net.emit("And", (going, one)) if going else one


def _define(operator: Operator, net: Net, values: Sequence[str]) -> None:
    for index, value in zip(operator.outputs, values, strict=True):
        net.define(index, value)


HANDLERS = {"IF": branch, "WHILE": loop, "STABLEHLO_COMPOSITE": composite}
