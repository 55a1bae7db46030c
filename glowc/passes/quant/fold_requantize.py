"""fold-requantize: DequantizeLinear -> QuantizeLinear becomes Requantize, FlipSign or nothing."""

from __future__ import annotations

from typing import ClassVar

from glowc.graph.graph import GraphEditor, Node
from glowc.graph.types import TensorType
from glowc.passes.base import PassCtx, RewritePass
from glowc.passes.operands import dequantized_from

_FLIPPED = {"u8": ("s8", 128), "s8": ("u8", -128), "u16": ("s16", 32768), "s16": ("u16", -32768)}
_WIDTHS = {8, 16}  # of codes that become one another


class FoldRequantize(RewritePass):
    """Two Requantize in a row stay: each one rounds, and one alone would round differently."""

    name: ClassVar[str] = "fold-requantize"
    ops: ClassVar[tuple[str, ...]] = ("QuantizeLinear", "Requantize", "FlipSign")

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Rewrite one conversion."""
        if node.op == "QuantizeLinear":
            return _fold_pair(node, editor)
        if node.op == "FlipSign":
            before = editor.producer(node.inputs[0])
            return before is not None and before.op == "FlipSign" and editor.bypass(node, before.inputs[0])
        return _equal(editor, node.inputs[0], node.outputs[0]) and editor.bypass(node, node.inputs[0])


def _fold_pair(node: Node, editor: GraphEditor) -> bool:
    source, out = dequantized_from(editor, node.inputs[0]), node.outputs[0]
    if source is None:
        return False
    if _equal(editor, source, out) and editor.bypass(node, source):
        return True
    a, b = editor.types[source], editor.types[out]
    if a.quant is None or b.quant is None or a.quant.per_axis or b.quant.per_axis:
        return False
    if a.dtype.bits != b.dtype.bits and not {a.dtype.bits, b.dtype.bits} <= _WIDTHS:
        return False
    if _is_flip(a, b):
        editor.update(node, op="FlipSign", inputs=(source,), attrs={})
    else:
        editor.update(node, op="Requantize", inputs=(source,), attrs={"dtype": b.dtype.value})
    return True


def _equal(editor: GraphEditor, a: str, b: str) -> bool:
    left, right = editor.types[a], editor.types[b]
    return left.dtype == right.dtype and left.quant == right.quant


def _is_flip(a: TensorType, b: TensorType) -> bool:
    """Say whether `b` is `a` with the other signedness: the same real numbers, the top bit turned."""
    kind, offset = _FLIPPED.get(a.dtype.value, ("", 0))
    if a.quant is None or b.quant is None or kind != b.dtype.value:
        return False
    return a.quant.scale == b.quant.scale and a.quant.zero_point[0] - b.quant.zero_point[0] == offset
