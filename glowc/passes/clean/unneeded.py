"""Nodes, constants and types that a graph can do without.

dead-code: those that no output needs disappear. drop-identity: removes operators whose output equals their input. cse:
equal nodes and equal constants exist once. merge-reshape: Reshapes in a row become one, and an elementwise operator
goes in front of a Reshape.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import ClassVar

import numpy as np

from glowc.graph.graph import Graph, GraphEditor, Node
from glowc.graph.types import TensorType
from glowc.passes.axes import is_identity, perm_of
from glowc.passes.base import GraphPass, PassCtx, RewritePass
from glowc.passes.classes import NARY, UNARY, moved_inputs


class DeadCode(GraphPass):
    """Every pass that changes the graph prunes as well; this one does only that."""

    name: ClassVar[str] = "dead-code"

    def run(self, graph: Graph, ctx: PassCtx) -> Graph:
        """Prune, and return the same graph when there was nothing to prune."""
        editor = GraphEditor(graph)
        editor.changed = True
        pruned = editor.finish()
        same = all(
            len(a) == len(b)
            for a, b in (
                (pruned.nodes, graph.nodes),
                (pruned.types, graph.types),
                (pruned.consts, graph.consts),
            )
        )
        return graph if same else pruned


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
