"""Single layers on int16 in a network of int8: which nodes those are, and a conversion where both meet.

A tensor has the width of the node that makes it, one that nobody makes on codes (an input, a float result) that of the
finest layer which reads it. Others read it through a conversion: an Identity in the network, whose result has a range
of its own; in the file it is a QuantizeLinear and a DequantizeLinear.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from onnx import NodeProto, helper

from glowc.errors import InputError
from glowc.graph.types import DType, QuantParams
from glowc.kernels.common.widths import width_plan
from glowc.quant import recurrent
from glowc.quant.net import Net, label
from glowc.quant.packing import packing
from glowc.quant.plan import CLAMPS, SAME, Plan, Widths, values_of
from glowc.quant.profile import Profile
from glowc.quant.scheme import Activations, Params

_FOLLOWS = SAME | CLAMPS | {"AveragePool", "GlobalAveragePool", "ReduceMean"}
"""Operators that are on int16 between layers that are, without being named."""
_NUDGE, _NUDGES = 2.0**-20, 64  # a scale grows by so much of itself, so often, until conversions need no float


@dataclass(frozen=True, slots=True)
class Widened:
    """A network with its conversions, the profile of all its values, and what the user should know."""

    net: Net
    profile: Profile
    widths: Widths
    notes: tuple[str, ...] = ()


def wished_nodes(net: Net, plan: Plan, wishes: Mapping[str, Activations]) -> dict[str, Activations]:
    """Return the wish for each node by its first result: of those that name it, the last one.

    Names are those of nodes, results and kinds of operators. Raises InputError for unknown ones.
    """
    known = {word for n in net.nodes if plan.computes_codes(n) for word in net.called(n)}
    unknown = [name for name in wishes if name not in known]
    if unknown:
        shown = ", ".join(n.name or n.output[0] for n in net.nodes[:20] if plan.computes_codes(n))
        raise InputError(
            f"no layer on codes is called {unknown[0]!r}", details=[f"the model has {shown}"],
            hint="name a node, its result, or a kind of operator",
        )  # fmt: skip
    found = {}
    for node in net.nodes:
        named = [kind for name, kind in wishes.items() if name in net.called(node)]
        if named and plan.computes_codes(node):
            found[node.output[0]] = named[-1]
    return found


def widened(
    net: Net, profile: Profile, plan: Plan, wishes: Mapping[str, Activations], base: Activations = Activations.INT8
) -> Widened:
    """Return the network in which the wishes hold; `plan` says what of it is quantised. Other layers are of `base`.

    A layer and the clamp fused to it have one width; moves, clamps and means between int16 layers follow them.
    """
    nodes = {n.output[0]: n for n in net.nodes if plan.computes_codes(n)}
    wished = wished_nodes(net, plan, wishes)
    asked = {name for name in nodes if wished.get(name, base) is Activations.INT16}
    refused = {name for name in asked if nodes[name].op_type in recurrent.RECURRENT}
    wide = _followed(net, plan, asked - refused, frozenset(wished)) | packing(net, plan).alike
    changed, made = _converted(net, plan, wide)
    tensors = {**profile.tensors, **{n: profile.tensors[source] for n, source in made.items()}}
    found = Widths(frozenset(wide), frozenset(made))
    return Widened(
        changed, replace(profile, tensors=tensors), found, tuple(_notes(net, plan, wide, refused & {*wished}))
    )


def _followed(net: Net, plan: Plan, wide: set[str], wished: frozenset[str]) -> set[str]:
    """Return the nodes on int16: fused pairs together, and what lies between them and was not named."""
    for maker, clamp in plan.fused.items():
        wide |= {maker, clamp} if {maker, clamp} & wide else set()
    users, producers = net.users(), net.producers()
    after: set[str] = set()  # nodes that follow, behind wide ones
    for node in net.nodes:
        makers = [producers[n].output[0] for n in values_of(net, node) if n in producers]
        free = node.op_type in _FOLLOWS and plan.computes_codes(node) and node.output[0] not in wide | wished
        if free and makers and all(maker in wide | after for maker in makers):
            after.add(node.output[0])
    for node in reversed(net.nodes):
        readers = {reader.output[0] for name in node.output for reader in users.get(name, [])}
        if node.output[0] in after and readers & wide:
            wide = wide | {node.output[0]}
    return wide


def _notes(net: Net, plan: Plan, wide: set[str], refused: set[str]) -> Iterable[str]:
    """Yield what wishes do not do: layers that have no int16 form, and those without an int16 neighbour."""
    nodes = {n.output[0]: n for n in net.nodes}
    for name in sorted(refused):
        yield f"{label(nodes[name])} has no int16 form: it stays on int8"
    users, producers = net.users(), net.producers()
    outputs, inputs = net.output_names(), {p.name for p in net.inputs}
    for name in [n.output[0] for n in net.nodes if n.output[0] in wide]:
        beside = {r.output[0] for n in nodes[name].output for r in users.get(n, [])}
        read = values_of(net, nodes[name])
        beside |= {producers[n].output[0] for n in read if n in producers}
        at_edge = outputs & {*nodes[name].output} or inputs & {*read}
        if not at_edge and not beside & wide:
            yield f"int16 of {label(nodes[name])} is of no use: no layer beside it is on int16, so its tensors are int8"


@dataclass(slots=True)
class _Inserter:
    """The network as it grows."""

    net: Net
    plan: Plan
    wide: set[str]
    made: dict[str, str]
    consts: dict[str, np.ndarray]
    taken: set[str]

    def width(self, node: NodeProto, value: str) -> int:
        """Return the bits in which a node reads or makes a value."""
        return 16 if node.output[0] in self.wide or value in recurrent.cells_of(self.net, node) else 8

    def name_of(self, value: str, bits: int) -> str:
        """Return a new name for a value in another width."""
        name = f"{value}_int{bits}"
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name


def _converted(net: Net, plan: Plan, wide: set[str]) -> tuple[Net, dict[str, str]]:
    """Return the network with a conversion for each value that is read in another width than its own.

    The conversions are by their result, with what they convert.
    """
    taken = {*net.consts, *(p.name for p in net.inputs), *(n for node in net.nodes for n in node.output)}
    at = _Inserter(net, plan, wide, {}, dict(net.consts), taken)
    homes = _homes(at)
    known: dict[tuple[str, int], str] = {}
    nodes: list[NodeProto] = []
    for node in net.nodes:
        new = NodeProto()
        new.CopyFrom(node)
        read = set(values_of(net, node)) if plan.computes_codes(node) else set()
        for index, name in enumerate(node.input):
            bits = at.width(node, name)
            if name not in read or homes.get(name, bits) == bits:
                continue
            if (name, bits) not in known:
                known[name, bits] = other = at.name_of(name, bits)
                if name in net.consts:
                    at.consts[other] = net.consts[name]
                else:
                    at.made[other] = name
                    nodes.append(helper.make_node("Identity", [name], [other], name=other))
            new.input[index] = known[name, bits]
        nodes.append(new)
    return replace(net, nodes=tuple(nodes), consts=at.consts), at.made


def _homes(at: _Inserter) -> dict[str, int]:
    """Return the width of each value that is quantised."""
    homes: dict[str, int] = {}
    for node in at.net.nodes:
        if at.plan.computes_codes(node):
            for name in values_of(at.net, node):
                homes[name] = max(homes.get(name, 8), at.width(node, name))
    made = {name: at.width(node, name) for node in at.net.nodes if at.plan.computes_codes(node) for name in node.output}
    return {**homes, **made}


def without_float(plan: Plan, net: Net, params: Mapping[str, Params]) -> dict[str, Params]:
    """Return the quantisations with int16 scales a little larger where conversions then need no float on any CPU."""
    found = dict(params)
    pairs = [
        (plan.group_of[n.input[0]], plan.group_of[n.output[0]]) for n in net.nodes if n.output[0] in plan.converted
    ]
    for group in sorted(plan.wide - plan.cells.keys()):
        beside = [pair for pair in pairs if group in pair]
        for step in range(_NUDGES):
            scale = float(np.float32(params[group].scale * (1 + step * _NUDGE)))
            tried = {**found, group: replace(params[group], scale=scale)}
            if all(_is_whole(tried[a], tried[b]) for a, b in beside):
                found = tried
                break
    return found


def _is_whole(source: Params, target: Params) -> bool:
    kinds = [DType.S8 if p.bits == 8 else DType.S16 for p in (source, target)]
    quants = [QuantParams((p.scale,), (p.zero_point,)) for p in (source, target)]
    return width_plan(quants[0], quants[1], kinds[0], kinds[1]) is not None


def wide_layers(net: Net, plan: Plan) -> tuple[str, ...]:
    """Return the names of the nodes on int16 where others are on int8, without conversions and clamps of layers."""
    clamps = set(plan.fused.values())
    nodes = [n for n in net.nodes if n.output[0] not in plan.converted | clamps and plan.computes_codes(n)]
    groups = plan.wide - plan.cells.keys()  # cells of recurrent layers are int16 in any case
    wide = [n for n in nodes if any(plan.group_of.get(plan.fused.get(v, v)) in groups for v in n.output)]
    return tuple(n.name or n.output[0] for n in wide)
