"""The model's edge: other element types or an interleaved layout for inputs and outputs.

`io_type` "int8" takes the QuantizeLinear at a float input, or the DequantizeLinear at a float output, off the
network: firmware then passes the quantised bytes. "float" adds them to an integer edge. `io_layout` "nhwc"
gives rank-4 inputs and outputs the order of camera pixels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from glowc.errors import InputError
from glowc.graph.graph import Graph, GraphEditor
from glowc.graph.numerics import dequantize, quantize
from glowc.graph.types import DType, QuantParams, TensorType

TO_NHWC = (0, 2, 3, 1)
_TO_NCHW = (0, 3, 1, 2)


@dataclass(frozen=True, slots=True)
class Change:
    """How one tensor of the bundle differs from the exported one."""

    exported: TensorType
    bundle: TensorType
    nhwc: bool = False
    quant: QuantParams | None = None

    def to_bundle(self, array: np.ndarray) -> np.ndarray:
        """Return an exported array (one sample) as the bundle takes or gives it."""
        if self.quant is not None:
            integer = self.bundle.dtype if self.bundle.dtype.is_integer else self.exported.dtype
            array = (
                quantize(array, self.quant, integer) if self.exported.dtype.is_float else dequantize(array, self.quant)
            )
        return np.ascontiguousarray(array.transpose(TO_NHWC) if self.nhwc else array)

    def to_exported(self, array: np.ndarray) -> np.ndarray:
        """Return a bundle array (one sample) in the exported layout and type."""
        array = array.transpose(_TO_NCHW) if self.nhwc else array
        if self.quant is not None:
            integer = self.exported.dtype if self.exported.dtype.is_integer else self.bundle.dtype
            array = (
                dequantize(array, self.quant) if self.exported.dtype.is_float else quantize(array, self.quant, integer)
            )
        return np.ascontiguousarray(array)


@dataclass(frozen=True, slots=True)
class Edge:
    """The changes at the edge by tensor name; none for tensors that are as exported."""

    changes: Mapping[str, Change] = field(default_factory=dict)

    @property
    def exported(self) -> dict[str, tuple[tuple[int, ...], str]]:
        """Exported shape and bundle layout of changed tensors."""
        return {n: (c.exported.shape, "nhwc" if c.nhwc else "") for n, c in self.changes.items()}

    def to_bundle(self, name: str, array: np.ndarray) -> np.ndarray:
        """Return an exported array of tensor `name` as the bundle has it."""
        return self.changes[name].to_bundle(array) if name in self.changes else array

    def to_exported(self, name: str, array: np.ndarray) -> np.ndarray:
        """Return a bundle array of tensor `name` in the exported form."""
        return self.changes[name].to_exported(array) if name in self.changes else array


def change_edge(graph: Graph, io_type: str, io_layout: str) -> tuple[Graph, Edge]:
    """Return the graph with another edge, and what changed.

    Raises InputError when `io_type` "int8" meets a float tensor that is not quantised at the edge.
    """
    editor = GraphEditor(graph)
    changes: dict[str, Change] = {}
    problems: list[str] = []
    for name in dict.fromkeys((*graph.inputs, *graph.outputs)):  # an input may be an output, too
        exported = graph.types[name]
        quant = _change_type(editor, name, io_type, problems)
        nhwc = io_layout == "nhwc" and exported.rank == 4 and _change_layout(editor, name)
        if quant is not None or nhwc:
            changes[name] = Change(exported, editor.types[name], nhwc, quant)
    if problems:
        raise InputError(
            "--io-type int8 needs inputs and outputs that the model quantizes",
            details=problems,
            hint="leave --io-type out to keep the model's own types",
        )
    return editor.finish(), Edge(changes)


def _change_type(editor: GraphEditor, name: str, io_type: str, problems: list[str]) -> QuantParams | None:
    type_ = editor.types[name]
    if io_type == "int8" and type_.dtype is DType.F32:
        changed = _strip_input(editor, name) if name in editor.inputs else _strip_output(editor, name)
        if changed is None:
            kind = "input" if name in editor.inputs else "output"
            problems.append(f"{kind} {name!r} ({type_}) has no single quantization at the edge")
        return changed
    if io_type == "float" and type_.quant is not None and not type_.quant.per_axis:
        _wrap_input(editor, name) if name in editor.inputs else _wrap_output(editor, name)
        return type_.quant
    return None


def _strip_input(editor: GraphEditor, name: str) -> QuantParams | None:
    users = editor.users(name)
    types = {editor.types[u.outputs[0]] for u in users}
    if not users or any(u.op != "QuantizeLinear" for u in users) or len(types) != 1 or name in editor.outputs:
        return None
    new = next(iter(types))
    if new.quant is None or new.quant.per_axis:
        return None
    editor.types[name] = new
    for user in users:
        editor.bypass(user, name)
    return new.quant


def _strip_output(editor: GraphEditor, name: str) -> QuantParams | None:
    node = editor.producer(name)
    if node is None or node.op != "DequantizeLinear":
        return None
    source = node.inputs[0]
    new = editor.types[source]
    if new.quant is None or new.quant.per_axis or source in editor.inputs or source in editor.consts:
        return None
    editor.update(node, op="Identity", attrs={})
    editor.types[name] = new
    return new.quant


def _wrap_input(editor: GraphEditor, name: str) -> None:
    old = editor.types[name]
    inner = editor.add_value(f"{name}.quantized", old)
    editor.replace_uses(name, inner)
    editor.types[name] = TensorType(old.shape, DType.F32, None, old.layout)
    editor.add_node("QuantizeLinear", (name,), (inner,), {"dtype": old.dtype.value}, origin=(name,))


def _wrap_output(editor: GraphEditor, name: str) -> None:
    old = editor.types[name]
    inner = _rename_producer(editor, name, f"{name}.quantized", old)
    editor.types[name] = TensorType(old.shape, DType.F32, None, old.layout)
    editor.add_node("DequantizeLinear", (inner,), (name,), origin=(name,))


def _change_layout(editor: GraphEditor, name: str) -> bool:
    old = editor.types[name]
    shape = tuple(old.shape[i] for i in TO_NHWC)
    if name in editor.inputs:
        inner = editor.add_value(f"{name}.nchw", old)
        editor.replace_uses(name, inner)
        editor.types[name] = TensorType(shape, old.dtype, old.quant, "nhwc")
        editor.add_node("Transpose", (name,), (inner,), {"perm": _TO_NCHW}, origin=(name,))
        return True
    inner = _rename_producer(editor, name, f"{name}.nchw", old)
    editor.types[name] = TensorType(shape, old.dtype, old.quant, "nhwc")
    editor.add_node("Transpose", (inner,), (name,), {"perm": TO_NHWC}, origin=(name,))
    return True


def _rename_producer(editor: GraphEditor, name: str, base: str, type_: TensorType) -> str:
    inner = editor.add_value(base, type_)
    node = editor.producer(name)
    editor.replace_uses(name, inner)
    if node is not None:
        editor.update(node, outputs=tuple(inner if o == name else o for o in node.outputs))
    elif name in editor.consts:
        editor.consts[inner] = editor.consts.pop(name)
    return inner
