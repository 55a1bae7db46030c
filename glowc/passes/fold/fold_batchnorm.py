"""fold-batchnorm: BatchNormalization goes into the weights in front of it, or becomes Mul and Add."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from glowc.graph.graph import GraphEditor, Node
from glowc.graph.types import DType
from glowc.passes.base import PassCtx, RewritePass
from glowc.passes.operands import ConstOperand, find_const


class FoldBatchNorm(RewritePass):
    """Inference form: y = x * a + b with a = scale / sqrt(var + epsilon), b = bias - mean * a: in float64 for weights,
    in float32 for Mul and Add of float32. Evidence for the latter: tests/unit/test_real_exports_quant.py.
    """

    name: ClassVar[str] = "fold-batchnorm"
    ops: ClassVar[tuple[str, ...]] = ("BatchNormalization",)

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Fold one BatchNormalization."""
        params = [find_const(editor, name) for name in node.inputs[1:5]]
        if any(p is None for p in params) or node.int_("training_mode"):
            return False
        scale, bias, mean, var = (_doubles(p) for p in params if p is not None)
        a = scale / np.sqrt(var + node.float_("epsilon"))
        b = bias - mean * a
        layer = editor.producer(node.inputs[0])
        if layer is None or not _fold(node, layer, editor, a, b):
            exact = editor.types[node.outputs[0]].dtype is DType.F64
            _as_arithmetic(node, editor, *((a, b) if exact else _in_float32([p.real() for p in params if p], node)))
        return True


def _doubles(operand: ConstOperand) -> np.ndarray:
    return operand.array if operand.type.dtype is DType.F64 else operand.real().astype(np.float64)


def _in_float32(params: list[np.ndarray], node: Node) -> tuple[np.ndarray, np.ndarray]:
    """Return a and b as onnxruntime computes them, step by step in float32."""
    scale, bias, mean, var = params
    a = np.float32(1) / np.sqrt(var + np.float32(node.float_("epsilon"))) * scale
    return a, bias - mean * a


def _weight_axis(layer: Node, editor: GraphEditor) -> int | None:
    """Return the weights' axis of output channels; None where they cannot be scaled one by one."""
    if layer.op == "Conv":
        return 0
    if layer.op == "FullyConnected":
        return 0 if editor.types[layer.outputs[0]].rank == 2 else None
    if layer.op == "ConvTranspose":
        return 1 if layer.int_("group") == 1 else None
    return None


def _fold(node: Node, layer: Node, editor: GraphEditor, a: np.ndarray, b: np.ndarray) -> bool:
    axis = _weight_axis(layer, editor)
    if axis is None or editor.sole_user(node.inputs[0]) is None or len(layer.inputs) < 3:
        return False
    weights, bias = (editor.consts.get(name) for name in layer.inputs[1:3])
    closed = any(key.startswith("act_") for key in layer.attrs) or layer.is_nhwc
    if weights is None or bias is None or weights.dtype != np.float32 or closed:
        return False
    shape = [1] * weights.ndim
    shape[axis] = -1
    w = editor.add_const(f"{layer.inputs[1]}.bn", (weights * a.reshape(shape)).astype(np.float32))
    c = editor.add_const(f"{layer.inputs[2]}.bn", (bias * a + b).astype(np.float32))
    editor.remove(node)
    inputs, origin = (layer.inputs[0], w, c), (*layer.origin, *node.origin)
    editor.update(layer, inputs=inputs, outputs=node.outputs[:1], origin=origin)
    return True


def _as_arithmetic(node: Node, editor: GraphEditor, a: np.ndarray, b: np.ndarray) -> None:
    out = node.outputs[0]
    type_ = editor.types[out]
    shape = (1, -1) + (1,) * (type_.rank - 2)
    dtype = np.float64 if type_.dtype is DType.F64 else np.float32
    factor = editor.add_const(f"{out}.scale", a.reshape(shape).astype(dtype))
    term = editor.add_const(f"{out}.shift", b.reshape(shape).astype(dtype))
    product = editor.add_value(f"{out}.product", replace(type_))
    editor.update(node, op="Mul", inputs=(node.inputs[0], factor), outputs=(product,), attrs={})
    editor.add_node("Add", (product, term), (out,), origin=node.origin)
