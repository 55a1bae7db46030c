"""move-qdq: DequantizeLinear sinks and QuantizeLinear climbs through operators that only move data."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from glowc.graph import numerics
from glowc.graph.graph import GraphEditor, Node
from glowc.graph.types import QuantParams, TensorType
from glowc.passes.axes import perm_of, permuted_quant
from glowc.passes.base import PassCtx, RewritePass
from glowc.passes.classes import moved_inputs
from glowc.passes.operands import dequantized_from


class MoveQdq(RewritePass):
    """Moving, picking and taking a maximum commute with both, because both are monotone and per element.

    What is moved are then integers; a Pad keeps its value as a real number in either form.
    """

    name: ClassVar[str] = "move-qdq"

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Rewrite one moving operator, or one QuantizeLinear after one."""
        if node.op == "QuantizeLinear":
            return _climb(node, editor)
        return bool(moved_inputs(node)) and _sink(node, editor)


def _sink(node: Node, editor: GraphEditor) -> bool:
    moved = moved_inputs(node)
    sources = [dequantized_from(editor, node.inputs[index]) for index in moved]
    types = [editor.types[name] for name in sources if name is not None]
    if len(types) != len(moved) or len({(t.dtype, t.quant) for t in types}) != 1:
        return False
    quant = _moved_quant(node, types[0])
    if quant is None or not _pads_exactly(node, types[0]):
        return False
    inputs = list(node.inputs)
    for index, source in zip(moved, sources, strict=True):
        inputs[index] = source or ""
    codes_of = {}
    for out in filter(None, node.outputs):  # "" is a part of a Split that nobody reads
        codes = replace(editor.types[out], dtype=types[0].dtype, quant=quant)
        codes_of[out] = editor.add_value(f"{out}.q", codes)
    editor.update(node, inputs=tuple(inputs), outputs=tuple(codes_of.get(out, "") for out in node.outputs))
    for out, name in codes_of.items():
        editor.add_node("DequantizeLinear", (name,), (out,), origin=node.origin)
    return True


def _moved_quant(node: Node, type_: TensorType) -> QuantParams | None:
    """Return the quantisation after `node`; None where per-axis parameters cannot follow."""
    if type_.quant is None or type_.quant.axis is None or node.op == "Identity":
        return type_.quant
    return permuted_quant(type_.quant, perm_of(node, type_.rank)) if node.op == "Transpose" else None


def _pads_exactly(node: Node, type_: TensorType) -> bool:
    """Say whether the value that a Pad inserts is one that its input's codes can express."""
    if node.op != "Pad" or node.str_("mode") != "constant":
        return True
    value = np.asarray([node.float_("value")], np.float32)
    quant = type_.quant
    if quant is None or len([name for name in node.inputs[1:] if name]):
        return False
    return bool(numerics.dequantize(numerics.quantize(value, quant, type_.dtype), quant)[0] == value[0])


def _climb(node: Node, editor: GraphEditor) -> bool:
    value, out = node.inputs[0], node.outputs[0]
    source = editor.producer(value)
    if source is None or editor.sole_user(value) is None or len(source.outputs) != 1:
        return False
    moved = moved_inputs(source)
    type_ = editor.types[out]
    if not moved or type_.quant is None or type_.quant.axis is not None:
        return False
    inputs = list(source.inputs)
    for index in moved:
        codes = replace(editor.types[inputs[index]], dtype=type_.dtype, quant=type_.quant)
        name = editor.add_value(f"{inputs[index]}.q", codes)
        editor.add_node("QuantizeLinear", (inputs[index],), (name,), {"dtype": type_.dtype.value}, origin=node.origin)
        inputs[index] = name
    editor.remove(node)
    editor.update(source, inputs=tuple(inputs), outputs=(out,))
    return True
