"""fold-transpose: a Transpose around a MatMul becomes strides of its operand or its result."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from glowc.graph.attrs import AttrValue
from glowc.graph.graph import GraphEditor, Node
from glowc.ops.base import OpError
from glowc.ops.matmul import matmul_params, operand_perm
from glowc.passes.axes import compose, perm_of
from glowc.passes.base import PassCtx, RewritePass

_OPERANDS = ("perm_a", "perm_b")


class FoldTranspose(RewritePass):
    """The heads of an attention are read where the projection wrote them, and the result is written where the
    next projection reads it. A Transpose that also has other readers stays, because its copy exists anyway.
    """

    name: ClassVar[str] = "fold-transpose"
    ops: ClassVar[tuple[str, ...]] = ("MatMul",)

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Fold one Transpose in front of, or after, a MatMul."""
        if not all(ctx.has_attr("MatMul", key) for key in (*_OPERANDS, "perm_y")):
            return False
        if any(editor.types[name].rank < 2 for name in node.inputs[:2]):
            return False
        return any(_fold_operand(node, editor, index) for index in (0, 1)) or _fold_result(node, editor)


def _fold_operand(node: Node, editor: GraphEditor, index: int) -> bool:
    value = node.inputs[index]
    source = editor.producer(value)
    if source is None or source.op != "Transpose" or value in editor.outputs:
        return False
    if any(user.op != "MatMul" for user in editor.users(value)):
        return False
    perm = perm_of(source, editor.types[value].rank)
    key = _OPERANDS[index]
    total = compose(perm, operand_perm(node, key, len(perm)))
    inputs = tuple(source.inputs[0] if i == index else name for i, name in enumerate(node.inputs))
    return _update(node, editor, replace(node, inputs=inputs, attrs=_with(node, key, total)))


def _fold_result(node: Node, editor: GraphEditor) -> bool:
    user = editor.sole_user(node.outputs[0])
    if user is None or user.op != "Transpose":
        return False
    perm = perm_of(user, editor.types[node.outputs[0]].rank)
    total = compose(operand_perm(node, "perm_y", len(perm)), perm)
    new = replace(node, outputs=user.outputs, attrs=_with(node, "perm_y", total), origin=(*node.origin, *user.origin))
    if not _fits(new, editor):
        return False
    editor.remove(user)
    return _update(node, editor, new)


def _with(node: Node, key: str, perm: tuple[int, ...]) -> dict[str, AttrValue]:
    attrs = {k: v for k, v in node.attrs.items() if k != key}
    return attrs if perm == tuple(range(len(perm))) else {**attrs, key: perm}


def _fits(node: Node, editor: GraphEditor) -> bool:
    """Say whether the kernels have enough batch axes for these strides."""
    try:
        matmul_params(node, editor.types[node.inputs[0]].shape, editor.types[node.inputs[1]].shape)
    except OpError:
        return False
    return True


def _update(node: Node, editor: GraphEditor, new: Node) -> bool:
    if not _fits(new, editor):
        return False
    editor.replace_node(node, new)
    return True
