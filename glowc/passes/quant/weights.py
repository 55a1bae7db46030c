"""Weights as codes.

quantize-weights: float weights between DequantizeLinear and QuantizeLinear become int8, as in onnxruntime. weight-only:
float layers keep quantised weights as codes; the kernels scale the sums instead. mark-few-codes: int8 weights of at
most 16 different codes say so in their type, however the file has them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from glowc.graph import numerics
from glowc.graph.few_codes import few_codes
from glowc.graph.graph import GraphEditor, Node
from glowc.graph.types import DType, QuantParams, TensorType
from glowc.kernels.records import FEWEST
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
        ctx.warn(f"{node.label}: float weights between quantized layers become int8, as in onnxruntime")
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
