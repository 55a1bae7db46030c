"""Delegated: a part of the graph that a back end of a plugin computes, such as an accelerator (internal).

A back end says which nodes it takes; what is connected of them becomes one graph, of which it makes a call of a C
function: inputs, outputs, its constants, scratch. The reference of the node is the part itself, computed by the
operators' references, so that whoever calls the accelerator is held to the same results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from glowc.graph.attrs import Str
from glowc.graph.graph import Graph, Node
from glowc.graph.scope import Table
from glowc.graph.types import DType, TensorType
from glowc.ops.base import LowerCtx, MaybeTypes, OpDef, OpError, Ref, Types
from glowc.ops.derived import derived
from glowc.program.kernel import Arrays


@dataclass(frozen=True, slots=True)
class Handed:
    """What a back end makes of a part: a call `function(in0, ..., out0, ..., constants, scratch)`.

    `constants` are bytes of any meaning to the function (weights, commands), aligned as the CPU needs; without any the
    argument is left out, as is `scratch` of 0 bytes. `macs` are the part's multiply-accumulates, `insns` what the call
    takes of the CPU, roughly. `header` declares the function, `sources` define it; both lie beside the plugin.
    """

    function: str
    constants: bytes = b""
    scratch_bytes: int = 0
    macs: int = 0
    insns: float = 0.0
    header: str = ""
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Backend:
    """A back end for parts of graphs, after all passes: images are NHWC, activations and quantisation are folded.

    `takes(node, graph)` says of a single node whether it can be computed; `build(part)` returns the call for a
    connected part, a graph with inputs, outputs and constants of its own, or None to leave it to glowc's kernels.
    `needs` are CPU features without which the back end is not asked. `folder` is where the files of `Handed` lie:
    beside the plugin.
    """

    name: str
    takes: Callable[[Node, Graph], bool]
    build: Callable[[Graph], Handed | None]
    needs: frozenset[str] = frozenset()
    folder: Path = Path()


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the graph and the call that computes it."""

    graph: Graph
    handed: Handed


BACKENDS: Table[tuple[Backend, str]] = Table()
"""Back ends, each with the plugin that it is of, by the order in which they are asked."""
PARTS: Table[Part] = Table()
"""What nodes name as their part; its kernel has the same name."""


def register_backends(backends: Iterable[Backend], plugin: str) -> None:
    """Add the back ends of a plugin."""
    before = len(BACKENDS.all())
    BACKENDS.add({str(before + i): (backend, plugin) for i, backend in enumerate(backends)})


def backends_for(features: frozenset[str]) -> Sequence[tuple[Backend, str]]:
    """Return the back ends for a CPU with these features, each with the plugin that it is of."""
    return [(backend, plugin) for backend, plugin in BACKENDS.all().values() if backend.needs <= features]


def compute_part(graph: Graph, arrays: Arrays) -> None:
    """Fill the outputs out0 ... of a part, given its inputs in0 ..., as flat arrays."""
    from glowc.ops.interp import run_graph  # which needs all operators, this one among them

    given = {name: arrays[f"in{i}"].reshape(graph.types[name].shape) for i, name in enumerate(graph.inputs)}
    found = run_graph(graph, given)
    for i, name in enumerate(graph.outputs):
        arrays[f"out{i}"].reshape(-1)[: found[name].size] = found[name].reshape(-1)


def _part(node: Node) -> Part:
    found = PARTS.all().get(node.str_("part"))
    if found is None:
        raise OpError(f"no part {node.str_('part')}: its back end is not loaded")
    return found


def infer(node: Node, in_types: MaybeTypes) -> Types:
    """The types of the part's outputs."""
    graph = _part(node).graph
    wanted = tuple(graph.types[name] for name in graph.inputs)
    if [t.shape for t in in_types if t is not None] != [t.shape for t in wanted]:
        raise OpError(f"inputs {', '.join(map(str, in_types))} for a part of {', '.join(map(str, wanted))}")
    return tuple(graph.types[name] for name in graph.outputs)


def lower(node: Node, ctx: LowerCtx) -> None:
    """One call."""
    handed = _part(node).handed
    operands: dict[str, Ref] = {f"in{i}": ctx.read(name) for i, name in enumerate(node.inputs)}
    operands |= {f"out{i}": ctx.write(name) for i, name in enumerate(node.outputs)}
    if handed.constants:
        operands["constants"] = ctx.const(np.frombuffer(handed.constants, np.uint8), f"{node.name}_constants")
    if handed.scratch_bytes:
        scratch = TensorType((handed.scratch_bytes,), DType.U8)
        operands["scratch"] = ctx.temp(scratch, f"{node.name}_scratch")
    ctx.emit(node.str_("part"), operands, macs=handed.macs)


OP = OpDef(
    "Delegated", infer, derived, lower, {"part": Str()}, doc="a part of the graph for a plugin's back end (internal)"
)
