"""fold-qdq-lstm: an LSTM between DequantizeLinear and QuantizeLinear, of int8 weights, becomes one on codes."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from glowc.graph.graph import GraphEditor, Node
from glowc.graph.types import DType, QuantParams, TensorType
from glowc.ops.coded_lstm import GATES, gate_scales
from glowc.passes.base import PassCtx, RewritePass
from glowc.passes.operands import dequantized_from, find_const

_LARGEST_BIAS = 2.0**30
_LONGEST = 1 << 15  # products of two codes that int32 holds beside such a bias
_X, _W, _R, _B = range(4)
_Y, _Y_H = range(2)


class FoldQdqLstm(RewritePass):
    """One direction, ONNX's own activations, no clip, peepholes, lengths or initial states but zeros.

    Weights are codes with zero point 0 and one scale, or one for each row; the bias is rounded to units of the sums
    over x. All steps, the last one or both may be read, by one QuantizeLinear each, with equal quantisations.
    """

    name: ClassVar[str] = "fold-qdq-lstm"
    ops: ClassVar[tuple[str, ...]] = ("LSTM",)

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Fold one LSTM."""
        x = dequantized_from(editor, node.inputs[_X])
        ends = _ends(node, editor)
        if x is None or not ends or not _is_plain(node, editor):
            return False
        kind, out = editor.types[x], editor.types[next(iter(ends.values())).outputs[0]]
        own, past = (_rows(editor, name) for name in node.inputs[_W : _R + 1])
        if not all(_is_byte(t) for t in (kind, out)) or own is None or past is None:
            return False
        (w, w_scale), (r, r_scale) = own, past
        assert kind.quant is not None and out.quant is not None  # noqa: PT018
        bias = _bias(editor, node, kind.quant, w, w_scale)
        if bias is None or max(w.shape[1], r.shape[1]) > _LONGEST:
            return False
        state_bias = -out.quant.zero_point[0] * r.astype(np.int64).sum(axis=1)
        consts = {
            "weights": w, "recurrent": r, "bias": np.stack([bias, state_bias]).astype(np.int32),
            "scale": gate_scales(kind.quant, w_scale, out.quant, r_scale),
        }  # fmt: skip
        _replace(node, editor, ends, x, [editor.add_const(f"{node.name}.{key}", a) for key, a in consts.items()])
        return True


def _is_byte(t: TensorType) -> bool:
    return t.dtype is DType.S8 and t.quant is not None and t.quant.axis is None


def _is_plain(node: Node, editor: GraphEditor) -> bool:
    """Say whether nothing but sizes differs from ONNX's defaults."""
    names = [name.lower() for name in node.strs("activations")]
    usual = node.str_("direction") == "forward" and names in ([], ["sigmoid", "tanh", "tanh"])
    if not usual or node.float_("clip") != math.inf or node.int_("input_forget") or node.int_("batch_first"):
        return False
    if node.floats("activation_alpha") or node.floats("activation_beta"):
        return False
    states, others = node.inputs[5:7], (*node.inputs[4:5], *node.inputs[7:])
    return not any(others) and all(not name or _is_zero(editor, name) for name in states)


def _is_zero(editor: GraphEditor, name: str) -> bool:
    operand = find_const(editor, name)
    return operand is not None and not operand.real().any()


def _ends(node: Node, editor: GraphEditor) -> dict[int, Node]:
    """Return the QuantizeLinear of each output that is read; nothing where that is not all."""
    found: dict[int, Node] = {}
    for index, name in enumerate(node.outputs):
        user = editor.sole_user(name) if name else None
        if user is not None and user.op == "QuantizeLinear" and index in (_Y, _Y_H):
            found[index] = user
        elif name and (editor.users(name) or name in editor.outputs):
            return {}
    kinds = [editor.types[end.outputs[0]] for end in found.values()]
    return found if all(k.dtype == kinds[0].dtype and k.quant == kinds[0].quant for k in kinds) else {}


def _rows(editor: GraphEditor, name: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Return int8 weights[4 H, K] and the scale of each row."""
    operand = find_const(editor, name)
    if operand is None or operand.type.dtype is not DType.S8 or operand.type.quant is None:
        return None
    quant, (dirs, rows, _) = operand.type.quant, operand.array.shape
    if dirs != 1 or quant.axis not in (None, 1) or any(quant.zero_point) or rows % GATES:
        return None
    return operand.array[0], np.broadcast_to(np.asarray(quant.scale, np.float32), (rows,))


def _bias(editor: GraphEditor, node: Node, x: QuantParams, w: np.ndarray, scale: np.ndarray) -> np.ndarray | None:
    """Return the biases in units of the sums over x, less what its zero point adds; None where they do not fit."""
    name = node.inputs[_B] if len(node.inputs) > _B else ""
    operand = find_const(editor, name) if name else None
    if name and operand is None:
        return None
    real = operand.real().astype(np.float64).reshape(2, -1).sum(axis=0) if operand is not None else np.zeros(len(w))
    codes = np.rint(real / (np.float64(x.scale[0]) * scale.astype(np.float64)))
    if np.abs(codes).max(initial=0) > _LARGEST_BIAS:
        return None
    return np.asarray(codes - x.zero_point[0] * w.astype(np.int64).sum(axis=1))


def _replace(node: Node, editor: GraphEditor, ends: dict[int, Node], x: str, consts: list[str]) -> None:
    """Put the layer in the place of the node and of what quantises its results."""
    out = editor.types[next(iter(ends.values())).outputs[0]]
    steps, batch, hidden = editor.types[x].shape[0], editor.types[x].shape[1], out.shape[-1]
    names = {index: end.outputs[0] for index, end in ends.items()}
    for end in ends.values():
        editor.remove(end)
    whole = TensorType((steps, 1, batch, hidden), out.dtype, out.quant)
    y = names.get(_Y) or editor.add_value(f"{node.name}.y", whole)
    editor.update(node, op="CodedLSTM", inputs=(x, *consts), outputs=(y,), attrs={})
    if _Y_H in names:
        last = editor.add_value(f"{node.name}.last", TensorType((1, 1, batch, hidden), out.dtype, out.quant))
        cut = {"starts": (steps - 1,), "ends": (steps,), "axes": (0,), "steps": (1,)}
        editor.add_node("Slice", (y,), (last,), cut, origin=node.origin)
        editor.add_node("Reshape", (last,), (names[_Y_H],), {"shape": (1, batch, hidden)}, origin=node.origin)
