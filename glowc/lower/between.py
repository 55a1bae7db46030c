"""Which nodes compute in float between codes of 16 bits."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from glowc.graph.graph import Graph, Node
from glowc.graph.types import DType

_WITH_WEIGHTS = frozenset({"Conv", "ConvTranspose", "FullyConnected", "Gemm", "MatMul", "LSTM", "GRU", "RNN"})
_WIDE = (DType.S16, DType.U16)


def between_sixteen_bits(graph: Graph) -> frozenset[str]:
    """Return the names of nodes, but for layers with weights, that codes of 16 bits go into and come out of.

    Float nodes in a row count as one, a node on codes may compute in float inside.
    """
    found = frozenset(node.name for node in graph.nodes if _is_float(graph, node))
    after = _reached(graph.nodes, lambda n: _wide(graph, n.inputs) and n.op == "DequantizeLinear", found, forward=True)
    before = _reached(
        reversed(graph.nodes), lambda n: _wide(graph, n.outputs) and n.op == "QuantizeLinear", found, forward=False
    )  # fmt: skip
    whole = {n.name for n in graph.nodes if n.op not in _WITH_WEIGHTS and _wide(graph, n.outputs)}
    return frozenset((after & before) | whole)


def _is_float(graph: Graph, node: Node) -> bool:
    return node.op not in _WITH_WEIGHTS and all(graph.types[v].dtype is DType.F32 for v in node.outputs if v)


def _wide(graph: Graph, values: Iterable[str]) -> bool:
    return any(v and graph.types[v].dtype in _WIDE for v in values)


def _reached(
    nodes: Iterable[Node], starts: Callable[[Node], bool], among: frozenset[str], *, forward: bool
) -> frozenset[str]:
    """Return the nodes `among` which lie behind those that start it (in front of them: not `forward`)."""
    values: set[str] = set()
    found = set()
    for node in nodes:
        ends, begins = (node.inputs, node.outputs) if forward else (node.outputs, node.inputs)
        inner = node.name in among and not values.isdisjoint(v for v in ends if v)
        if inner:
            found.add(node.name)
        if inner or starts(node):
            values |= {v for v in begins if v}
    return frozenset(found)
