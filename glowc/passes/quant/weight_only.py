"""weight-only: float layers keep quantised weights as codes; the kernels scale the sums instead."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from glowc.graph.graph import GraphEditor, Node
from glowc.graph.types import DType, TensorType
from glowc.passes.base import PassCtx, RewritePass
from glowc.passes.operands import dequantized_from


class WeightOnly(RewritePass):
    """Four times less flash than floats. Weights with a zero point of its own per output become floats.

    Blocks (DequantizeBlocks) feed FullyConnectedBlocks, which reads packed codes.
    """

    name: ClassVar[str] = "weight-only"
    ops: ClassVar[tuple[str, ...]] = ("Conv", "FullyConnected", "MatMul")

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Let one layer read codes."""
        if editor.types[node.inputs[0]].dtype != DType.F32 or editor.types[node.outputs[0]].dtype != DType.F32:
            return False
        source = editor.producer(node.inputs[1])
        if source is not None and source.op == "DequantizeBlocks":
            return _blocks(node, source, editor)
        codes = dequantized_from(editor, node.inputs[1])
        if node.op == "MatMul" or codes is None or codes not in editor.consts or not _simple(editor.types[codes]):
            return False
        editor.update(node, inputs=(node.inputs[0], codes, *node.inputs[2:]))
        return True


def _simple(type_: TensorType) -> bool:
    q = type_.quant
    return q is not None and type_.dtype == DType.S8 and q.axis in (None, 0) and len(set(q.zero_point)) == 1


def _blocks(node: Node, source: Node, editor: GraphEditor) -> bool:
    """A product with blocked weights; their blocks must lie along the summed axis."""
    codes = source.inputs[0]
    kind = editor.types[codes]
    if node.op == "Conv" or any(name not in editor.consts for name in source.inputs) or kind.rank != 2:
        return False
    summed = 0 if node.op == "MatMul" else 1
    if source.int_("axis") % 2 != summed or editor.types[node.inputs[0]].rank < 1:
        return False
    arrays = [editor.consts[name] for name in source.inputs]
    q, scale, zero = (a.T if summed == 0 else a for a in arrays)
    bits, block = source.int_("bits"), source.int_("block_size")
    packed = pack_codes(q, block, bits)
    outputs = q.shape[0]
    bias = node.inputs[2] if len(node.inputs) > 2 else ""
    inputs = (
        node.inputs[0],
        editor.add_const(f"{codes}.packed", packed),
        editor.add_const(f"{codes}.scales", np.ascontiguousarray(scale, np.float32)),
        editor.add_const(f"{codes}.zeros", np.ascontiguousarray(zero, np.uint8)),
        bias or editor.add_const(f"{node.outputs[0]}.bias", np.zeros(outputs, np.float32)),
    )
    act = {key: value for key, value in node.attrs.items() if key.startswith("act_")}
    attrs = {**act, "k": q.shape[1], "block_size": block, "bits": bits}
    editor.update(node, op="FullyConnectedBlocks", inputs=inputs, attrs=attrs)
    return True


def pack_codes(codes: np.ndarray, block: int, bits: int) -> np.ndarray:
    """Return codes [N, K] (0 .. 2^bits - 1) packed low bits first, every block filled up with zeros."""
    n, k = codes.shape
    blocks, per_byte = -(-k // block), 8 // bits
    filled = np.zeros((n, blocks * block), np.uint8)
    filled[:, :k] = codes
    parts = filled.reshape(n, -1, per_byte)
    shifts = np.arange(per_byte, dtype=np.uint8) * np.uint8(bits)
    return np.ascontiguousarray(np.bitwise_or.reduce(parts << shifts, axis=2).astype(np.uint8))
