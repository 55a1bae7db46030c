"""hoist-transpose: a Transpose after an operator that widens its elements moves in front of it."""

from __future__ import annotations

from typing import ClassVar

from glowc.graph.graph import GraphEditor, Node
from glowc.passes.axes import add_transpose, perm_of
from glowc.passes.base import PassCtx, RewritePass
from glowc.passes.classes import UNARY


class HoistTranspose(RewritePass):
    """Typically a DequantizeLinear at the end: moving one byte per element is cheaper than moving four."""

    name: ClassVar[str] = "hoist-transpose"
    ops: ClassVar[tuple[str, ...]] = ("Transpose",)

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Swap a Transpose with the widening operator in front of it."""
        value, out = node.inputs[0], node.outputs[0]
        source = editor.producer(value)
        if source is None or source.op not in UNARY or editor.sole_user(value) is None:
            return False
        before = editor.types[source.inputs[0]]
        if before.size_bytes >= editor.types[value].size_bytes:
            return False
        perm = perm_of(node, before.rank)
        moved = add_transpose(editor, source.inputs[0], perm, node.origin)
        editor.remove(node)
        editor.update(source, inputs=(moved, *source.inputs[1:]), outputs=(out,))
        return True
