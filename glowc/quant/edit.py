"""Rewriting of a network node by node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from onnx import NodeProto, helper

from glowc.quant.net import Consts, Net

Shapes = dict[str, tuple[int, ...]]
Edit = tuple[list[NodeProto], Consts]
"""Nodes in the place of one, and their constants."""


def edited(net: Net, edit: Callable[[Net, NodeProto], Edit | None]) -> Net:
    """Apply `edit` to every node: what it returns takes the place of the node and of the one that made its input."""
    done: set[str] = set()
    while True:
        for node in net.nodes:
            found = edit(net, node) if node.output[0] not in done else None
            if found is not None:
                break
            done.add(node.output[0])
        else:
            return net
        net = drop_unused(_replaced(net, node, *found))


def _replaced(net: Net, node: NodeProto, new: list[NodeProto], consts: Consts) -> Net:
    nodes = [m for n in net.nodes for m in (new if n is node else [n])]
    return replace(net, nodes=tuple(nodes), consts={**net.consts, **consts})


def drop_unused(net: Net) -> Net:
    """Remove nodes and constants that no output needs."""
    wanted, nodes = set(net.output_names()), []
    for node in reversed(net.nodes):
        if wanted & set(node.output):
            nodes.append(node)
            wanted |= set(node.input)
    consts = {name: array for name, array in net.consts.items() if name in wanted}
    return replace(net, nodes=tuple(reversed(nodes)), consts=consts)


def only_producer(net: Net, name: str) -> NodeProto | None:
    """Return the node that makes a value which one node alone reads."""
    if name in net.output_names() or len(net.users()[name]) != 1:
        return None
    return net.producers().get(name)


def const_and_value(net: Net, node: NodeProto) -> tuple[str, str] | None:
    """Return (constant, value) of an operator of two operands."""
    known = [name for name in node.input if name in net.consts]
    if len(node.input) != 2 or len(known) != 1:
        return None
    return known[0], next(name for name in node.input if name != known[0])


def made(op: str, inputs: list[str], output: str, node: NodeProto, **attrs: object) -> NodeProto:
    name = node.name or node.output[0]
    new = helper.make_node(op, inputs, [output], name=name if output == node.output[0] else f"{name}_{output}")
    new.attribute.extend(helper.make_attribute(k, v) for k, v in attrs.items())
    return new


def with_inputs(node: NodeProto, inputs: list[str], output: str) -> NodeProto:
    copy = NodeProto()
    copy.CopyFrom(node)
    copy.input[:], copy.output[:] = inputs, [output]
    return copy
