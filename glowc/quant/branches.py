"""If whose condition is a constant -> the nodes of the branch that is taken, as exporters write for known sizes."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from onnx import GraphProto, NodeProto, helper, numpy_helper

from glowc.errors import ModelError
from glowc.quant.engine import Engine
from glowc.quant.net import Consts, Net, check_plain, label
from glowc.quant.static import Walk


def decided(net: Net, engine: Engine) -> Net:
    """Return the network without If. Raises ModelError where what the network is given decides.

    Conditions are found by running the network on zeros: they may depend on shapes and constants.
    """
    if not any(node.op_type == "If" for node in net.nodes):
        return net
    walk, left = Walk(net, engine), deque(net.nodes)
    consts, nodes = dict(net.consts), list[NodeProto]()
    while left:
        node = left.popleft()
        if node.op_type == "If":
            branch, held = _taken(net, node, walk.consts)
            consts |= held
            walk.consts |= held
            left.extendleft(reversed(branch))
        else:
            walk.run(node)
            nodes.append(node)
    return replace(net, nodes=tuple(nodes), consts=consts)


def _taken(net: Net, node: NodeProto, known: Consts) -> tuple[list[NodeProto], Consts]:
    """Return the nodes and constants of the branch that is taken, its results named as those of the If."""
    condition = known.get(node.input[0])
    if condition is None:
        raise ModelError(
            f"{net.name}: what the network computes decides which branch {label(node)} takes",
            hint="export the branch that the device needs: conditions must be constants",
        )
    name = "then_branch" if condition.reshape(-1)[0] else "else_branch"
    graph: GraphProto = next(a.g for a in node.attribute if a.name == name)
    check_plain(graph.node, net.name)
    results = [
        helper.make_node("Identity", [inner.name], [outer], name=f"{node.name or outer}_{number}")
        for number, (inner, outer) in enumerate(zip(graph.output, node.output, strict=True))
    ]
    return [*graph.node, *results], {i.name: numpy_helper.to_array(i) for i in graph.initializer}
