"""transpose-to-reshape: a Transpose that moves only axes of length one is a Reshape."""

from __future__ import annotations

from typing import ClassVar

from glowc.graph.graph import GraphEditor, Node
from glowc.passes.axes import moves_only_units, perm_of
from glowc.passes.base import PassCtx, RewritePass


class TransposeToReshape(RewritePass):
    """No element changes its place, so nothing has to be copied."""

    name: ClassVar[str] = "transpose-to-reshape"
    ops: ClassVar[tuple[str, ...]] = ("Transpose",)

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Rewrite one Transpose."""
        source = editor.types[node.inputs[0]]
        if not moves_only_units(source.shape, perm_of(node, source.rank)):
            return False
        if source.quant is not None and source.quant.per_axis:
            return False
        editor.update(node, op="Reshape", attrs={"shape": editor.types[node.outputs[0]].shape})
        return True
