"""If: the branch that a known condition takes, or both and a choice between their results.

A branch only computes: what the other one would give does no harm and is not chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from glowc.frontend.builder import Builder
from glowc.frontend.functions import inline_graph
from glowc.frontend.onnx_model import OnnxNode
from glowc.frontend.problems import NodeError

WHERE = 16  # opset of the choice
Import = Callable[[list[OnnxNode]], None]


def import_if(node: OnnxNode, b: Builder, opsets: Mapping[str, int], import_nodes: Import) -> None:
    """Import an If; one whose condition is computed at run time needs branches of equal types."""
    condition = b.value(node.inputs[0])
    if condition is not None:
        if condition.size != 1:
            raise NodeError(f"the condition has {condition.size} elements")
        taken = "then_branch" if condition.reshape(-1)[0] else "else_branch"
        import_nodes(inline_graph(node.attrs[taken], node, opsets, b.fresh))
        return
    if b.type(node.inputs[0]).elements != 1:
        raise NodeError(f"the condition is {b.type(node.inputs[0])}")
    outs = [tuple(b.fresh(f"{out}.{word}") if out else "" for out in node.outputs) for word in ("then", "else")]
    for key, names in zip(("then_branch", "else_branch"), outs, strict=True):
        import_nodes(inline_graph(node.attrs[key], replace(node, outputs=names), opsets, b.fresh))
    import_nodes(_choices(node, b, outs))


def _choices(node: OnnxNode, b: Builder, outs: list[tuple[str, ...]]) -> list[OnnxNode]:
    """Return a Where for every result."""
    flag = b.fresh(f"{node.origin}.condition")
    shape = b.add_const(f"{node.origin}.shape", np.zeros(0, np.int64))
    nodes = [replace(node.new("Reshape", (node.inputs[0], shape), (flag,)), version=WHERE)]
    for out, one, other in zip(node.outputs, *outs, strict=True):
        if not out:
            continue
        types = [b.type(name) for name in (one, other)]
        if types[0].shape != types[1].shape or types[0].dtype != types[1].dtype:
            raise NodeError(
                f'the condition is computed at run time, and the branches give "{out}" the types '
                f"{types[0]} and {types[1]}: they must be equal"
            )
        nodes.append(replace(node.new("Where", (flag, one, other), (out,)), version=WHERE))
    return nodes
