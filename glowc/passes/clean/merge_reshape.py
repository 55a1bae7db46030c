"""merge-reshape: Reshapes in a row become one, and an elementwise operator goes in front of a Reshape."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from glowc.graph.graph import GraphEditor, Node
from glowc.passes.base import PassCtx, RewritePass
from glowc.passes.classes import NARY, UNARY

_QDQ = frozenset(("QuantizeLinear", "DequantizeLinear"))  # move-qdq moves them, and the other way


class MergeReshape(RewritePass):
    """A Reshape moves nothing, so it may stand anywhere; late, it does not part Conv and activation."""

    name: ClassVar[str] = "merge-reshape"
    ops: ClassVar[tuple[str, ...]] = ("Reshape", *sorted((UNARY | NARY) - _QDQ))

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Merge or swap at `node`."""
        if node.op == "Reshape":
            return _merge(node, editor)
        return _swap(node, editor)


def _reshape_of(editor: GraphEditor, value: str) -> Node | None:
    node = editor.producer(value) if value else None
    return node if node is not None and node.op == "Reshape" else None


def _merge(node: Node, editor: GraphEditor) -> bool:
    before = _reshape_of(editor, node.inputs[0])
    if before is None:
        return False
    editor.update(node, inputs=(before.inputs[0], *node.inputs[1:]), origin=(*before.origin, *node.origin))
    return True


def _swap(node: Node, editor: GraphEditor) -> bool:
    """Let `node` work on the inputs of Reshapes, when all have the same shape, and reshape its output."""
    if len(node.outputs) != 1:
        return False
    data = [name for name in node.inputs if name] if node.op in NARY else [node.inputs[0]]
    reshapes = [_reshape_of(editor, name) for name in data]
    sources = [r.inputs[0] for r in reshapes if r is not None]
    if len(sources) != len(data) or any(editor.sole_user(name) is None for name in set(data)):
        return False
    shapes = {editor.types[name].shape for name in (*sources,)}
    types = [editor.types[name] for name in (*data, node.outputs[0])]
    if len(shapes) != 1 or len({t.shape for t in types}) != 1 or _per_axis(editor, node, sources):
        return False
    out = node.outputs[0]
    inner_type = replace(editor.types[out], shape=shapes.pop(), layout="")
    inner = editor.add_value(f"{out}.early", inner_type)
    by_name = dict(zip(data, sources, strict=True))
    inputs = tuple(by_name.get(name, name) for name in node.inputs)
    editor.update(node, inputs=inputs, outputs=(inner,))
    origin = reshapes[0].origin if reshapes[0] is not None else ()
    attrs = {"shape": editor.types[out].shape}
    editor.add_node("Reshape", (inner,), (out,), attrs, origin=origin)
    return True


def _per_axis(editor: GraphEditor, node: Node, sources: list[str]) -> bool:
    quants = [editor.types[name].quant for name in (*sources, *node.outputs)]
    return any(q is not None and q.per_axis for q in quants)
