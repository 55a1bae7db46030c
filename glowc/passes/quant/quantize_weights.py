"""quantize-weights: float weights between DequantizeLinear and QuantizeLinear become int8, as in onnxruntime."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from glowc.graph import numerics
from glowc.graph.graph import GraphEditor, Node
from glowc.graph.types import DType, QuantParams, TensorType
from glowc.ops.integer import FLOAT_WEIGHTS
from glowc.passes.base import PassCtx, RewritePass
from glowc.passes.operands import dequantized_from


class QuantizeWeights(RewritePass):
    """A layer that the quantiser left out, or whose kind it has no QOperator for, stands with float weights among
    integers. onnxruntime then quantises the weights itself (its WeightBiasQuantization, 1.20 and later): int8, one
    scale and zero point over minimum and maximum with zero included; the bias becomes int32 in units of
    x_scale * w_scale. Evidence: the graphs that onnxruntime 1.31 saves (tests/unit/test_real_exports_quant.py). A
    MatMul without bias keeps its floats there, and here: a FullyConnected without bias may be one. So do the fused
    operators that it wrote itself (`FLOAT_WEIGHTS`).
    """

    name: ClassVar[str] = "quantize-weights"
    ops: ClassVar[tuple[str, ...]] = ("Conv", "ConvTranspose", "FullyConnected")

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Quantise the weights and the bias of one layer."""
        x = dequantized_from(editor, node.inputs[0])
        weights, bias = (editor.consts.get(name) for name in node.inputs[1:3])
        if x is None or not _ends_quantized(node, editor) or weights is None or bias is None:
            return False
        if not FLOAT_WEIGHTS.keys().isdisjoint(node.attrs) or _is_reshaped(node, editor):
            return False
        scale = editor.types[x].quant
        if scale is None or scale.per_axis or any(a.dtype != np.float32 for a in (weights, bias)):
            return False
        if (node.op == "FullyConnected" and not np.any(bias)) or not np.all(np.isfinite(weights)):
            return False
        params = weight_params(weights)
        unit = np.float32(scale.scale[0]) * np.float32(params.scale[0])
        sums = np.rint(bias / unit)
        if not np.all(np.abs(sums) <= DType.S32.qmax):
            return False
        codes = numerics.quantize(weights, params, DType.S8)
        ctx.warn(f"{node.label}: float weights between quantised layers become int8, as in onnxruntime")
        inputs = (
            node.inputs[0],
            _dequantized(editor, node.inputs[1], codes, DType.S8, params),
            _dequantized(editor, node.inputs[2], sums.astype(np.int32), DType.S32, QuantParams((float(unit),), (0,))),
        )
        editor.update(node, inputs=inputs)
        return True


def _is_reshaped(node: Node, editor: GraphEditor) -> bool:
    """Say whether onnxruntime's Gemm for a product of more axes has a Reshape between it and an activation."""
    user = editor.sole_user(node.outputs[0])
    active = any(key.startswith("act_") for key in node.attrs) or (user is not None and user.op in ("Relu", "Clip"))
    return node.op == "FullyConnected" and editor.types[node.inputs[0]].rank > 2 and active


def _ends_quantized(node: Node, editor: GraphEditor) -> bool:
    """Say whether nothing but Relu and Clip stands between `node` and a QuantizeLinear."""
    user = editor.sole_user(node.outputs[0])
    while user is not None and user.op in ("Relu", "Clip"):
        user = editor.sole_user(user.outputs[0])
    return user is not None and user.op == "QuantizeLinear"


def weight_params(weights: np.ndarray) -> QuantParams:
    """Return onnxruntime's int8 scale and zero point of float weights, in float32."""
    low, high = np.minimum(weights.min(initial=0), np.float32(0)), np.maximum(weights.max(initial=0), np.float32(0))
    scale = np.float32(1) if low == high else (high - low) / np.float32(255)
    zero = np.rint(np.clip(np.float32(-128) - low / scale, np.float32(-128), np.float32(127)))
    return QuantParams((float(scale),), (int(zero),))


def _dequantized(editor: GraphEditor, base: str, codes: np.ndarray, dtype: DType, quant: QuantParams) -> str:
    """Add constant codes with a DequantizeLinear and return its result."""
    name = editor.add_const(f"{base}.codes", codes, TensorType(codes.shape, dtype, quant))
    out = editor.add_value(f"{base}.real", TensorType(codes.shape, DType.F32))
    editor.add_node("DequantizeLinear", (name,), (out,))
    return out
