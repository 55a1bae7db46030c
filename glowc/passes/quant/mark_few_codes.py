"""mark-few-codes: int8 weights of at most 16 different codes say so in their type, however the file has them."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from glowc.graph.few_codes import few_codes
from glowc.graph.graph import GraphEditor, Node
from glowc.graph.types import DType
from glowc.kernels.records import FEWEST
from glowc.passes.base import PassCtx, RewritePass


class MarkFewCodes(RewritePass):
    """Weights of a palette (DequantizeLinear of Gather), clustered and ternary ones, and INT4 of so few codes that 2
    bits tell them: the type has `bits`, and the palette where the codes are not numbers of so many bits. Layers on
    int8 or int16 alone, whose weights are enough to be stored so. Where time counts first, weights of bytes stay bytes.
    """

    name: ClassVar[str] = "mark-few-codes"
    ops: ClassVar[tuple[str, ...]] = ("Conv", "FullyConnected")

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Mark the weights of one layer."""
        weights, types = editor.consts.get(node.inputs[1]), editor.types
        quant = types[node.inputs[1]].quant
        if weights is None or quant is None or weights.size < FEWEST or node.attrs.get("group", 1) != 1:
            return False
        if ctx.fastest and not quant.bits:
            return False
        x, y = types[node.inputs[0]], types[node.outputs[0]]
        if not (x.quantized and y.quantized and x.dtype in (DType.S8, DType.S16)):
            return False
        few = few_codes(weights)
        if few is None or (few.bits, few.palette) == (quant.bits, quant.palette):
            return False
        marked = replace(quant, bits=few.bits, palette=few.palette)
        editor.types[node.inputs[1]] = replace(types[node.inputs[1]], quant=marked)
        editor.changed = True
        return True
