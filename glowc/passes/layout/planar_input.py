"""planar-input: a Conv reads [N,C,H,W] itself instead of a transposed copy."""

from __future__ import annotations

from typing import ClassVar

from glowc.graph.graph import GraphEditor, Node
from glowc.passes.axes import TO_NHWC, perm_of
from glowc.passes.base import PassCtx, RewritePass


class PlanarInput(RewritePass):
    """Only where no other operator needs the transposed copy: the copy would stay and nothing be saved."""

    name: ClassVar[str] = "planar-input"
    ops: ClassVar[tuple[str, ...]] = ("Transpose",)

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Let the readers of a Transpose read its planar input."""
        out = node.outputs[0]
        if perm_of(node, editor.types[out].rank) != TO_NHWC or out in editor.outputs:
            return False
        readers = editor.users(out)
        if not readers or not all(_can_read_planar(reader, out, ctx) for reader in readers):
            return False
        for reader in readers:
            inputs = (node.inputs[0], *reader.inputs[1:])
            editor.update(reader, inputs=inputs, attrs={**reader.attrs, "planar": 1})
        editor.remove(node)
        return True


def _can_read_planar(reader: Node, value: str, ctx: PassCtx) -> bool:
    is_input = reader.inputs[0] == value and value not in reader.inputs[1:]
    return reader.op == "Conv" and reader.is_nhwc and is_input and ctx.has_attr("Conv", "planar")
