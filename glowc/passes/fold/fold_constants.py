"""fold-constants: evaluates operators that read only constants, with the operator's own numpy reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from glowc.graph.graph import GraphEditor, Node
from glowc.ops.base import Call, OpError
from glowc.ops.registry import find_op
from glowc.passes.base import PassCtx, RewritePass
from glowc.passes.operands import find_const


@dataclass(frozen=True)
class FoldConstants(RewritePass):
    """Nodes with constant inputs become constants.

    A DequantizeLinear of a constant stays until `dequantize` allows it: its integers may still become the
    weights of an integer operator. Results over `limit_bytes` are computed at run time.
    """

    dequantize: bool = False
    limit_bytes: int = 1 << 24
    name: ClassVar[str] = "fold-constants"

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Replace `node` by the constants it computes."""
        op = find_op(node.op)
        if op is None or (node.op in ("DequantizeLinear", "DequantizeBlocks") and not self.dequantize):
            return False
        if node.op == "QuantizeLinear":
            _see_through(node, editor)
        if any(name and name not in editor.consts for name in node.inputs):
            return False
        types = tuple(editor.types[name] for name in node.outputs if name)
        if any(out in editor.outputs for out in node.outputs) or len(types) != len(node.outputs):
            return False
        if sum(t.size_bytes for t in types) > self.limit_bytes:
            return False
        arrays = tuple(editor.consts[name] if name else None for name in node.inputs)
        in_types = tuple(editor.types[name] if name else None for name in node.inputs)
        try:
            results = op.reference(Call(node, arrays, in_types, types))
        except OpError:  # which its lowering tells
            return False
        editor.remove(node)
        for out, result, type_ in zip(node.outputs, results, types, strict=True):
            editor.consts[out] = np.ascontiguousarray(result, dtype=type_.dtype.numpy).reshape(type_.shape)
        return True


def _see_through(node: Node, editor: GraphEditor) -> None:
    """Let a QuantizeLinear that changes the codes of a constant read its real values: weights that two layers share."""
    operand = find_const(editor, node.inputs[0])
    if operand is not None and operand.dequantized:
        editor.update(node, inputs=(editor.add_const(f"{node.inputs[0]}.real", operand.real()), *node.inputs[1:]))
