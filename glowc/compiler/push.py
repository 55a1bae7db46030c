"""Models that take sound as it comes (`--input-stream samples`): NAME_push() collects the `--hop` samples of a run.

The first model looks at a window of samples, of which a run brings the last ones. Each model after it takes what is new
of the one before it: as the next time steps where all of its layers can, as the end of its window where they cannot.
A model with states that takes several results of the first gets them from as many of it; a run takes as many hops then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from glowc.codegen.viewed import COLLECTED
from glowc.compiler.chain import chained, renamed
from glowc.compiler.options import CompileOptions
from glowc.errors import GroupError, InputError, StreamError
from glowc.graph.graph import Graph, Node, State
from glowc.graph.types import DType, TensorType
from glowc.passes.base import PassCtx
from glowc.passes.pipeline import run_pipeline
from glowc.passes.time.time_stream import time_stream


def check_pushed(options: CompileOptions) -> None:
    """Raise InputError that names all options which do not go with --input-stream samples."""
    others = {
        "--io-buffers caller": options.io_buffers == "caller", "--io-type": options.io_type != "model",
    }  # fmt: skip
    wrong = [name for name, there in others.items() if there]
    if options.input_stream == "samples" and wrong:
        raise InputError(
            f"--input-stream samples keeps 16-bit samples in the arena, without {' and '.join(wrong)}",
            hint="leave it out",
        )


def pushed(graphs: Sequence[Graph], labels: Sequence[str], hop: int | None, name: str) -> Graph:
    """Return models that follow each other as one that takes `hop` int16 samples a run, or a multiple of that.

    Raises InputError for a hop that does not fit, StreamError for a first input that is no sound, GroupError for models
    that do not fit together.
    """
    first = _of_samples(graphs[0], labels[0])
    length = first.types[first.inputs[0]].elements
    if hop is None or hop > length:
        raise InputError(
            f"--input-stream samples needs --hop: new samples of a run, at most the {length} that {labels[0]} takes",
            hint=f"--hop {length}, or less where windows overlap",
        )
    parts = [_sliding(first, hop, _times(first, graphs[1:2]))]
    for graph, label in zip(graphs[1:], labels[1:], strict=True):
        parts.append(_continued(graph, label, parts[-1]))
    return _collecting(chained(parts, labels, name))


def _of_samples(graph: Graph, label: str) -> Graph:
    """Return a model whose one input is int16; one of floats gets each sample as a number of the same value."""
    types = [graph.types[name] for name in graph.inputs]
    if len(types) != 1 or types[0].dtype not in (DType.S16, DType.F32) or types[0].quant is not None:
        shown = ", ".join(f'"{name}" {graph.types[name]}' for name in graph.inputs)
        raise StreamError(
            f"--input-stream samples: {label} takes {shown}; samples are one input of int16 or float32",
            hint="put a front end before it: glowc log-mel -o log_mel.onnx, then log_mel.onnx NET --chain",
        )
    if types[0].dtype is DType.S16:
        return graph
    name = graph.inputs[0]
    cast = Node(f"{name}.cast", "Cast", (name,), (f"{name}.real",), {"to": 1}, (name,))
    return _led(graph, (cast,), {name: replace(types[0], dtype=DType.S16), f"{name}.real": types[0]})


def _led(graph: Graph, nodes: Sequence[Node], types: dict[str, TensorType]) -> Graph:
    """Return a graph with nodes between its input and all that reads it; the last of them has what that reads."""
    name, out = graph.inputs[0], nodes[-1].outputs[0]
    rest = (replace(n, inputs=tuple(out if i == name else i for i in n.inputs)) for n in graph.nodes)
    return replace(graph, nodes=(*nodes, *rest), types={**graph.types, **types})


def _times(first: Graph, after: Sequence[Graph]) -> int:
    """Return how many results of the first model the next one takes at once: several only if it keeps states."""
    if not after or not after[0].states or not after[0].inputs:
        return 1
    return max(1, after[0].types[after[0].inputs[0]].elements // first.types[first.outputs[0]].elements)


def _sliding(graph: Graph, fresh: int, times: int = 1) -> Graph:
    """Return a graph that takes `fresh` new elements of its input at a time, for each of `times` copies of it."""
    name = graph.inputs[0]
    type_ = graph.types[name]
    axis = next((i for i, size in enumerate(type_.shape) if size > 1), type_.rank - 1)
    inner = type_.elements // type_.shape[axis]
    steps, length = fresh // inner * times, type_.shape[axis] + fresh // inner * (times - 1)

    def sized(count: int) -> TensorType:
        return replace(type_, shape=(*type_.shape[:axis], count, *type_.shape[axis + 1 :]))

    whole = _copies(graph, axis, fresh // inner, times) if times > 1 else graph
    if steps == length:
        return whole
    start, window = f"{name}.start", f"{name}.window"
    rest = 0 if type_.quant is None else type_.quant.zero_point[0]
    consts = {**whole.consts, start: np.full(sized(length).shape, rest, type_.dtype.numpy)}
    node = Node(window, "TimeWindow", (name, start), (window,), {"axis": axis}, (name,))
    types = {name: sized(steps), start: sized(length), window: sized(length)}
    return replace(_led(whole, (node,), types), consts=consts)


def _copies(graph: Graph, axis: int, step: int, times: int) -> Graph:
    """Return copies of a graph on windows that begin `step` apart, each with the states that the one before leaves.

    An output is the outputs of all copies, along a new first axis.
    """
    states = {s.value: s.value for s in graph.states}
    nodes: list[Node] = []
    types = dict(graph.types)
    for i in range(times):
        names = {n: n if n in graph.consts else f"{n}.{i}" for n in (*graph.types, *(n.name for n in graph.nodes))}
        copy = renamed(graph, names | states)
        nodes += [_cut(graph, copy.inputs[0], axis, i * step), *copy.nodes]
        types |= copy.types
        states = {s.value: names[s.next] for s in graph.states}
    for out in graph.outputs:
        nodes += _joined(out, graph.types[out].shape, times)
        types |= {f"{out}.{i}.line": _lines(graph.types[out], 1) for i in range(times)}
        types[out] = _lines(graph.types[out], times)
    kept = tuple(State(s.value, states[s.value], s.initial) for s in graph.states)
    return replace(graph, nodes=tuple(nodes), types=types, states=kept)


def _cut(graph: Graph, part: str, axis: int, begin: int) -> Node:
    """Return the node that takes a window of one copy out of what all copies see."""
    name = graph.inputs[0]
    end = begin + graph.types[name].shape[axis]
    attrs = {"starts": (begin,), "ends": (end,), "axes": (axis,), "steps": (1,)}
    return Node(part, "Slice", (name,), (part,), attrs, (name,))


def _joined(out: str, shape: tuple[int, ...], times: int) -> list[Node]:
    """Return the nodes that join an output of all copies."""
    lines = tuple(f"{out}.{i}.line" for i in range(times))
    parts = [
        Node(line, "Reshape", (f"{out}.{i}",), (line,), {"shape": (1, *shape)}, (out,)) for i, line in enumerate(lines)
    ]
    return [*parts, Node(f"{out}.lines", "Concat", lines, (out,), {"axis": 0}, (out,))]


def _lines(type_: TensorType, count: int) -> TensorType:
    return replace(type_, shape=(count, *type_.shape))


def _continued(graph: Graph, label: str, before: Graph) -> Graph:
    """Return a model that takes what the one before it gives at a time."""
    fresh = before.types[before.outputs[0]].elements
    if len(graph.inputs) != 1 or graph.types[graph.inputs[0]].elements <= fresh:
        return graph
    type_ = graph.types[graph.inputs[0]]
    axis = next(i for i, size in enumerate(type_.shape) if size > 1)
    inner = type_.elements // type_.shape[axis]
    if graph.states or fresh % inner:
        raise GroupError(
            f"{label} takes {type_} a run and gets {fresh} elements",
            hint="the first axis longer than 1 is time; a run brings whole steps, and states see each step once",
        )
    try:
        stream = time_stream(run_pipeline(graph, ctx=PassCtx()), fresh // inner, axis)
    except StreamError:
        return _sliding(graph, fresh)
    return _sliding(graph, fresh) if stream.sequence else stream.graph


def _collecting(graph: Graph) -> Graph:
    """Return a graph with the state that counts collected samples."""
    type_ = TensorType((1,), DType.S32)
    none = f"{COLLECTED}.none"
    types = {**graph.types, COLLECTED: type_, none: type_}
    zero = np.zeros(1, np.int32)
    return replace(
        graph, types=types, consts={**graph.consts, none: zero}, states=(*graph.states, State(COLLECTED, none, zero))
    )
