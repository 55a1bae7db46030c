"""Several models as one graph (--chain), and inputs that are fed by an output of the call before (--state).

A model's inputs are joined to outputs of what stands before it: by name where names are equal, the others in their
order. Values whose names are taken get others; inputs and outputs that nothing joins are those of the whole.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from glowc.errors import GroupError
from glowc.frontend.kept import state_type
from glowc.graph.graph import Graph, Node, State
from glowc.graph.types import TensorType
from glowc.passes.time.growing import growing


def chained(graphs: Sequence[Graph], labels: Sequence[str], name: str) -> Graph:
    """Return graphs one after the other as one. InputError with everything that does not fit; labels are for it."""
    wrong: list[str] = []
    whole = replace(graphs[0], name=name)
    for i, (graph, label) in enumerate(zip(graphs[1:], labels[1:], strict=True), 1):
        whole = _joined(whole, graph, f"{labels[i - 1]} -> {label}", wrong)
    if wrong:
        hint = "outputs and inputs are joined by name, those left over in their order; shapes may differ by axes of 1"
        raise GroupError("the models do not fit together", details=wrong, hint=hint)
    return whole


def _pairs(first: Graph, second: Graph) -> dict[str, str]:
    """Return which output of the first feeds each input of the second."""
    pairs = {name: name for name in second.inputs if name in first.outputs}
    inputs = [name for name in second.inputs if name not in pairs]
    outputs = [name for name in first.outputs if name not in pairs]
    return pairs | dict(zip(inputs, outputs, strict=False))


def _joined(first: Graph, second: Graph, where: str, wrong: list[str]) -> Graph:
    pairs = _pairs(first, second)
    if not pairs:
        wrong.append(f"{where}: the second has no inputs, or the first no outputs")
        return first
    found = [_problem(first, second, source, target) for target, source in pairs.items()]
    problems = [f"{where}: {problem}" for problem in found if problem]
    if problems:
        wrong += problems
        return first
    after = renamed(second, _names(first, second, pairs))
    own = {name: _names(first, second, pairs)[name] for name in second.inputs}
    types, nodes = {**first.types, **after.types}, [*first.nodes]
    for target, source in pairs.items():
        types[source] = _both(first.types[source], second.types[target])
        if own[target] != source:
            shape = second.types[target].shape
            label = f"joined {own[target]}"
            nodes.append(Node(label, "Reshape", (source,), (own[target],), {"shape": shape}, (target,)))
    outputs = (*(name for name in first.outputs if name not in pairs.values()), *after.outputs)
    inputs = (*first.inputs, *(own[name] for name in second.inputs if name not in pairs))
    return Graph(
        first.name, inputs, outputs, (*nodes, *after.nodes), types, {**first.consts, **after.consts},
        (*first.states, *after.states),
    )  # fmt: skip


def _problem(first: Graph, second: Graph, source: str, target: str) -> str:
    """Return why an output does not feed an input; empty when it does."""
    out, wanted = first.types[source], second.types[target]
    quants = {out.quant, wanted.quant} - {None}
    if out.dtype == wanted.dtype and _long(out) == _long(wanted) and len(quants) < 2:
        return ""
    return f'output "{source}" is {_text(out)}, input "{target}" is {_text(wanted)}'


def _long(type_: TensorType) -> tuple[int, ...]:
    return tuple(d for d in type_.shape if d != 1)


def _text(type_: TensorType) -> str:
    if type_.quant is None or type_.quant.per_axis:
        return str(type_)
    return f"{type_} with scale {type_.quant.scale[0]:.6g} and zero point {type_.quant.zero_point[0]}"


def _both(out: TensorType, wanted: TensorType) -> TensorType:
    """Return an output's type with the quantisation that the input's side knows."""
    return replace(out, quant=out.quant or wanted.quant)


def _names(first: Graph, second: Graph, pairs: Mapping[str, str]) -> dict[str, str]:
    """Return the second graph's values by their names in the whole; a joined input of equal shape is the output."""
    same = {t: s for t, s in pairs.items() if first.types[s].shape == second.types[t].shape}
    taken = {*first.types, *(node.name for node in first.nodes), *same.values()}
    names: dict[str, str] = dict(same)
    for name in [*second.types, *(node.name for node in second.nodes)]:
        if name not in names:
            names[name] = _fresh(name, taken)
            taken.add(names[name])
    return names


def _fresh(name: str, taken: set[str]) -> str:
    found, number = name, 1
    while found in taken:
        found, number = f"{name}.{number}", number + 1
    return found


def renamed(graph: Graph, names: Mapping[str, str]) -> Graph:
    """Return a graph whose values and nodes have other names."""
    nodes = tuple(
        replace(
            node, name=names[node.name], inputs=tuple(names.get(n, n) for n in node.inputs),
            outputs=tuple(names.get(n, n) for n in node.outputs),
        )
        for node in graph.nodes
    )  # fmt: skip
    return Graph(
        graph.name, tuple(names[n] for n in graph.inputs), tuple(names[n] for n in graph.outputs), nodes,
        {names[n]: t for n, t in graph.types.items()}, {names[n]: a for n, a in graph.consts.items()},
        tuple(State(names[s.value], names[s.next], s.initial) for s in graph.states),
    )  # fmt: skip


def with_states(graph: Graph, pairs: Mapping[str, str]) -> Graph:
    """Return a graph whose inputs (keys) are what outputs were at the call before; zero at first.

    Those that the model notes may be named again. Outputs that join rows to their input grow in place. A "*" in both
    names is any text. InputError with everything that is no such pair.
    """
    noted = {s.value: s.next for s in graph.states}
    pairs = {name: out for name, out in pairs.items() if noted.get(name) != out}
    if not pairs:
        return graph
    pairs = _each(graph, pairs)
    graph = growing(graph, pairs)
    wrong = [problem for pair in pairs.items() if (problem := _state_problem(graph, *pair))]
    twice = {name for name in pairs.values() if list(pairs.values()).count(name) > 1}
    wrong += [f'output "{name}" feeds several inputs' for name in sorted(twice)]
    if not wrong and set(pairs.values()) == set(graph.outputs):
        wrong.append("every output is a state: nothing would be left for the caller")
    if wrong:
        raise GroupError(
            "--state names an input and the output that it is at the next call", details=wrong,
            hint=f"inputs: {', '.join(graph.inputs)}; outputs: {', '.join(graph.outputs)}",
        )  # fmt: skip
    kinds = {name: state_type(graph, name) for name in pairs}
    states = tuple(State(name, out, _zero(kinds[name])) for name, out in pairs.items())
    types = {**graph.types, **kinds, **{out: kinds[name] for name, out in pairs.items()}}
    return replace(
        graph, inputs=tuple(n for n in graph.inputs if n not in pairs), types=types,
        outputs=tuple(n for n in graph.outputs if n not in pairs.values()), states=(*graph.states, *states),
    )  # fmt: skip


def _each(graph: Graph, pairs: Mapping[str, str]) -> dict[str, str]:
    """Return the pairs that patterns with a "*" are; one that no input matches stays."""
    found: dict[str, str] = {}
    for name, out in pairs.items():
        begin, _, end = name.partition("*")
        texts = [n[len(begin) : len(n) - len(end)] for n in graph.inputs if "*" in name and _matches(n, begin, end)]
        found |= {name.replace("*", text, 1): out.replace("*", text, 1) for text in texts} if texts else {name: out}
    return found


def _matches(name: str, begin: str, end: str) -> bool:
    return len(name) >= len(begin) + len(end) and name.startswith(begin) and name.endswith(end)


def _state_problem(graph: Graph, name: str, out: str) -> str:
    if name not in graph.inputs or out not in graph.outputs:
        return f'"{name}" is no input' if name not in graph.inputs else f'"{out}" is no output'
    before, after = state_type(graph, name), graph.types[out]
    if (before.shape, before.dtype, before.quant) != (after.shape, after.dtype, after.quant):
        return f'input "{name}" is {_text(before)}, output "{out}" is {_text(after)}'
    return ""


def _zero(type_: TensorType) -> np.ndarray:
    """Return what real zero is."""
    point = type_.quant.zero_point[0] if type_.quant is not None else 0
    return np.full(math.prod(type_.shape), point, type_.dtype.numpy).reshape(type_.shape)
