"""Models with weights of few different codes: planned with these packed, and as bytes; the smaller plan is taken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NotRequired, TypedDict

from glowc.graph.graph import Graph
from glowc.graph.types import TensorType
from glowc.kernels.choice import variant_of
from glowc.place.planning import Planned
from glowc.program.ir import Instr, Program
from glowc.select.choose import Selection

Plan = Callable[[Graph], tuple[Selection, Planned]]
"""Chooses the variants of a graph and plans its memory."""


class NarrowWeights(TypedDict):
    """The layers whose weights are codes of 4 or 2 bits or of a palette: stored as such, or as bytes all the same."""

    packed: list[str]
    as_bytes: list[str]


class NarrowReport(TypedDict):
    """What report.json says of such weights; nothing of a model without any."""

    narrow_weights: NotRequired[NarrowWeights]


def plan_narrow(graph: Graph, plan: Plan) -> tuple[Selection, Planned]:
    """Return the plan with narrow weights packed where there is room, if its constants are fewer than without."""
    done = plan(graph)
    if not _layers(graph):
        return done
    wide = plan(_as_bytes(graph))
    return done if _constants(done[1].program) < _constants(wide[1].program) else wide


def narrow_report(graph: Graph, program: Program) -> NarrowReport:
    """Return which layers have their weights packed."""
    layers = _layers(graph)
    found = {i.origin for i in program.instrs if not i.is_marker and _unpacks(i)}
    packed = [origin[0] for origin in layers if origin in found]
    as_bytes = [origin[0] for origin in layers if origin not in found]
    return {"narrow_weights": {"packed": packed, "as_bytes": as_bytes}} if layers else {}


def _unpacks(instr: Instr) -> bool:
    return instr.kernel.startswith(("unpack_s", "unpack_p")) or variant_of(instr).unpacks


def _is_narrow(type_: TensorType) -> bool:
    return type_.quant is not None and type_.quant.bits > 0


def _layers(graph: Graph) -> list[tuple[str, ...]]:
    """Return the origins of the nodes with narrow weights."""
    found = (node for node in graph.nodes if len(node.inputs) > 1 and node.inputs[1])
    return [node.origin or (node.name,) for node in found if _is_narrow(graph.types[node.inputs[1]])]


def _as_bytes(graph: Graph) -> Graph:
    def wide(type_: TensorType) -> TensorType:
        quant = type_.quant
        return replace(type_, quant=replace(quant, bits=0, palette=())) if quant is not None and quant.bits else type_

    return replace(graph, types={name: wide(type_) for name, type_ in graph.types.items()})


def _constants(program: Program) -> int:
    return sum(array.nbytes for array in program.consts.values())
