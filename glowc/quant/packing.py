"""Moves of what recurrent layers keep from step to step: slices of one state for several layers, their results joined.

A layer whose initial states are beyond its codes, as those of a GRU that are not results of one, stays float.

Values that nothing but moves lies between have the same codes. Where these are int16 of one unit, the moves are on
int16. Where they differ, as with both states of an LSTM in one tensor, the moves stay float: the conversions lie at the
layers and lose nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from glowc.quant import recurrent
from glowc.quant.net import Net
from glowc.quant.plan import SAME, Plan, values_of
from glowc.quant.profile import Profile, stats_of
from glowc.quant.scheme import Params

PACKED = "it joins states of different codes"
BEYOND = "its initial states are beyond what int16 holds of them"


@dataclass(frozen=True, slots=True)
class Packing:
    """Moves by first result: those of int16 codes of one unit, and those of different codes."""

    alike: frozenset[str]
    unlike: frozenset[str]


def packing(net: Net, plan: Plan) -> Packing:
    """Return the moves between states of layers that are on codes."""
    codes: dict[str, set[Params | None]] = defaultdict(set)  # None: those of results
    for node in net.nodes:
        if plan.computes_codes(node) and (cells := recurrent.cells_of(net, node)):
            for name, params in cells.items():
                codes[name].add(params)
            for name in recurrent.results(net, node):
                codes[name].add(None)
    alike, unlike = set[str](), set[str]()
    for nodes, values in _moved(net, plan):
        found = set[Params | None]().union(*(codes[name] for name in values & codes.keys()))
        if len(found) > 1:
            unlike |= nodes
        elif found - {None}:
            alike |= nodes
    return Packing(frozenset(alike), frozenset(unlike))


def beyond_codes(net: Net, plan: Plan, profile: Profile) -> frozenset[str]:
    """Return the layers, by first result, with initial states outside of their codes on the data."""
    return frozenset(
        node.output[0]
        for node in net.nodes
        for name, params in recurrent.cells_of(net, node).items()
        if plan.computes_codes(node) and not _holds(params, *_ends(net, profile, name))
    )


def _ends(net: Net, profile: Profile, name: str) -> tuple[float, float]:
    stats = stats_of(net.consts[name]) if name in net.consts else profile.tensors[name]
    return stats.low, stats.high


def _holds(params: Params, low: float, high: float) -> bool:
    return params.low - params.scale <= low and high <= params.high + params.scale


def _moved(net: Net, plan: Plan) -> Iterable[tuple[set[str], set[str]]]:
    """Return moves that belong together, by first result, with all their values."""
    found: list[tuple[set[str], set[str]]] = []
    for node in net.nodes:
        if node.op_type in SAME and plan.computes_codes(node):
            nodes, values = {node.output[0]}, {*values_of(net, node), *filter(None, node.output)}
            for other in [one for one in found if one[1] & values]:
                found.remove(other)
                nodes, values = nodes | other[0], values | other[1]
            found.append((nodes, values))
    return found
