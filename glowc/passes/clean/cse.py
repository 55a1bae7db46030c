"""cse: equal nodes and equal constants exist once."""

from __future__ import annotations

import hashlib
from typing import ClassVar

import numpy as np

from glowc.graph.graph import Graph, GraphEditor, Node
from glowc.passes.base import GraphPass, PassCtx
from glowc.passes.classes import moved_inputs


class Cse(GraphPass):
    """Nodes are equal when operator, inputs, attributes and output types are; graph outputs stay apart.

    What computes floats for one QuantizeLinear alone stays twice: it is an integer layer, one with two readers is none.
    """

    name: ClassVar[str] = "cse"

    def run(self, graph: Graph, ctx: PassCtx) -> Graph:
        """Merge equal constants, then equal nodes in order."""
        editor = GraphEditor(graph)
        _merge_consts(editor)
        first: dict[object, Node] = {}
        units = _for_one_quantize(editor)
        for node in editor.each():
            if node.outputs[0] in units and node.op != "DequantizeLinear" and not moved_inputs(node):
                continue
            kept = first.setdefault(_key(node, editor), node)
            if kept is not node and not any(out in editor.outputs for out in node.outputs):
                for old, new in zip(node.outputs, kept.outputs, strict=True):
                    editor.replace_uses(old, new)
                editor.remove(node)
        return editor.finish()


def _for_one_quantize(editor: GraphEditor) -> frozenset[str]:
    """Return the float results of which all that becomes is one QuantizeLinear, after operators with constants."""
    found: set[str] = set()
    for node in reversed(list(editor.each())):
        if len(node.outputs) != 1 or not editor.types[value := node.outputs[0]].dtype.is_float:
            continue
        user = editor.sole_user(value)
        if user is None or any(name and name != value and name not in editor.consts for name in user.inputs):
            continue
        if user.op == "QuantizeLinear" or user.outputs[0] in found:
            found.add(value)
    return frozenset(found)


def _key(node: Node, editor: GraphEditor) -> object:
    types = tuple(editor.types[out] if out else None for out in node.outputs)
    return (node.op, node.inputs, tuple(sorted((k, repr(v)) for k, v in node.attrs.items())), types)


def _merge_consts(editor: GraphEditor) -> None:
    first: dict[object, str] = {}
    for name in sorted(editor.consts):
        array = np.ascontiguousarray(editor.consts[name])
        key = (editor.types[name], hashlib.sha256(array.tobytes()).digest())
        kept = first.setdefault(key, name)
        if kept != name and name not in editor.outputs and editor.users(name):
            editor.replace_uses(name, kept)
