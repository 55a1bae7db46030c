"""fold-batchnorm: BatchNormalization goes into the weights in front of it, or becomes Mul and Add."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from glowc.graph.graph import GraphEditor, Node
from glowc.graph.types import DType
from glowc.passes.base import PassCtx, RewritePass
from glowc.passes.operands import ConstOperand, find_const


@dataclass(frozen=True)
class FoldBatchNorm(RewritePass):
    """Inference form: y = x * a + b with a = scale / sqrt(var + epsilon), b = bias - mean * a: in float64 for weights,
    in float32 for Mul and Add of float32. Evidence for the latter: tests/unit/test_real_exports_quant.py.

    With `as_conv` one of images or signals is a convolution of one place instead, which takes codes as one layer.
    """

    as_conv: bool = False

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
        if self.as_conv and editor.types[node.inputs[0]].rank == 3:
            _with_height(node, editor)
            return True
        layer = editor.producer(node.inputs[0])
        if layer is None or not _fold(node, layer, editor, a, b):
            if self.as_conv and editor.types[node.inputs[0]].rank == 4:
                _as_conv(node, editor, a, b)
                return True
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
        return 1
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
    gain = a.reshape(shape)
    if axis == 1:  # the channels of a group, for the inputs of each group
        groups = layer.int_("group")
        gain = np.repeat(a.reshape(groups, -1, *shape[2:]), len(weights) // groups, axis=0)
    w = editor.add_const(f"{layer.inputs[1]}.bn", (weights * gain).astype(np.float32))
    c = editor.add_const(f"{layer.inputs[2]}.bn", (bias * a + b).astype(np.float32))
    editor.remove(node)
    inputs, origin = (layer.inputs[0], w, c), (*layer.origin, *node.origin)
    editor.update(layer, inputs=inputs, outputs=node.outputs[:1], origin=origin)
    return True


def _with_height(node: Node, editor: GraphEditor) -> None:
    """Put a normalisation of signals between Reshapes, as their convolutions are."""
    value, out = node.inputs[0], node.outputs[0]
    type_ = editor.types[value]
    wide = replace(type_, shape=(*type_.shape[:2], 1, type_.shape[2]))
    before = editor.producer(value)
    alone = before is not None and before.op == "Reshape" and editor.sole_user(value) is not None
    if before is not None and alone and editor.types[before.inputs[0]].shape == wide.shape:
        source = before.inputs[0]  # of a convolution, which takes the normalisation
        editor.remove(before)
    else:
        source = editor.add_value(f"{out}.2d", wide)
        editor.add_node("Reshape", (value,), (source,), {"shape": wide.shape}, origin=node.origin)
    result = editor.add_value(f"{out}.wide", wide)
    editor.update(node, inputs=(source, *node.inputs[1:]), outputs=(result,))
    editor.add_node("Reshape", (result,), (out,), {"shape": type_.shape}, origin=node.origin)


def _as_conv(node: Node, editor: GraphEditor, a: np.ndarray, b: np.ndarray) -> None:
    out, ones = node.outputs[0], (1, 1)
    weights = editor.add_const(f"{out}.weights", a.reshape(-1, 1, *ones).astype(np.float32))
    bias = editor.add_const(f"{out}.bias", b.astype(np.float32))
    attrs = {"kernel_shape": ones, "strides": ones, "dilations": ones, "pads": (0, 0, 0, 0), "group": len(a)}
    editor.update(node, op="Conv", inputs=(node.inputs[0], weights, bias), outputs=(out,), attrs=attrs)


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
