"""drop-identity: removes operators whose output equals their input."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from glowc.graph.graph import GraphEditor, Node
from glowc.graph.types import TensorType
from glowc.passes.axes import is_identity, perm_of
from glowc.passes.base import PassCtx, RewritePass


class DropIdentity(RewritePass):
    """Identity, Dropout, Cast and Reshape to the same type, and the like, disappear."""

    name: ClassVar[str] = "drop-identity"
    ops: ClassVar[tuple[str, ...]] = (
        "Identity", "Dropout", "Reshape", "Transpose", "Concat", "Sum", "Max", "Min", "Mean", "Pad", "Cast",
        "Slice", "Split", "Expand", "Tile", "Resize", "AssignQuant", "Requantize", "MaxPool", "AveragePool",
    )  # fmt: skip

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Bypass `node` when it changes nothing."""
        if any(editor.users(out) or out in editor.outputs for out in node.outputs[1:] if out):
            return False
        source, target = editor.types[node.inputs[0]], editor.types[node.outputs[0]]
        if not _same(source, target) or not _is_noop(node, source):
            return False
        return editor.bypass(node, node.inputs[0])


def _same(a: TensorType, b: TensorType) -> bool:
    return replace(a, layout="") == replace(b, layout="")


def _is_noop(node: Node, type_: TensorType) -> bool:
    """Say whether `node`, whose input and output have the same type, keeps every element in its place."""
    match node.op:
        case "Transpose":
            return is_identity(perm_of(node, type_.rank))
        case "Concat" | "Sum" | "Max" | "Min" | "Mean":
            return len(node.inputs) == 1
        case "Pad":
            return not any(node.ints("pads"))
        case "Slice":
            return all(step > 0 for step in node.ints("steps"))
        case "Resize":
            return node.str_("mode") == "nearest" and "roi" not in node.attrs
        case "MaxPool" | "AveragePool":
            kernel, strides = node.ints("kernel_shape"), node.ints("strides")
            return {*kernel, *strides} <= {1} and not any(node.ints("pads")) and not _clamps(node)
    return True


def _clamps(node: Node) -> bool:
    return "act_min" in node.attrs or "act_max" in node.attrs
