"""u8-to-s8: quantised unsigned integers become signed, so that kernels know one kind of each width."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from glowc.graph.graph import Graph, GraphEditor, Node
from glowc.graph.types import DType, TensorType
from glowc.passes.base import GraphPass, PassCtx

_SIGNED = {DType.U8: DType.S8, DType.U16: DType.S16}

_READ_BITS = frozenset(("AssignQuant", "Cast", "FlipSign", "BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr"))
"""Operators to which a typed value is a plain number: they keep the unsigned one."""


_ROUNDED_WITH_ZERO = frozenset(("Add", "Mul", "AveragePool"))
"""Operators that add the zero point before they round."""

_OF_ONE_TYPE = frozenset(("Add", "Mul", "AveragePool", "Softmax"))
"""Operators that onnxruntime computes in float32 where operands and result are not all of one type."""


class U8ToS8(GraphPass):
    """An exact bijection: code - 128 with zero point - 128 is the same real number.

    Graph inputs and outputs keep their kind, with a FlipSign after or in front of them.
    """

    name: ClassVar[str] = "u8-to-s8"

    def run(self, graph: Graph, ctx: PassCtx) -> Graph:
        """Convert every quantised u8 and u16 value."""
        names = [name for name, type_ in graph.types.items() if type_.quantized and type_.dtype in _SIGNED]
        if not names:
            return graph
        editor = GraphEditor(graph)
        for node in editor.each("QuantizeLinear"):
            _mark_kinds(node, editor)
        for node in editor.each("Resize"):
            if node.int_("truncate") and editor.types[node.outputs[0]].dtype == DType.U8:
                editor.update(node, attrs={**node.attrs, "unsigned": 1})
        for name in names:
            source = editor.producer(name)
            if source is not None and source.op == "FlipSign":
                _reread(editor, _other_readers(editor, name), name, source.inputs[0])
                continue
            if name in editor.inputs or (source is not None and source.op in _READ_BITS):
                _flip_behind(editor, name)
            else:
                _convert(editor, name)
        for node in editor.each("QuantizeLinear", "Requantize"):
            kind = editor.types[node.outputs[0]].dtype.value
            if node.attrs.get("dtype", kind if node.op == "Requantize" else "u8") != kind:
                editor.update(node, attrs={"dtype": kind})
        return editor.finish()


def _mark_kinds(node: Node, editor: GraphEditor) -> None:
    """Let an operator remember that its codes are uint8, or mixed, where onnxruntime's last rounding depends on it."""
    source, kind = editor.producer(node.inputs[0]), editor.types[node.outputs[0]].dtype
    if source is None:
        return
    if source.op in _OF_ONE_TYPE and _kinds(source, editor) - {kind}:
        editor.update(source, attrs={**source.attrs, "mixed": 1})
    elif source.op in _ROUNDED_WITH_ZERO and kind == DType.U8:
        editor.update(source, attrs={**source.attrs, "unsigned": 1})


def _kinds(node: Node, editor: GraphEditor) -> set[DType]:
    """Return the types of the codes that the operands of an operator are dequantised from."""
    sources = (editor.producer(name) for name in node.inputs)
    return {editor.types[s.inputs[0]].dtype for s in sources if s is not None and s.op == "DequantizeLinear"}


def signed_type(type_: TensorType) -> TensorType:
    """Return the signed type of the same real numbers."""
    quant = type_.quant
    if quant is None or type_.dtype not in _SIGNED:
        return type_
    half = 1 << (type_.dtype.bits - 1)
    shifted = replace(quant, zero_point=tuple(z - half for z in quant.zero_point))
    return replace(type_, dtype=_SIGNED[type_.dtype], quant=shifted)


def _other_readers(editor: GraphEditor, name: str) -> list[Node]:
    return [node for node in editor.users(name) if node.op not in _READ_BITS]


def _reread(editor: GraphEditor, readers: list[Node], old: str, new: str) -> None:
    for reader in readers:
        editor.update(reader, inputs=tuple(new if name == old else name for name in reader.inputs))


def _flip_behind(editor: GraphEditor, name: str) -> None:
    """Keep `name` unsigned and let its readers read a signed copy."""
    readers = _other_readers(editor, name)
    if not readers:
        return
    signed = editor.add_value(f"{name}.s", signed_type(editor.types[name]))
    _reread(editor, readers, name, signed)
    editor.add_node("FlipSign", (name,), (signed,))


def _convert(editor: GraphEditor, name: str) -> None:
    """Make `name` signed; a graph output and readers of bits get the unsigned value from a FlipSign."""
    type_ = editor.types[name]
    if name in editor.consts:
        _convert_const(editor, name)
        return
    plain = [node for node in editor.users(name) if node.op in _READ_BITS]
    if name not in editor.outputs and not plain:
        editor.types[name] = signed_type(type_)
        editor.changed = True
        return
    signed = editor.add_value(f"{name}.s", signed_type(type_))
    _reread(editor, _other_readers(editor, name), name, signed)
    source = editor.producer(name)
    assert source is not None
    editor.update(source, outputs=tuple(signed if out == name else out for out in source.outputs))
    editor.add_node("FlipSign", (signed,), (name,))


def _convert_const(editor: GraphEditor, name: str) -> None:
    type_ = editor.types[name]
    array = editor.consts[name]
    half = array.dtype.type(1 << (type_.dtype.bits - 1))
    flipped = (array ^ half).view(np.dtype(f"int{type_.dtype.bits}"))
    readers = _other_readers(editor, name)
    _reread(editor, readers, name, editor.add_const(f"{name}.s", flipped, signed_type(type_)))
