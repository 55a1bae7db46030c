"""Hands parts of the optimised graph to the back ends of plugins: what they take, connected, becomes one node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from glowc.board import Cpu
from glowc.errors import GlowcError, InternalError, PluginError
from glowc.graph.graph import Graph, GraphEditor, Node
from glowc.kernels.base import PLAIN
from glowc.kernels.features import Stated
from glowc.kernels.registry import register_variants
from glowc.ops.delegated import PARTS, Backend, Handed, Part, backends_for, compute_part
from glowc.ops.registry import register
from glowc.ops.verify import verify
from glowc.program.kernel import KernelDef
from glowc.program.params import Params


def delegate(graph: Graph, cpu: Cpu) -> Graph:
    """Return the graph with the parts that back ends for this CPU compute as one node each; itself without any.

    An earlier back end chooses first. Raises InternalError naming the plugin whose function fails.
    """
    for backend, plugin in backends_for(cpu.features):
        for names in _parts(graph, backend, plugin):
            part = _cut_out(graph, names)
            handed = _asked(backend, plugin, part)
            if handed is not None:
                graph = _replaced(graph, names, part, _kernel_of(backend, plugin, part, handed))
    return graph


def _kernel_of(backend: Backend, plugin: str, graph: Graph, handed: Handed) -> str:
    """Make a kernel of a part; return the name that both have. Raises InputError for files that are missing."""
    files = [name for name in (handed.header, *handed.sources) if name]
    if missing := [name for name in files if not (backend.folder / name).is_file()]:
        raise PluginError(f"plugin {plugin}: {backend.name} lacks files beside it", details=missing)
    name = f"{backend.name}_{len(PARTS.all())}"
    PARTS.add({name: Part(graph, handed)})
    operands = [*(f"in in{i}" for i in range(len(graph.inputs))), *(f"out out{i}" for i in range(len(graph.outputs)))]
    operands += ["in constants:u8"] if handed.constants else []
    operands += ["out scratch:u8"] if handed.scratch_bytes else []
    kernel = KernelDef(
        name, tuple(operands), Params, lambda arrays, _: compute_part(graph, arrays), extern=handed.function,
        extern_header=handed.header, extern_sources=handed.sources, doc=f"a part of the graph for {backend.name}",
    )  # fmt: skip
    register((), (kernel,), backend.folder, plugin)
    stated = Stated(outputs=handed.insns / sum(graph.types[out].elements for out in graph.outputs))
    register_variants({name: (replace(PLAIN, scratch_bytes=lambda _: handed.scratch_bytes, stated=stated),)})
    return name


def _asked(backend: Backend, plugin: str, part: Graph) -> Handed | None:
    try:
        return backend.build(part)
    except GlowcError:
        raise
    except Exception as error:
        raise InternalError(
            f"build of {backend.name} fails: {type(error).__name__}: {error}", hint=f"this is a bug in plugin {plugin}"
        ) from error


def _takes(backend: Backend, plugin: str, node: Node, graph: Graph) -> bool:
    try:
        return node.op != "Delegated" and backend.takes(node, graph)
    except Exception as error:
        raise InternalError(
            f"{node.label}: takes of {backend.name} fails: {type(error).__name__}: {error}",
            hint=f"this is a bug in plugin {plugin}",
        ) from error


def _parts(graph: Graph, backend: Backend, plugin: str) -> list[frozenset[str]]:
    """Return connected sets of nodes that can be called at once: no path leaves a set and comes back to it."""
    producers = graph.producers()
    part_of: dict[str, int] = {}
    parts: list[set[str]] = []
    for node in graph.nodes:
        if not _takes(backend, plugin, node, graph):
            continue
        before = [producers[name].name for name in node.inputs if name in producers]
        near = dict.fromkeys(part_of[name] for name in before if name in part_of)
        home = next((i for i in near if not _comes_back(graph, producers, node, parts[i], part_of, parts)), None)
        if home is None:
            home = len(parts)
            parts.append(set())
        parts[home].add(node.name)
        part_of[node.name] = home
    return [frozenset(part) for part in parts]


def _comes_back(
    graph: Graph, producers: Mapping[str, Node], node: Node, part: set[str], part_of: Mapping[str, int],
    parts: Sequence[set[str]],
) -> bool:  # fmt: skip
    """Say whether `node` depends on the part through a node outside of it; parts are run as wholes."""
    nodes = {n.name: n for n in graph.nodes}
    waiting = [producers[name].name for name in node.inputs if name in producers]
    waiting = [name for name in waiting if name not in part]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in part:
            return True
        if name in seen:
            continue
        together = parts[part_of[name]] if name in part_of else {name}
        seen |= together
        waiting += [
            producers[value].name
            for other in together
            for value in nodes[other].inputs
            if value in producers and producers[value].name not in together
        ]
    return False


def _cut_out(graph: Graph, names: frozenset[str]) -> Graph:
    """Return the part as a graph of its own, its inputs and outputs in the order of the nodes."""
    nodes = tuple(node for node in graph.nodes if node.name in names)
    made = {out for node in nodes for out in node.outputs if out}
    read = dict.fromkeys(name for node in nodes for name in node.inputs if name and name not in made)
    outside = {name for node in graph.nodes if node.name not in names for name in node.inputs} | set(graph.results)
    inputs = tuple(name for name in read if name not in graph.consts)
    outputs = tuple(out for node in nodes for out in node.outputs if out in outside)
    used = {*read, *made}
    return Graph(
        graph.name, inputs, outputs, nodes, {name: graph.types[name] for name in graph.types if name in used},
        {name: graph.consts[name] for name in read if name in graph.consts},
    )  # fmt: skip


def _replaced(graph: Graph, names: frozenset[str], part: Graph, kernel: str) -> Graph:
    editor = GraphEditor(graph)
    origin = tuple(name for node in part.nodes for name in (node.origin or (node.name,)))
    for node in part.nodes:
        editor.remove(editor.nodes[node.name])
    editor.add_node("Delegated", part.inputs, part.outputs, {"part": kernel}, origin=origin)
    result = editor.finish()
    verify(result, f"delegating to {kernel}")
    return result
