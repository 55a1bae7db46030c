"""Operators around DequantizeLinear that become operators on codes.

fold-requantize: DequantizeLinear -> QuantizeLinear becomes Requantize, FlipSign or nothing. fold-dq-product: a product
of dequantised rows and int8 weights whose result stays float adds up integers. fold-qdq-norm: a normalisation between
DequantizeLinear and QuantizeLinear becomes one on codes.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from glowc.graph.graph import GraphEditor, Node
from glowc.graph.types import DType, QuantParams, TensorType
from glowc.ops.matmul_integer import LONGEST_SUM
from glowc.passes.base import PassCtx, RewritePass
from glowc.passes.operands import dequantized_from, find_const

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
        if not _product_fits(editor.types[x], editor.types[w]) or (
            bias is None and len(node.inputs) > 2 and node.inputs[2]
        ):
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


def _product_fits(x: TensorType, w: TensorType) -> bool:
    """Say whether rows have one scale, weights one per output, and sums stay in int32."""
    if x.quant is None or w.quant is None or x.quant.per_axis or w.quant.axis not in (None, 0) or w.rank != 2:
        return False
    return x.dtype in (DType.S8, DType.U8) and w.dtype == DType.S8 and w.shape[1] <= LONGEST_SUM


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
