"""The finished graph: only what the outputs need, and original names for constants that got a typed twin."""

from __future__ import annotations

from dataclasses import replace

from glowc.frontend.builder import Builder
from glowc.graph.graph import Graph, Node


def finish(b: Builder, name: str, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> Graph:
    """Return the graph of the builder's nodes without those that nothing needs."""
    nodes = _needed(b.nodes, outputs)
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
    )


def _needed(nodes: list[Node], outputs: tuple[str, ...]) -> list[Node]:
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
