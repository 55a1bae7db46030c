"""Which nodes are needed, and in which order; finds cycles and values that nothing computes.

The finished graph has only what the outputs need, and original names for constants that got a typed twin.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace

import onnx

from glowc.frontend.builder import Builder
from glowc.frontend.onnx_model import OnnxNode
from glowc.frontend.problems import Problems
from glowc.graph.graph import Graph, Node


def order_nodes(
    nodes: Sequence[OnnxNode], defined: Iterable[str], outputs: Iterable[str], problems: Problems
) -> list[OnnxNode]:
    """Return the nodes that the outputs need, stably sorted: computed before read.

    Values that nothing computes are problems, and their readers stay.
    """
    have = set(defined)
    producer = {name: i for i, node in enumerate(nodes) for name in node.outputs if name}
    needed = _needed(nodes, producer, outputs)
    for index in sorted(needed):
        for name in sorted(reads(nodes[index])):
            if name not in producer and name not in have:
                problems.add(
                    f'{nodes[index].label} reads "{name}", which is neither a graph input nor an initializer '
                    "nor the output of a node",
                    "the export lost it; export the model again",
                )
    for name in outputs:
        if name not in producer and name not in have:
            problems.add(f'graph output "{name}" is computed by no node')
    return _sorted(nodes, needed, producer, problems)


def reads(node: OnnxNode) -> set[str]:
    """Return the values a node reads, with those its subgraphs read from outside."""
    names = {name for name in node.inputs if name}
    for value in node.attrs.values():
        if isinstance(value, onnx.GraphProto):
            names |= _outer_reads(value)
    return names


def _outer_reads(graph: onnx.GraphProto) -> set[str]:
    own = {t.name for t in graph.initializer} | {v.name for v in graph.input}
    own |= {name for node in graph.node for name in node.output}
    reads = {name for node in graph.node for name in node.input if name} | {v.name for v in graph.output}
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                reads |= _outer_reads(attribute.g)
    return reads - own


def _needed(nodes: Sequence[OnnxNode], producer: dict[str, int], outputs: Iterable[str]) -> set[int]:
    needed: set[int] = set()
    stack = list(outputs)
    while stack:
        index = producer.get(stack.pop())
        if index is not None and index not in needed:
            needed.add(index)
            stack.extend(reads(nodes[index]))
    return needed


def _sorted(
    nodes: Sequence[OnnxNode], needed: set[int], producer: dict[str, int], problems: Problems
) -> list[OnnxNode]:
    waits: dict[int, set[int]] = {}
    readers: dict[int, list[int]] = {}
    for index in sorted(needed):
        sources = {producer[name] for name in reads(nodes[index]) if name in producer}
        waits[index] = sources
        for source in sources:
            readers.setdefault(source, []).append(index)
    if all(source < index for index, sources in waits.items() for source in sources):
        return [nodes[index] for index in sorted(needed)]
    ready = deque(index for index in sorted(needed) if not waits[index])
    result: list[OnnxNode] = []
    while ready:
        index = ready.popleft()
        result.append(nodes[index])
        for reader in readers.get(index, ()):
            waits[reader].discard(index)
            if not waits[reader]:
                ready.append(reader)
    if len(result) < len(needed):
        stuck = [nodes[index].label for index in sorted(needed) if waits[index]]
        problems.add(f"the graph has a cycle through {', '.join(stuck[:6])}", "export the model again")
        problems.check()
    return result


def finish(b: Builder, name: str, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> Graph:
    """Return the graph of the builder's nodes without those that nothing needs."""
    nodes = _needed_nodes(b.nodes, outputs)
    used = {value for node in nodes for value in (*node.inputs, *node.outputs) if value} | {*inputs, *outputs}
    names = _restored(b, used)
    nodes = [replace(n, inputs=tuple(names.get(v, v) for v in n.inputs)) for n in nodes]
    return Graph(
        name,
        inputs,
        outputs,
        tuple(nodes),
        {names.get(value, value): type_ for value, type_ in b.types.items() if value in used},
        {names.get(value, value): array for value, array in b.consts.items() if value in used},
        texts={out: texts for out in outputs if (texts := _texts(b, out))},
    )


def _texts(b: Builder, value: str) -> tuple[str, ...]:
    """Return what the numbers of a value mean: its own texts, or those of what it has the shape changed of."""
    while value not in b.texts:
        node = b.producer(value)
        if node is None or node.op not in ("Reshape", "Identity", "Cast", "Squeeze", "Unsqueeze", "Flatten"):
            return ()
        value = node.inputs[0]
    return b.texts[value]


def _needed_nodes(nodes: list[Node], outputs: tuple[str, ...]) -> list[Node]:
    wanted, kept = set(outputs), []
    for node in reversed(nodes):
        if any(out in wanted for out in node.outputs if out):
            # Nobody reads a second output (the last state of a GRU): it need not be computed.
            rest = tuple(out if out in wanted else "" for out in node.outputs[1:])
            wanted.update(node.inputs)
            kept.append(replace(node, outputs=(node.outputs[0], *rest)))
    return kept[::-1]


def _restored(b: Builder, used: set[str]) -> dict[str, str]:
    """A constant used only through one typed twin gives that twin its name."""
    twins: dict[str, list[str]] = {}
    for (source, _), twin in b.twins.items():
        if twin in used and twin in b.consts:
            twins.setdefault(source, []).append(twin)
    return {made[0]: source for source, made in twins.items() if len(made) == 1 and source not in used}
