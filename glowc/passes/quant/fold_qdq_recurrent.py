"""fold-qdq-recurrent: an LSTM or GRU of int8 weights between DequantizeLinear and QuantizeLinear is one on codes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np

from glowc.graph.attrs import AttrValue
from glowc.graph.graph import GraphEditor, Node
from glowc.graph.numerics import quantize
from glowc.graph.types import DType, QuantParams, TensorType
from glowc.ops.coded_cells import CELL_UNITS, NEW_UNIT
from glowc.ops.coded_recurrent import GATE_SCALE, GATES, ROLES, gate_scales
from glowc.ops.recurrent_spec import C0, DEFAULTS, H0, B, P, R, W, X, kind_of
from glowc.passes.base import PassCtx, RewritePass
from glowc.passes.operands import dequantized_from, find_const

_LARGEST_BIAS = 2.0**30
_LONGEST = 1 << 15  # products of two codes that int32 holds beside such a bias
_Y, _Y_H, _Y_C = range(3)
_UNREAD = QuantParams((2.0**-7,), (0,))
"""Of the codes of states that nothing reads but the layer itself."""
_CODED = {"LSTM": "CodedLSTM", "GRU": "CodedGRU"}


class FoldQdqRecurrent(RewritePass):
    """All directions, ONNX's own activations, no clip, peepholes or lengths.

    Weights are codes with zero point 0 and one scale, or one for each row; biases are rounded to units of the sums
    that they belong to. All steps, the last one or both may be read, by one QuantizeLinear each, with equal
    quantisations. Initial states are zeros, or of the same codes; cells of an LSTM and initial states of a GRU are
    int16 in the units of the layer, and so are those after the last step.
    """

    name: ClassVar[str] = "fold-qdq-recurrent"
    ops: ClassVar[tuple[str, ...]] = tuple(_CODED)

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Fold one layer."""
        x = dequantized_from(editor, node.inputs[X])
        ends = _ends(node, editor)
        if x is None or not ends or not _is_plain(node):
            return False
        kind, out = editor.types[x], _code_type(node, editor, ends)
        own, past = (_rows(editor, name, GATES[kind_of(node)]) for name in node.inputs[W : R + 1])
        if not all(_is_byte(t) for t in (kind, out)) or own is None or past is None:
            return False
        (w, w_scale), (r, r_scale) = own, past
        assert kind.quant is not None and out.quant is not None  # noqa: PT018
        bias = _biases(editor, node, (kind.quant, w, w_scale), (out.quant, r, r_scale))
        starts = _starts(node, editor, ends, out)
        if bias is None or starts is None or max(w.shape[2], r.shape[2]) > _LONGEST:
            return False
        scale = gate_scales(kind.quant, w_scale, out.quant, r_scale)
        if node.attrs.get("linear_before_reset"):
            scale[:, :, 2 * r.shape[2] :] *= np.float32(GATE_SCALE / NEW_UNIT)
        consts = {"weights": w, "recurrent": r, "bias": bias, "scale": scale}
        inputs = [x, *(editor.add_const(f"{node.name}.{key}", a) for key, a in consts.items())]
        inputs += [s if isinstance(s, str) else editor.add_const(f"{node.name}.start", *s) for s in starts]
        _replace(node, editor, ends, inputs, out)
        return True


def _is_byte(t: TensorType) -> bool:
    return t.dtype is DType.S8 and t.quant is not None and t.quant.axis is None


def _is_plain(node: Node) -> bool:
    """Say whether nothing but sizes and directions differs from ONNX's defaults."""
    names = [name.lower() for name in node.strs("activations")]
    dirs = 2 if node.str_("direction") == "bidirectional" else 1
    usual = names in ([], [name.lower() for name in DEFAULTS[kind_of(node)]] * dirs)
    if not usual or node.float_("clip") != math.inf or node.int_("batch_first") or node.attrs.get("input_forget"):
        return False
    if node.floats("activation_alpha") or node.floats("activation_beta"):
        return False
    return not any((*node.inputs[B + 1 : H0], *node.inputs[P:]))


def _ends(node: Node, editor: GraphEditor) -> dict[int, Node]:
    """Return the QuantizeLinear of each output that is read; nothing where that is not all."""
    found: dict[int, Node] = {}
    for index, name in enumerate(node.outputs):
        user = editor.sole_user(name) if name else None
        if user is not None and user.op == "QuantizeLinear":
            found[index] = user
        elif name and (editor.users(name) or name in editor.outputs):
            return {}
    kinds = [editor.types[end.outputs[0]] for index, end in found.items() if index != _cells_of(node, editor, found)]
    return found if all(k.dtype == kinds[0].dtype and k.quant == kinds[0].quant for k in kinds) else {}


def _cells_of(node: Node, editor: GraphEditor, ends: Mapping[int, Node]) -> int | None:
    """Return which output holds the cells, or states of a GRU, after the last step in int16; None where none does."""
    index = _Y_C if node.op == "LSTM" else _Y_H
    return index if index in ends and _has_cells(node, editor.types[ends[index].outputs[0]]) else None


def _has_cells(node: Node, kind: TensorType) -> bool:
    return kind.dtype is DType.S16 and kind.quant == QuantParams((CELL_UNITS[kind_of(node)],), (0,))


def _code_type(node: Node, editor: GraphEditor, ends: Mapping[int, Node]) -> TensorType:
    """Return a type of the quantisation that the codes of states have."""
    cells = _cells_of(node, editor, ends)
    coded = [end.outputs[0] for index, end in ends.items() if index != cells]
    if not coded and node.op == "LSTM" and (start := dequantized_from(editor, "".join(node.inputs[H0 : H0 + 1]))):
        coded = [start]
    return editor.types[coded[0]] if coded else TensorType((), DType.S8, _UNREAD)


_Start = str | tuple[np.ndarray, TensorType]
"""A value, or a constant."""


def _starts(node: Node, editor: GraphEditor, ends: Mapping[int, Node], out: TensorType) -> list[_Start] | None:
    """Return the operands of initial states, none where these are zeros; None where they are of other codes."""
    names = dict(zip((H0, C0), node.inputs[H0:P], strict=False))
    zero = all(not name or ((c := find_const(editor, name)) and not c.real().any()) for name in names.values())
    if zero and _cells_of(node, editor, ends) is None:
        return []
    unit = QuantParams((CELL_UNITS[kind_of(node)],), (0,))
    kinds = {H0: out, C0: replace(out, dtype=DType.S16, quant=unit)} if node.op == "LSTM" else {
        H0: replace(out, dtype=DType.S16, quant=unit)}  # fmt: skip
    shape = _state_shape(node, editor)
    found = [_start(editor, names.get(i, ""), replace(kind, shape=shape)) for i, kind in kinds.items()]
    return None if None in found else [start for start in found if start is not None]


def _state_shape(node: Node, editor: GraphEditor) -> tuple[int, ...]:
    (_, batch, _), (dirs, _, hidden) = (editor.types[node.inputs[i]].shape for i in (X, R))
    return dirs, batch, hidden


def _start(editor: GraphEditor, name: str, kind: TensorType) -> _Start | None:
    """Return the codes of an initial state, zeros without a name; None where it has others."""
    operand = find_const(editor, name) if name else None
    if name and operand is None:
        codes = dequantized_from(editor, name)
        same = codes is not None and (editor.types[codes].dtype, editor.types[codes].quant) == (kind.dtype, kind.quant)
        return codes if same else None
    assert kind.quant is not None
    real = np.zeros(kind.shape, np.float32) if operand is None else operand.real()
    return quantize(real, kind.quant, kind.dtype), kind


def _rows(editor: GraphEditor, name: str, gates: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Return int8 weights[D, G H, K] and the scales[D, G H] of their rows."""
    operand = find_const(editor, name)
    if operand is None or operand.type.dtype is not DType.S8 or operand.type.quant is None:
        return None
    quant, (dirs, rows, _) = operand.type.quant, operand.array.shape
    if quant.axis not in (None, 1) or any(quant.zero_point) or rows % gates:
        return None
    return operand.array, np.broadcast_to(np.asarray(quant.scale, np.float32), (dirs, rows))


_Part = tuple[QuantParams, np.ndarray, np.ndarray]
"""Quantisation of the codes, weights, scales of their rows."""


def _biases(editor: GraphEditor, node: Node, own: _Part, past: _Part) -> np.ndarray | None:
    """Return bias[D, 2, G H] of the sums over x and over h; None where they do not fit."""
    dirs, rows, hidden = past[1].shape
    name = node.inputs[B] if len(node.inputs) > B else ""
    operand = find_const(editor, name) if name else None
    if name and operand is None:
        return None
    given = (
        operand.real().astype(np.float64).reshape(dirs, 2, rows) if operand is not None else np.zeros((dirs, 2, rows))
    )
    apart = 2 * hidden if node.attrs.get("linear_before_reset") else rows  # rows whose bias of h is part of m
    real = [given[:, 0].copy(), given[:, 1].copy()]
    real[0][:, :apart] += real[1][:, :apart]
    real[1][:, :apart] = 0
    found = [_bias_codes(part, values) for part, values in zip((own, past), real, strict=True)]
    return None if any(b is None for b in found) else np.stack([b for b in found if b is not None], axis=1)


def _bias_codes(part: _Part, real: np.ndarray) -> np.ndarray | None:
    """Return biases in units of the sums, less what the zero point adds; None where they do not fit."""
    codes_of, weights, scale = part
    codes = np.rint(real / (np.float64(codes_of.scale[0]) * scale.astype(np.float64)))
    if np.abs(codes).max(initial=0) > _LARGEST_BIAS:
        return None
    return np.asarray(codes - codes_of.zero_point[0] * weights.astype(np.int64).sum(axis=2)).astype(np.int32)


def _replace(node: Node, editor: GraphEditor, ends: dict[int, Node], inputs: list[str], out: TensorType) -> None:
    """Put the layer in the place of the node and of what quantises its results."""
    cells = _cells_of(node, editor, ends)
    names = {index: end.outputs[0] for index, end in ends.items()}
    for end in ends.values():
        editor.remove(end)
    dirs, batch, hidden = shape = _state_shape(node, editor)
    whole = TensorType((editor.types[inputs[0]].shape[0], dirs, batch, hidden), out.dtype, out.quant)
    y = names.get(_Y) or editor.add_value(f"{node.name}.y", whole)
    reverse = int(node.str_("direction") == "reverse")
    attrs: dict[str, AttrValue] = {"reverse": reverse}
    if node.op == "GRU":
        attrs["linear_before_reset"] = node.int_("linear_before_reset")
    outputs = [y]
    if len(inputs) > len(ROLES):
        kind = TensorType(shape, DType.S16, QuantParams((CELL_UNITS[kind_of(node)],), (0,)))
        outputs.append(names[cells] if cells is not None else editor.add_value(f"{node.name}.cells", kind))
    editor.update(node, op=_CODED[node.op], inputs=tuple(inputs), outputs=tuple(outputs), attrs=attrs)
    if _Y_H in names and cells != _Y_H:
        _add_last(node, editor, y, names[_Y_H], reverse)


def _add_last(node: Node, editor: GraphEditor, y: str, last: str, reverse: int) -> None:
    """Cut the last state of each direction out of all steps[T, D, B, H]."""
    kind = editor.types[y]
    steps, dirs, batch, hidden = kind.shape
    parts = []
    for d in range(dirs):
        at = 0 if d or reverse else steps - 1
        cut = {"starts": (at, d), "ends": (at + 1, d + 1), "axes": (0, 1), "steps": (1, 1)}
        parts.append(editor.add_value(f"{node.name}.last", TensorType((1, 1, batch, hidden), kind.dtype, kind.quant)))
        editor.add_node("Slice", (y,), (parts[-1],), cut, origin=node.origin)
    both = parts[0]
    if dirs > 1:
        both = editor.add_value(f"{node.name}.lasts", TensorType((1, dirs, batch, hidden), kind.dtype, kind.quant))
        editor.add_node("Concat", tuple(parts), (both,), {"axis": 1}, origin=node.origin)
    editor.add_node("Reshape", (both,), (last,), {"shape": (dirs, batch, hidden)}, origin=node.origin)
