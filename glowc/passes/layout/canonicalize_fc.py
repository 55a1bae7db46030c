"""canonicalize-fc: Gemm and MatMul with constant weights become FullyConnected(x, W[O,K], bias[O])."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from glowc.graph.attrs import AttrValue
from glowc.graph.graph import GraphEditor, Node
from glowc.graph.types import DType, TensorType, type_of
from glowc.ops.integer import FLOAT_WEIGHTS
from glowc.passes.axes import add_transpose
from glowc.passes.base import PassCtx, RewritePass
from glowc.passes.operands import ConstOperand, add_operand, find_const


class CanonicalizeFc(RewritePass):
    """One form for every dense layer, and a bias for every layer that can have one.

    A Gemm without constant weights becomes MatMul, Mul and Add. Weights after a DequantizeLinear count as
    constant and keep their integers; alpha and beta go into their scale.
    """

    name: ClassVar[str] = "canonicalize-fc"
    ops: ClassVar[tuple[str, ...]] = ("Gemm", "MatMul", "FullyConnected", "Conv", "ConvTranspose")

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Rewrite one layer."""
        if node.op == "Gemm":
            return _rewrite_gemm(node, editor)
        if node.op == "MatMul":
            return _rewrite_matmul(node, editor)
        return _add_bias(node, editor)


def _rewrite_matmul(node: Node, editor: GraphEditor) -> bool:
    weights = find_const(editor, node.inputs[1])
    if weights is None or weights.type.rank != 2 or editor.types[node.inputs[0]].rank < 2:
        return False
    if not _columns_only(weights.type, columns=1):
        return False
    w = add_operand(editor, f"{node.inputs[1]}.ok", weights.transposed())
    bias = _zero_bias(editor, node, weights.type.shape[1])
    editor.update(node, op="FullyConnected", inputs=(node.inputs[0], w, bias))
    return True


def _columns_only(type_: TensorType, columns: int) -> bool:
    """Say whether per-axis weights have one scale per output, as accumulators need."""
    return type_.quant is None or type_.quant.axis in (None, columns)


def _zero_bias(editor: GraphEditor, node: Node, length: int) -> str:
    """Add zeros in the kind that the accumulators of `node` have."""
    kind = DType.S32 if editor.types[node.outputs[0]].quantized else editor.types[node.outputs[0]].dtype
    return editor.add_const(f"{node.outputs[0]}.bias", np.zeros(length, kind.numpy))


def _add_bias(node: Node, editor: GraphEditor) -> bool:
    if len(node.inputs) > 2 and node.inputs[2]:
        return False
    shape = editor.types[node.outputs[0]].shape
    length = shape[-1] if node.op == "FullyConnected" or node.is_nhwc else shape[1]
    bias = _zero_bias(editor, node, length)
    editor.update(node, inputs=(*node.inputs[:2], bias))
    return True


def _rewrite_gemm(node: Node, editor: GraphEditor) -> bool:
    alpha, beta = node.float_("alpha"), node.float_("beta")
    quantized = editor.types[node.outputs[0]].quantized
    if quantized and (alpha, beta) != (1.0, 1.0):
        return False
    weights = find_const(editor, node.inputs[1])
    columns = 0 if node.int_("transB") else 1
    c = node.inputs[2] if len(node.inputs) > 2 else ""
    if weights is None or not _columns_only(weights.type, columns):
        if quantized:
            return False
        _split_gemm(node, editor, alpha, c, beta)
        return True
    length = weights.type.shape[columns]
    bias = _bias_operand(editor, c, length, beta)
    if c and bias is None and quantized:
        return False
    stored = (weights if columns == 0 else weights.transposed()).scaled(alpha)
    as_is = columns == 0 and alpha == 1.0
    w = node.inputs[1] if as_is else add_operand(editor, f"{node.inputs[1]}.ok", stored)
    b = add_operand(editor, f"{c}.o", bias) if bias is not None else _zero_bias(editor, node, length)
    x = add_transpose(editor, node.inputs[0], (1, 0)) if node.int_("transA") else node.inputs[0]
    if c and bias is None:
        _add_after(node, editor, c, beta)
        node = editor.nodes[node.name]
    editor.update(node, op="FullyConnected", inputs=(x, w, b), attrs=_kept(node))
    return True


def _activation(node: Node) -> dict[str, AttrValue]:
    return {key: value for key, value in node.attrs.items() if key.startswith("act_")}


def _kept(node: Node) -> dict[str, AttrValue]:
    return {key: value for key, value in node.attrs.items() if key.startswith("act_") or key in FLOAT_WEIGHTS}


def _bias_operand(editor: GraphEditor, c: str, length: int, beta: float) -> ConstOperand | None:
    const = find_const(editor, c) if c else None
    if const is None or any(d != 1 for d in const.type.shape[:-1]):
        return None
    return (vector := const.vector(length)) and vector.scaled(beta)


def _split_gemm(node: Node, editor: GraphEditor, alpha: float, c: str, beta: float) -> None:
    """Turn a Gemm into MatMul, and Mul and Add where it needs them."""
    if c:
        _add_after(node, editor, c, beta)
        node = editor.nodes[node.name]
    if alpha != 1.0:
        _scale_after(node, editor, alpha)
        node = editor.nodes[node.name]
    a, b = node.inputs[:2]
    a = add_transpose(editor, a, (1, 0)) if node.int_("transA") else a
    b = add_transpose(editor, b, (1, 0)) if node.int_("transB") else b
    editor.update(node, op="MatMul", inputs=(a, b), attrs={})


def _scaled_value(editor: GraphEditor, value: str, factor: float) -> str:
    if factor == 1.0:
        return value
    const = editor.add_const(f"{value}.factor", np.asarray(factor, np.float32))
    out = editor.add_value(f"{value}.scaled", replace(editor.types[value], quant=None))
    editor.add_node("Mul", (value, const), (out,))
    return out


def _renamed_output(node: Node, editor: GraphEditor) -> tuple[str, str]:
    """Let `node` compute a new value; return it and the old name, which needs a producer now."""
    out = node.outputs[0]
    inner = editor.add_value(f"{out}.product", replace(editor.types[out]))
    editor.update(node, outputs=(inner,))
    return inner, out


def _add_after(node: Node, editor: GraphEditor, c: str, beta: float) -> None:
    term = _scaled_value(editor, c, beta)
    inner, out = _renamed_output(node, editor)
    editor.add_node("Add", (inner, term), (out,), _activation(node), origin=node.origin)
    node = editor.nodes[node.name]
    attrs = {key: value for key, value in node.attrs.items() if not key.startswith("act_")}
    editor.update(node, attrs=attrs)


def _scale_after(node: Node, editor: GraphEditor, alpha: float) -> None:
    inner, out = _renamed_output(node, editor)
    factor = np.asarray(alpha, np.float32)
    const = editor.add_const(f"{out}.alpha", factor, type_of(factor))
    editor.add_node("Mul", (inner, const), (out,), origin=node.origin)
