"""integers-in-float: models that carry integers in float tensors (RequantShift) become integer models."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from glowc.graph.graph import GraphEditor, Node
from glowc.graph.types import DType, QuantParams, TensorType, quant
from glowc.ops.requant_shift import Shift, make_shift
from glowc.passes.base import PassCtx, RewritePass
from glowc.passes.operands import ConstOperand, dequantized_from, find_const

_LAYERS = ("Conv", "FullyConnected")
_LIMIT = 2**31 - 1


class IntegersInFloat(RewritePass):
    """The result of a RequantShift is an integer of known range: codes of scale 1 after a DequantizeLinear.

    Where that sank to the next layer with integer weights and RequantShift, the layer computes on codes.
    A float graph input of such a layer holds integers as well; it is taken as int16. What is not proven
    (accumulators within int32, whole weights, a power of two as divisor) stays float.
    """

    name: ClassVar[str] = "integers-in-float"
    ops: ClassVar[tuple[str, ...]] = ("RequantShift",)

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Give the result codes, then fold the operator in front into the codes' arithmetic."""
        mul, add = (editor.consts.get(name) for name in node.inputs[1:3])
        shift = make_shift(node, mul, add) if mul is not None and add is not None else None
        if shift is None or shift.div & (shift.div - 1) or max(abs(v) for v in shift.mul) > _LIMIT:
            return False
        if "dtype" not in node.attrs:
            return _give_codes(node, editor, shift)
        if editor.types[node.inputs[0]].quantized:
            return False
        source, layer = dequantized_from(editor, node.inputs[0]), editor.producer(node.inputs[0])
        if source is not None:
            return _unit(editor.types[source]) and _on_codes(node, editor, source, shift)
        if layer is None or editor.sole_user(node.inputs[0]) is None:
            return False
        if any(key.startswith("act_") for key in layer.attrs):
            return False
        if layer.op in ("Add", "Sub"):
            return _fold_sum(node, layer, editor, shift)
        return layer.op in _LAYERS and _fold_layer(node, layer, editor, shift)


def _code_type(shift: Shift) -> tuple[DType, int] | None:
    """Return element kind and zero point of codes for the range of a shift."""
    for dtype in (DType.S8, DType.S16):
        span = shift.high - shift.low
        if dtype.qmin <= shift.low and shift.high <= dtype.qmax:
            return dtype, 0
        if span <= dtype.qmax - dtype.qmin:
            return dtype, dtype.qmin - shift.low
    return None


def _give_codes(node: Node, editor: GraphEditor, shift: Shift) -> bool:
    kind, out = _code_type(shift), node.outputs[0]
    if kind is None:
        return False
    dtype, zero = kind
    codes = editor.add_value(f"{out}.q", TensorType(editor.types[out].shape, dtype, quant(1.0, zero)))
    editor.update(node, outputs=(codes,), attrs={**node.attrs, "dtype": dtype.value})
    editor.add_node("DequantizeLinear", (codes,), (out,), origin=node.origin)
    return True


def _on_codes(node: Node, editor: GraphEditor, source: str, shift: Shift) -> bool:
    if len(shift.mul) == len(shift.add) == 1:
        dtype = editor.types[node.outputs[0]].dtype
        editor.update(node, op="ShiftCodes", inputs=(source,), attrs=shift.attrs(dtype))
    else:
        editor.update(node, inputs=(source, *node.inputs[1:]))
    return True


def _unit(type_: TensorType) -> bool:
    q = type_.quant
    return q is not None and q.axis is None and q.scale[0] == 1.0 and type_.dtype in (DType.S8, DType.S16)


def _fold_sum(node: Node, layer: Node, editor: GraphEditor, shift: Shift) -> bool:
    sources = [dequantized_from(editor, name) for name in layer.inputs]
    if any(name is None or not _unit(editor.types[name]) for name in sources) or len(shift.mul) + len(shift.add) > 2:
        return False
    names = tuple(name for name in sources if name is not None)
    if any(editor.types[name].dtype != DType.S8 for name in (*names, node.outputs[0])):
        return False
    _join(node, layer, editor, names, shift)
    return True


def _fold_layer(node: Node, layer: Node, editor: GraphEditor, shift: Shift) -> bool:
    weights, bias = find_const(editor, layer.inputs[1]), find_const(editor, layer.inputs[2])
    channels = editor.types[layer.inputs[2]].elements
    if weights is None or bias is None or any(len(v) not in (1, channels) for v in (shift.mul, shift.add)):
        return False
    w, b = _integers(weights, DType.S8), _integers(bias, DType.S32)
    if w is None or b is None:
        return False
    source = dequantized_from(editor, layer.inputs[0])
    outside = layer.inputs[0] in editor.inputs and editor.types[layer.inputs[0]].dtype == DType.F32
    if source is None and not outside:
        return False
    if source is not None and not _unit(editor.types[source]):
        return False
    in_type = editor.types[source] if source is not None else TensorType((), DType.S16, quant(1.0, 0))
    if not _fits(in_type, w, b, shift):
        return False
    if source is None:
        source = _integer_input(layer, editor)
    codes = TensorType(w.shape, DType.S8, QuantParams((1.0,), (0,)))
    names = (source, editor.add_const(f"{layer.inputs[1]}.s8", w, codes), editor.add_const(f"{layer.inputs[2]}.s32", b))
    _join(node, layer, editor, names, shift)
    return True


def _integers(operand: ConstOperand, dtype: DType) -> np.ndarray | None:
    real = operand.real()
    whole = np.all(np.isfinite(real)) and np.all(real == np.rint(real))
    if not whole or np.any(real < dtype.qmin) or np.any(real > dtype.qmax):
        return None
    return np.ascontiguousarray(real.astype(dtype.numpy))


def _fits(x: TensorType, w: np.ndarray, b: np.ndarray, shift: Shift) -> bool:
    """Say whether no accumulator leaves int32 and no scaled one int64."""
    assert x.quant is not None
    largest = max(abs(x.dtype.qmin - x.quant.zero_point[0]), abs(x.dtype.qmax - x.quant.zero_point[0]))
    sums = np.abs(w.astype(np.int64)).reshape(w.shape[0], -1).sum(1) * largest
    scaled = (float(sums.max()) + float(np.abs(b).max())) * max(map(abs, shift.mul)) + max(map(abs, shift.add))
    return int(sums.max()) <= _LIMIT and math.log2(scaled + shift.div) < 62


def _integer_input(layer: Node, editor: GraphEditor) -> str:
    """Quantise a graph input of integers to int16; several layers read the same codes."""
    name = layer.inputs[0]
    for user in editor.users(name):
        if user.op == "QuantizeLinear" and _unit(editor.types[user.outputs[0]]):
            return user.outputs[0]
    codes = editor.add_value(f"{name}.q", TensorType(editor.types[name].shape, DType.S16, quant(1.0, 0)))
    editor.add_node("QuantizeLinear", (name,), (codes,), {"dtype": "s16"}, origin=layer.origin)
    return codes


def _join(node: Node, layer: Node, editor: GraphEditor, inputs: tuple[str, ...], shift: Shift) -> None:
    out = node.outputs[0]
    dtype = editor.types[out].dtype
    editor.remove(node)
    attrs = {**layer.attrs, **shift.attrs(dtype)}
    editor.update(layer, inputs=inputs, outputs=(out,), attrs=attrs, origin=(*layer.origin, *node.origin))
