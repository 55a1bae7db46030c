"""fold-dq-product: a product of dequantised rows and int8 weights whose result stays float adds up integers."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from glowc.graph.graph import GraphEditor, Node
from glowc.graph.types import DType, QuantParams, TensorType
from glowc.ops.matmul_integer import LONGEST_SUM
from glowc.passes.base import PassCtx, RewritePass
from glowc.passes.operands import dequantized_from, find_const


class FoldDqProduct(RewritePass):
    """y = float32(sum (x - zx) * (w - zw)) * (sx * sw[o]) + bias[o]: onnxruntime's QGemm without an output scale.

    The last layer of a model with float outputs, and one in front of an operator that stays float.
    """

    name: ClassVar[str] = "fold-dq-product"
    ops: ClassVar[tuple[str, ...]] = ("FullyConnected",)

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Let one layer read the codes of its input."""
        if "shift_div" in node.attrs or editor.types[node.outputs[0]].dtype != DType.F32:
            return False
        x, w = (dequantized_from(editor, name) for name in node.inputs[:2])
        if x is None or w is None or w not in editor.consts:
            return False
        bias = find_const(editor, node.inputs[2]) if len(node.inputs) > 2 and node.inputs[2] else None
        if not _fits(editor.types[x], editor.types[w]) or (bias is None and len(node.inputs) > 2 and node.inputs[2]):
            return False
        outputs, out = editor.types[w].shape[0], node.outputs[0]
        row = np.zeros(outputs, np.float32) if bias is None else np.asarray(bias.real(), np.float32)
        xq, wq = _quant(editor.types[x]), _quant(editor.types[w])
        arrays = {
            "in_scale": np.float32(xq.scale[0]),
            "in_zero": np.asarray(xq.zero_point[0], editor.types[x].dtype.numpy),
            "scales": np.resize(np.asarray(wq.scale, np.float32), outputs),
            "zeros": np.resize(np.asarray(wq.zero_point, np.int32), outputs),
            "row": row,
        }
        scale, zero, scales, zeros, added = (editor.add_const(f"{out}.{n}", np.asarray(a)) for n, a in arrays.items())
        inputs = (x, scale, zero, w, scales, zeros, added)
        editor.update(node, op="FullyConnectedDynamic", inputs=inputs)
        return True


def _quant(type_: TensorType) -> QuantParams:
    assert type_.quant is not None
    return type_.quant


def _fits(x: TensorType, w: TensorType) -> bool:
    """Say whether rows have one scale, weights one per output, and sums stay in int32."""
    if x.quant is None or w.quant is None or x.quant.per_axis or w.quant.axis not in (None, 0) or w.rank != 2:
        return False
    return x.dtype in (DType.S8, DType.U8) and w.dtype == DType.S8 and w.shape[1] <= LONGEST_SUM
