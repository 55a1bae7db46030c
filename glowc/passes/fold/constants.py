"""Operators on constants: known results, multiplications for divisions, biases for sums.

fold-constants: evaluates operators that read only constants, with the operator's own numpy reference. exact-division: a
float division by powers of two becomes a multiplication: the same bits for less time. fold-bias: an Add of a per-
channel constant after Conv or FullyConnected becomes their bias.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from glowc.graph.graph import GraphEditor, Node
from glowc.graph.types import DType, type_of
from glowc.ops.base import Call, OpError
from glowc.ops.integer import FLOAT_WEIGHTS
from glowc.ops.registry import find_op
from glowc.passes.base import PassCtx, RewritePass
from glowc.passes.classes import clamps
from glowc.passes.operands import ConstOperand, add_operand, find_const


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


@dataclass(frozen=True)
class ExactDivision(RewritePass):
    """Only where the reciprocal of every divisor is exact and a normal number, or `inexact` and a number."""

    inexact: bool = False

    name: ClassVar[str] = "exact-division"
    ops: ClassVar[tuple[str, ...]] = ("Div",)

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Rewrite one Div by a constant."""
        divisor = editor.consts.get(node.inputs[1])
        if divisor is None or editor.types[node.inputs[1]].dtype not in (DType.F32, DType.F64):
            return False
        mantissa, exponent = np.frexp(divisor)
        exact = np.all(np.abs(mantissa) == 0.5) or (self.inexact and np.all(mantissa))
        if not exact or np.any(np.abs(exponent) > 100):
            return False
        name = editor.add_const(f"{node.inputs[1]}.inverse", (1 / divisor).astype(divisor.dtype))
        editor.update(node, op="Mul", inputs=(node.inputs[0], name))
        return True


class FoldBias(RewritePass):
    """Float (and dequantised) layers only: a quantised Add rounds twice, so it is another function.

    A constant that replaces a zero bias keeps its integers, because int32 ones are accumulator units.
    """

    name: ClassVar[str] = "fold-bias"
    ops: ClassVar[tuple[str, ...]] = ("Add",)

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Fold `node` into the layer that computes one of its inputs."""
        for index in (0, 1):
            layer = _layer(editor, node.inputs[index])
            term = find_const(editor, node.inputs[1 - index])
            if layer is None or term is None or not editor.types[node.outputs[0]].dtype.is_float:
                continue
            bias = _new_bias(editor, layer, term)
            if bias is None or editor.types[node.inputs[index]].shape != editor.types[node.outputs[0]].shape:
                continue
            name = add_operand(editor, f"{node.outputs[0]}.bias", bias)
            _fold(node, layer, (*layer.inputs[:2], name), editor)
            return True
        return False


def _fold(node: Node, layer: Node, inputs: tuple[str, ...], editor: GraphEditor) -> None:
    """Let the layer have a bias; bounds of the sum become its own, or a Clip where it has none."""
    act = {key: value for key, value in node.attrs.items() if key.startswith("act_")}
    origin = (*layer.origin, *node.origin)
    if act and not clamps(layer.op):
        editor.update(layer, inputs=inputs, origin=origin)
        bounds = {key.removeprefix("act_"): value for key, value in act.items()}
        editor.update(node, op="Clip", inputs=layer.outputs[:1], attrs=bounds)
        return
    editor.remove(node)
    # onnxruntime makes a bias of the first Add only: the weights of a dense layer in front of another one stay floats
    kept = dict.fromkeys(FLOAT_WEIGHTS, 1) if layer.op == "FullyConnected" and _is_biased(layer, editor) else {}
    attrs = {**layer.attrs, **act, **kept}
    editor.update(layer, inputs=inputs, outputs=node.outputs, attrs=attrs, origin=origin)


def _is_biased(layer: Node, editor: GraphEditor) -> bool:
    old = find_const(editor, layer.inputs[2])
    return old is not None and bool(np.any(old.real()))


def _layer(editor: GraphEditor, value: str) -> Node | None:
    node = editor.producer(value)
    if node is None or node.op not in ("Conv", "ConvTranspose", "FullyConnected") or len(node.inputs) < 3:
        return None
    if editor.sole_user(value) is None or any(key.startswith("act_") for key in node.attrs):
        return None
    return node


def _new_bias(editor: GraphEditor, layer: Node, term: ConstOperand) -> ConstOperand | None:
    shape = editor.types[layer.outputs[0]].shape
    channel = len(shape) - 1 if layer.op == "FullyConnected" or layer.is_nhwc else 1
    padded = (1,) * (len(shape) - term.type.rank) + term.type.shape
    if len(padded) > len(shape) or any(d != 1 for axis, d in enumerate(padded) if axis != channel):
        return None
    vector = term.vector(shape[channel])
    old = find_const(editor, layer.inputs[2])
    if vector is None or old is None:
        return None
    if not np.any(old.real()):
        return vector
    total = (old.real() + vector.real()).astype(np.float32)
    return ConstOperand(total, type_of(total), False)
