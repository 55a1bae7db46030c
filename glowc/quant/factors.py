"""factor-into-layer: a Mul by a number goes into the weights of a layer before it."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from glowc.graph.graph import GraphEditor, Node
from glowc.passes.base import PassCtx, RewritePass
from glowc.passes.fuse.chains import with_number


class FactorIntoLayer(RewritePass):
    """Through views and a product of two values. Other roundings of floats: for what becomes codes only."""

    name: ClassVar[str] = "factor-into-layer"
    ops: ClassVar[tuple[str, ...]] = ("Mul",)

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Multiply the constant factor of a Mul into the weights and the bias of a layer."""
        found = with_number(editor, node)
        if found is None or editor.types[found[0]] != editor.types[node.outputs[0]]:
            return False
        path = _path_to_layer(editor, found[0])
        if not path:
            return False
        layer, factor = path[-1], np.float32(found[1])
        scaled = [editor.add_const(f"{name}.by", editor.consts[name] * factor) for name in layer.inputs[1:]]
        editor.update(layer, inputs=(layer.inputs[0], *scaled))
        last = editor.nodes[path[0].name]
        editor.remove(node)
        editor.update(last, outputs=node.outputs, origin=(*last.origin, *node.origin))
        return True


def _path_to_layer(editor: GraphEditor, value: str) -> list[Node]:
    """Return the nodes from `value` back to a layer of constants, or none; nobody else reads what they compute."""
    path: list[Node] = []
    while (node := editor.producer(value)) is not None and editor.sole_user(value) is not None:
        path.append(node)
        if node.op in ("Conv", "FullyConnected") and all(name in editor.consts for name in node.inputs[1:]):
            return path
        if node.op not in ("Reshape", "Transpose", "MatMul"):
            return []
        value = node.inputs[0]
    return []
