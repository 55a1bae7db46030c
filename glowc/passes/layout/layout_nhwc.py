"""layout-nhwc: spatial operators compute on [N,H,W,C]; Transposes around them keep the graph as it was."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from glowc.graph.attrs import AttrValue
from glowc.graph.graph import GraphEditor, Node
from glowc.passes.axes import TO_NCHW, TO_NHWC, add_transpose, permuted
from glowc.passes.base import PassCtx, RewritePass

_WEIGHTED = ("Conv", "ConvInteger", "ConvTranspose")
_PER_AXIS_ATTRS = ("scales", "sizes", "roi_begin", "roi_end")


class LayoutNhwc(RewritePass):
    """Conv weights become [O,kH,kW,I/group] constants ([I,kH,kW,O/group] for ConvTranspose).

    Operators whose definition has no attribute `layout` are left alone.
    """

    name: ClassVar[str] = "layout-nhwc"
    ops: ClassVar[tuple[str, ...]] = (
        "Conv", "ConvInteger", "ConvTranspose", "MaxPool", "AveragePool", "LpPool", "Resize", "DepthToSpace",
        "SpaceToDepth", "InstanceNormalization",
    )  # fmt: skip

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Convert one operator."""
        outs = [out for out in node.outputs if out]
        if node.is_nhwc or not ctx.has_attr(node.op, "layout") or len(outs) != 1:
            return False
        if editor.types[node.inputs[0]].rank != 4 or editor.types[outs[0]].rank != 4:
            return False
        inputs = list(node.inputs)
        inputs[0] = add_transpose(editor, inputs[0], TO_NHWC, node.origin)
        editor.types[inputs[0]] = replace(editor.types[inputs[0]], layout="nhwc")
        if node.op in _WEIGHTED:
            inputs[1] = add_transpose(editor, inputs[1], TO_NHWC, node.origin)
            editor.types[inputs[1]] = replace(editor.types[inputs[1]], layout="")
        inner = editor.add_value(f"{outs[0]}.nhwc", permuted(editor.types[outs[0]], TO_NHWC))
        editor.update(node, inputs=tuple(inputs), outputs=(inner,), attrs=_attrs(node))
        editor.add_node("Transpose", (inner,), (outs[0],), {"perm": TO_NCHW}, origin=node.origin)
        return True


def _attrs(node: Node) -> dict[str, AttrValue]:
    attrs = {**node.attrs, "layout": "nhwc"}
    for key in _PER_AXIS_ATTRS:
        value = attrs.get(key)
        if isinstance(value, tuple) and len(value) == 4:
            attrs[key] = tuple(value[axis] for axis in TO_NHWC)  # type: ignore[assignment]
    return attrs
