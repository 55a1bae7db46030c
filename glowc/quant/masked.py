"""Masks in front of a Softmax: what lies far below the largest value of its row is nothing, -inf or -1e9 alike.

Exporters write them as -inf, as -1e9, or as the lowest float, in a constant that is added or in a Where. Here they are
finite, so that they have a range, and added, which has an int8 form; `ranges` cuts their range off where they
are nothing already.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
from onnx import NodeProto, helper

from glowc.quant.net import Net
from glowc.quant.plan import SAME

MASK = -1e4
"""Exporters' masks are this or lower; exp of it is 0 in float32, whatever the row has beside it."""
NOTHING = np.float32(-1e30)
_ON_THE_WAY = SAME | {"Add", "Where"}


def vanishing(nodes: Sequence[NodeProto], outputs: Collection[str]) -> frozenset[str]:
    """Return the values that nobody but a Softmax reads, as they are, moved, or added to others."""
    kept, found = {*outputs}, set[str]()
    for node in reversed(nodes):
        on_the_way = node.op_type in _ON_THE_WAY and {*node.output} <= found - kept
        (found if node.op_type == "Softmax" or on_the_way else kept).update(node.input)
    return frozenset(found - kept)


def mask_inputs(net: Net) -> frozenset[str]:
    """Return the inputs that nobody but a Softmax reads: where they are -inf they hide something."""
    return vanishing(net.nodes, net.output_names()) & {port.name for port in net.inputs if port.dtype.kind == "f"}


def finite(sample: Mapping[str, np.ndarray], masks: Collection[str]) -> dict[str, np.ndarray]:
    """Return a sample with finite masks."""
    return {name: np.maximum(a, NOTHING, dtype=a.dtype) if name in masks else a for name, a in sample.items()}


def with_finite_masks(net: Net) -> Net:
    """Return the network with finite masks in front of each Softmax, added where it is known what they hide."""
    known = vanishing(net.nodes, net.output_names())
    consts = {name: np.maximum(array, NOTHING) for name, array in net.consts.items() if _is_mask(net, known, name)}
    return _added_masks(net.with_consts(consts), known) if known else net


def _is_mask(net: Net, known: frozenset[str], name: str) -> bool:
    """Say whether a constant is a mask that goes below all floats that are needed, or the factor that makes one."""
    array, users = net.consts[name], net.users()[name]
    if array.dtype != np.float32 or not (array < NOTHING).any():
        return False
    makes_one = all(n.op_type == "Mul" and n.output[0] in known for n in users) and bool(np.isfinite(array).all())
    return name in known or makes_one


def _added_masks(net: Net, known: frozenset[str]) -> Net:
    """Write each Where that puts a mask to constant places as the sum of a constant and the values that are left."""
    nodes, consts = [], dict(net.consts)
    for node in net.nodes:
        added = None
        if node.op_type == "Where" and node.output[0] in known and node.input[0] in consts:
            condition, values = consts[node.input[0]], [consts.get(name) for name in node.input[1:]]
            masks = [a is not None and a.dtype == np.float32 and bool((a <= MASK).all()) for a in values]
            if masks.count(True) == 1:
                hidden = condition if masks[0] else ~condition
                kept, added = node.input[2 if masks[0] else 1], f"{node.output[0]}_mask"
                consts[added] = np.where(hidden, NOTHING, np.float32(0))
                nodes.append(helper.make_node("Add", [kept, added], [node.output[0]], name=node.name))
        if added is None:
            nodes.append(node)
    return replace(net, nodes=tuple(nodes), consts=consts)
