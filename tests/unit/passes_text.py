"""Helpers of the pass tests: text in, text out."""

from __future__ import annotations

import difflib
import textwrap

from glowc.graph.graph import Graph
from glowc.graph.text import dump, parse
from glowc.ops.verify import verify
from glowc.passes.base import GraphPass, PassCtx

CTX = PassCtx(int8_ops=frozenset(("Conv", "FullyConnected", "MatMul", "Add", "AveragePool", "Sigmoid", "Relu")))


def graph_of(body: str) -> Graph:
    """Return the graph whose lines are `body`."""
    return parse('graph "t" {\n' + textwrap.dedent(body).strip() + "\n}")


def body_of(graph: Graph) -> str:
    """Return the lines of a graph without its frame."""
    return "\n".join(line.strip() for line in dump(graph).splitlines()[1:-1])


def after(one: GraphPass, body: str) -> Graph:
    """Return the graph of `body` after the pass `one`."""
    graph = graph_of(body)
    verify(graph)
    result = one.run(graph, PassCtx())
    verify(result, one.name)
    return result


def ops(graph: Graph) -> list[str]:
    """Return the operators in their order."""
    return [node.op for node in graph.nodes]


def check(one: GraphPass, before: str, after: str) -> None:
    """Run `one` on `before` and compare with `after`; both are lines of the text form."""
    graph = graph_of(before)
    verify(graph)
    result = one.run(graph, CTX)
    verify(result, one.name)
    expected = [line.strip() for line in after.strip().splitlines()]
    seen = body_of(result).splitlines()
    assert seen == expected, "\n" + "\n".join(difflib.unified_diff(expected, seen, "expected", "seen", lineterm=""))


def check_same(one: GraphPass, before: str) -> None:
    """Run `one` on `before` and expect the very same object back."""
    graph = graph_of(before)
    verify(graph)
    assert one.run(graph, CTX) is graph
