"""Which nodes of a network compute on codes, which tensors are quantised, and which of them share a quantisation.

A table says what an operator demands. Precision is a property of a node (`Plan.quantised`, `Widths.wide`), so that
another precision for a layer is another entry and no other structure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from onnx import NodeProto

from glowc.errors import InputError
from glowc.quant import recurrent
from glowc.quant.net import Net, ints_of, text_of
from glowc.quant.scheme import Params

LAYERS = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
BINARY = frozenset({"Add", "Sub", "Mul"})
CLAMPS = frozenset({"Relu", "Clip"})
SAME = frozenset({
    "Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "MaxPool", "Pad",
    "ReduceMax", "ReduceMin", "Reshape", "Resize", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose",
    "Unsqueeze",
})  # fmt: skip
"""Operators that hand on codes, so that inputs and outputs have one quantisation."""
_OWN = frozenset({
    "Abs", "AveragePool", "Celu", "Elu", "Erf", "Exp", "Gelu", "GlobalAveragePool", "HardSwish", "LayerNormalization",
    "LeakyRelu", "Mish", "Neg", "PRelu", "QuickGelu", "RMSNormalization", "ReduceMean", "Selu", "Softplus", "Sqrt",
    "Swish", "ThresholdedRelu", *CLAMPS,
})  # fmt: skip
ONE_BYTE, SYMMETRIC_UNIT = Params(1 / 256, -128), Params(1 / 128, 0)
_WHOLE_BYTE = Params(float(np.nextafter(np.float32(1 / 255), np.float32(0))), -128)  # holds 1.0; 1 / scale is above 255
FIXED = {
    "Softmax": (ONE_BYTE, _WHOLE_BYTE), "Sigmoid": (ONE_BYTE, _WHOLE_BYTE), "HardSigmoid": (ONE_BYTE, _WHOLE_BYTE),
    "Tanh": (SYMMETRIC_UNIT, Params(1 / 127, 0)), "Softsign": (SYMMETRIC_UNIT, Params(1 / 127, 0)),
}  # fmt: skip
"""Results with a range that is known: the usual quantisation first, then what may be better by measured error."""
FIXED16 = (Params(2.0**-15, 0, 16),)
"""The same of 16 bits: all of these lie between -1 and 1."""


@dataclass(frozen=True, slots=True)
class FloatNode:
    """A node that stays float, and why."""

    name: str
    op: str
    reason: str
    result: str


@dataclass(frozen=True, slots=True)
class Widths:
    """Nodes that compute on int16 where others do on int8, and nodes that convert codes of one width to the other.

    Both by first result. Codes of one tensor have one width: those that read it in the other one read a conversion.
    """

    wide: frozenset[str] = frozenset()
    converted: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Plan:
    """What is quantised. `groups` has the tensors of one quantisation under the name of the first; constants too.

    Codes have `bits`, those of the groups in `wide` 16; `converted` are the results of nodes that are conversions only.
    `cells` are the groups of what recurrent layers keep from step to step.
    """

    quantised: frozenset[str]
    groups: Mapping[str, tuple[str, ...]]
    group_of: Mapping[str, str]
    fixed: Mapping[str, tuple[Params, ...]]
    floats: tuple[FloatNode, ...]
    fused: Mapping[str, str] = field(default_factory=dict)
    bits: int = 8
    wide: frozenset[str] = frozenset()
    converted: frozenset[str] = frozenset()
    cells: Mapping[str, Params] = field(default_factory=dict)

    def bits_of(self, group: str) -> int:
        """Return the bits of the codes of a group."""
        return 16 if group in self.wide else self.bits

    def computes_codes(self, node: NodeProto) -> bool:
        """Say whether a node is quantised."""
        return node.output[0] in self.quantised


def operands(node: NodeProto) -> list[str]:
    """Return the inputs of a node that hold values, without weights, sizes, indices and bounds."""
    if node.op_type in BINARY or node.op_type in ("Concat", "MatMul"):
        return list(node.input)
    return [node.input[0]]


def weights_of(net: Net, node: NodeProto) -> str | None:
    """Return the constant weights of a layer, quantised per channel."""
    return node.input[1] if node.op_type in LAYERS and node.input[1] in net.consts else None


def values_of(net: Net, node: NodeProto) -> list[str]:
    """Return the operands that are quantised as activations are; constants of elementwise operators among them."""
    if node.op_type in recurrent.RECURRENT:
        states = {*recurrent.results(net, node), *recurrent.cells_of(net, node)}
        return [node.input[0], *(name for name in node.input[1:] if name in states)]
    weights = weights_of(net, node)
    return [name for name in operands(node) if name != weights]


def make_plan(
    net: Net, dtypes: Mapping[str, np.dtype[np.generic]], keep_float: Iterable[str] = (),
    unrounded: frozenset[str] = frozenset(), bits: int = 8, widths: Widths = Widths(),
) -> Plan:  # fmt: skip
    """Decide what is quantised, on codes of so many bits, or of 16 where `widths` says so. `dtypes` has the element
    type of every value. Raises InputError for unknown names.

    Layers with a result in `unrounded` compute on codes and hand on floats; what is behind them stays float.
    """
    kept = _kept(net, tuple(keep_float))
    quantised: set[str] = set()
    floats: list[FloatNode] = []
    behind = set(unrounded)
    for node in net.nodes:
        reason = _why_float(net, node, dtypes, kept, bits)
        reason = _float_before(net, node, floats) if reason is None else reason
        if reason is None and behind & {*node.input}:
            reason, behind = "the sums before it are not rounded: outputs are float", behind | {*node.output}
        if reason is None:
            quantised.add(node.output[0])
        elif reason:
            floats.append(FloatNode(node.name or node.output[0], node.op_type, reason, node.output[0]))
    fused = _fused(net, quantised)
    kept_cells = [recurrent.cells_of(net, node) for node in net.nodes if node.output[0] in quantised]
    cells = {name: params for found in kept_cells for name, params in found.items()}
    touched = {n for node in net.nodes if node.output[0] in widths.wide for n in (*values_of(net, node), *node.output)}
    groups = _groups(net, quantised, {*fused, *unrounded}, widths.converted)
    groups = _joined(groups, net.states, {*touched, *cells})
    group_of = {name: first for first, names in groups.items() for name in names}
    wide = frozenset(group_of[name] for name in (*touched, *cells) if name in group_of)
    plan = Plan(frozenset(quantised), groups, group_of, {}, tuple(floats), fused, bits, wide, widths.converted,
                {group_of[name]: params for name, params in cells.items()})  # fmt: skip
    return replace(plan, fixed=_fixed(net, plan))


def _kept(net: Net, names: tuple[str, ...]) -> frozenset[str]:
    """Return the nodes that the user wants float: named by node, by result, or by kind of operator."""
    found = {n.output[0] for n in net.nodes if net.called(n) & set(names)}
    known = {word for n in net.nodes for word in net.called(n)}
    unknown = [name for name in names if name not in known]
    if unknown:
        nodes = ", ".join(n.name or n.output[0] for n in net.nodes[:20])
        raise InputError(f"no node is called {unknown[0]!r}", details=[f"the model has {nodes}"])
    return frozenset(found)


def _why_float(
    net: Net, node: NodeProto, dtypes: Mapping[str, np.dtype[np.generic]], kept: frozenset[str], bits: int
) -> str | None:
    """Return why a node stays float; None if it is quantised, nothing if it has no float values at all."""
    known = [name for name in (*node.input, *node.output) if name and name in dtypes]
    if not any(dtypes[name].kind == "f" for name in known if name not in net.consts):
        return ""
    if node.output[0] in kept:
        return "--keep-float"
    if node.op_type in recurrent.RECURRENT:
        return recurrent.why_not(net, node) if bits == 8 else f"{node.op_type} has no int16 form here"
    if node.op_type not in LAYERS | BINARY | SAME | _OWN | frozenset(FIXED):
        return f"{node.op_type} has no int8 form here"
    if any(dtypes[name] != np.float32 for name in [*values_of(net, node), node.output[0]]):
        return "its values are not float32"
    return _why_not_layer(net, node)


def _float_before(net: Net, node: NodeProto, floats: list[FloatNode]) -> str | None:
    """Return why a node without weights stays float: it would quantise more values than the layers behind it read."""
    if node.op_type in LAYERS | BINARY | recurrent.RECURRENT.keys():
        return None
    names, producers = {f.result for f in floats}, net.producers()
    makers = [producers[name].output[0] for name in operands(node) if name in producers]
    if makers and all(maker in names for maker in makers):
        return f'its input is the float result of "{producers[makers[0]].name or makers[0]}"'
    return None


def _why_not_layer(net: Net, node: NodeProto) -> str | None:
    """Return what keeps one operator from its int8 form."""
    if node.op_type in LAYERS - {"MatMul"} and any(name not in net.consts for name in node.input[1:] if name):
        return "its weights are computed"
    if node.op_type == "PRelu":
        return _why_not_prelu(net, node)
    if node.op_type in BINARY and all(name in net.consts for name in node.input):
        return "both operands are constants"
    if node.op_type == "Resize" and text_of(node, "mode", "nearest") == "cubic":
        return "cubic interpolation leaves the range of its input"
    if node.op_type == "AveragePool" and any(d != 1 for d in ints_of(node, "dilations")):
        return "onnxruntime does not load an int8 average with dilations"
    if node.op_type == "MaxPool" and len(node.output) > 1 and node.output[1]:
        return "its indices are wanted"
    return None


def _why_not_prelu(net: Net, node: NodeProto) -> str | None:
    if node.input[1] not in net.consts:
        return "its slopes are computed"
    if sum(size > 1 for size in net.consts[node.input[1]].shape) > 1:
        return "its slopes differ along several axes"
    return "its result is an output" if node.output[0] in net.output_names() else None


def _fused(net: Net, quantised: set[str]) -> dict[str, str]:
    """Return for each result that only a clamp reads the result of that clamp: no codes lie between them."""
    fusable, users, outputs = LAYERS | BINARY, net.users(), net.output_names()
    found = {}
    for node in net.nodes:
        readers = users.get(node.output[0], [])
        if node.op_type not in fusable or node.output[0] not in quantised or len(readers) != 1:
            continue
        if readers[0].op_type in CLAMPS and readers[0].output[0] in quantised and node.output[0] not in outputs:
            found[node.output[0]] = readers[0].output[0]
    return found


def _groups(
    net: Net, quantised: set[str], never: Collection[str], converted: Collection[str]
) -> dict[str, tuple[str, ...]]:
    """Return the tensors that are quantised, by common quantisation; those of `never` are no codes."""
    parent: dict[str, str] = {}

    def find(name: str) -> str:
        parent.setdefault(name, name)
        while parent[name] != name:
            name = parent[name]
        return name

    for node in net.nodes:
        if node.output[0] not in quantised:
            continue
        values = [n for n in values_of(net, node) if n not in never]
        is_recurrent = node.op_type in recurrent.RECURRENT
        results = [n for n in (recurrent.results(net, node) if is_recurrent else node.output) if n and n not in never]
        moves = node.op_type in SAME and node.output[0] not in converted
        cells = [*recurrent.cells_of(net, node)]
        for name in (*values, *results, *cells):
            find(name)
        for tied in ([*values, *results] if moves else results if is_recurrent else [], cells):
            for name in tied[1:]:
                parent[find(name)] = find(tied[0])
    members: dict[str, list[str]] = defaultdict(list)
    for name in parent:
        members[find(name)].append(name)
    return {names[0]: tuple(names) for names in members.values()}


def _joined(
    groups: dict[str, tuple[str, ...]], states: Mapping[str, str], wide: Collection[str]
) -> dict[str, tuple[str, ...]]:
    """Return the groups with one for each state before and after a step, where both are codes of one width."""
    for pair in states.items():
        found = [first for first, names in groups.items() if {*pair} & {*names}]
        if len(found) > 1 and len({any(name in wide for name in groups[first]) for first in found}) == 1:
            groups = {**groups, found[0]: tuple(name for first in found for name in groups[first])}
            del groups[found[1]]
    return groups


def _fixed(net: Net, plan: Plan) -> dict[str, tuple[Params, ...]]:
    """Return the quantisations of groups whose values all come from operators of a known range."""
    producers = net.producers()
    found: dict[str, tuple[Params, ...]] = {}
    for first, names in plan.groups.items():
        makers = [producers.get(name) for name in names]
        sources = {n.op_type if n is not None and n.output[0] in plan.quantised else "" for n in makers}
        sources -= SAME
        if len(sources) == 1 and (op := next(iter(sources))) in FIXED:
            found[first] = FIXED[op] if plan.bits_of(first) == 8 else FIXED16
    return found


def sources(net: Net, names: Iterable[str], converted: Collection[str] = ()) -> list[str]:
    """Return the tensors of a group that bring values into it; the others are made of those."""
    producers = net.producers()
    chosen = [n for n in names if n not in producers or producers[n].op_type not in SAME or n in converted]
    return chosen or list(names)


def with_reason(plan: Plan, kept: Collection[str], reason: str) -> Plan:
    """Return the plan with the reason why some nodes, by first result, stay float."""
    return replace(plan, floats=tuple(replace(f, reason=reason) if f.result in kept else f for f in plan.floats))


def describe(floats: Iterable[FloatNode]) -> list[str]:
    """Return a line for each node that stays float."""
    return [f'{node.op} "{node.name}": {node.reason}' for node in floats]
