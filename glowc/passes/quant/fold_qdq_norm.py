"""fold-qdq-norm: a normalisation between DequantizeLinear and QuantizeLinear becomes one on codes."""

from __future__ import annotations

from typing import ClassVar

from glowc.graph.graph import GraphEditor, Node
from glowc.graph.types import DType
from glowc.passes.base import PassCtx, RewritePass
from glowc.passes.operands import dequantized_from, find_const

_CODES = (DType.S8, DType.S16)


class FoldQdqNorm(RewritePass):
    """Only the data is quantised: scale and bias, whether stored as int8, int32 or float, become float32 constants
    of their real values, because the integer formula folds them into one multiplication and one addition.
    """

    name: ClassVar[str] = "fold-qdq-norm"
    ops: ClassVar[tuple[str, ...]] = ("QuantizeLinear",)

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Fold the normalisation in front of the QuantizeLinear `node`."""
        value, out = node.inputs[0], node.outputs[0]
        op = editor.producer(value)
        if op is None or op.op not in ("LayerNormalization", "RMSNormalization") or op.op not in ctx.int8_ops:
            return False
        if editor.sole_user(value) is None or op.outputs[0] != value or any(op.outputs[1:]):
            return False
        x = dequantized_from(editor, op.inputs[0])
        if x is None or not _same_kind(editor, x, out):
            return False
        inputs = [x]
        for name in op.inputs[1:]:
            operand = find_const(editor, name) if name else None
            if name and operand is None:
                return False
            real = operand is not None and operand.dequantized
            inputs.append(editor.add_const(f"{name}.real", operand.real()) if real and operand is not None else name)
        editor.remove(node)
        editor.update(op, inputs=tuple(inputs), outputs=(out,))
        return True


def _same_kind(editor: GraphEditor, a: str, b: str) -> bool:
    """Say whether both are codes of one kind with one scale each."""
    x, y = editor.types[a], editor.types[b]
    scalar = x.quant is not None and y.quant is not None and not (x.quant.per_axis or y.quant.per_axis)
    return scalar and x.dtype == y.dtype and x.dtype in _CODES
