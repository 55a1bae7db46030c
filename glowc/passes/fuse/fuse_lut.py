"""fuse-lut: elementwise operators whose only variable is one int8 tensor become a table of 256 codes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np

from glowc.graph.graph import Graph, GraphEditor, Node
from glowc.graph.numerics import exact_f32
from glowc.graph.types import DType, TensorType
from glowc.ops.base import Call, OpError
from glowc.ops.registry import get_op
from glowc.ops.unary import OPS as UNARY_OPS
from glowc.ops.unary import function_of, parameters, real_function
from glowc.ops.unary_table import FUNCTIONS
from glowc.passes.base import GraphPass, PassCtx

_CODES = frozenset(("QuantizeLinear", "DequantizeLinear", "Requantize", "Lut", "Identity"))
_FUNCTIONS = frozenset(op.name for op in UNARY_OPS) - {"Not"}
_ARITHMETIC = frozenset(("Add", "Sub", "Mul", "Div", "Min", "Max", "Pow", "PRelu"))
Accepts = Callable[[str, GraphEditor], bool]


class FuseLut(GraphPass):
    """Whatever stands between the int8 tensor and the int8 result - float islands such as a division by a constant,
    rounding to codes in the middle, two branches that meet again - is evaluated for the 256 codes by the operators' own
    references, so that every intermediate rounding is kept. A single integer operator stays what it is.
    """

    name: ClassVar[str] = "fuse-lut"

    def run(self, graph: Graph, ctx: PassCtx) -> Graph:
        """Replace the largest such groups, from the end of the graph on."""
        editor = GraphEditor(graph)
        order = {node.name: index for index, node in enumerate(graph.nodes)}
        for node in reversed(graph.nodes):
            out = node.outputs[0]  # "" when nobody reads the first output
            if out and node.name in editor.nodes and is_int8(editor.types[out]):
                _replace(node, editor, order)
        return editor.finish()


def _replace(node: Node, editor: GraphEditor, order: Mapping[str, int]) -> None:
    found = tuple(groups(node, editor, order, _number))
    if not found:
        return
    root, group = found[-1]
    table = results(root, group, editor, np.arange(-128, 128, dtype=np.int8))
    if table is None:
        return
    name = editor.add_const(f"{node.outputs[0]}.lut", np.broadcast_to(table, (256,)).astype(np.int8))
    put(node, group, editor, "Lut", (root, name), {})


def put(
    node: Node, group: list[Node], editor: GraphEditor, op: str, inputs: tuple[str, ...], attrs: Mapping[str, int]
) -> None:
    """Let `op` stand for a group that ends with `node`."""
    origin = tuple(dict.fromkeys(o for member in group for o in member.origin))
    editor.update(node, op=op, inputs=inputs, attrs=dict(attrs), origin=origin)
    for member in reversed(group[:-1]):
        if not any(editor.users(out) or out in editor.outputs for out in member.outputs):
            editor.remove(member)


def groups(
    node: Node, editor: GraphEditor, order: Mapping[str, int], accepts: Accepts
) -> Iterator[tuple[str, list[Node]]]:
    """Yield the int8 tensors that `node` is a function of, with the nodes in between, in order; the nearest first.

    `accepts` says which constants may take part.
    """
    group: dict[str, Node] = {}
    frontier = {node.outputs[0]}
    while frontier:
        latest = max(frontier, key=lambda name: _position(editor.producer(name), order))
        source = editor.producer(latest)
        if source is None or source.name not in order or not _elementwise(source, editor, accepts):
            return
        group[source.name] = source
        frontier.discard(latest)
        frontier.update(name for name in source.inputs if name and name not in editor.consts)
        members = sorted(group.values(), key=lambda n: order[n.name])
        if len(frontier) == 1 and len(group) > 1 and _closed(members, node, editor):
            (root,) = frontier
            type_, out = editor.types[root], editor.types[node.outputs[0]]
            if is_int8(type_) and type_.shape == out.shape:
                yield root, members


def _position(node: Node | None, order: Mapping[str, int]) -> int:
    return -1 if node is None else order.get(node.name, -1)


def _elementwise(node: Node, editor: GraphEditor, accepts: Accepts) -> bool:
    if node.op not in _CODES | _ARITHMETIC | _FUNCTIONS or len(node.outputs) != 1:
        return False
    data = node.inputs[:1] if node.op == "Lut" else node.inputs
    values = [name for name in (*data, *node.outputs) if name]
    return all(accepts(name, editor) if name in editor.consts else _known(editor.types[name]) for name in values)


def _known(type_: TensorType) -> bool:
    return type_.dtype == DType.F32 or is_int8(type_)


def is_int8(type_: TensorType) -> bool:
    """Say whether a type is int8 codes with one scale and zero point."""
    return type_.dtype == DType.S8 and type_.quant is not None and not type_.quant.per_axis


def _number(name: str, editor: GraphEditor) -> bool:
    """Say whether a constant is one number; one number per channel is no function of the code alone."""
    quant = editor.types[name].quant
    return editor.consts[name].size == 1 and not (quant is not None and quant.per_axis)


def _closed(group: Iterable[Node], last: Node, editor: GraphEditor) -> bool:
    """Say whether nothing outside reads what is inside; a DequantizeLinear may serve others too."""
    names = {member.name for member in group}
    for member in group:
        out = member.outputs[0]
        if member.name == last.name or member.op == "DequantizeLinear":
            continue
        if out in editor.outputs or any(user.name not in names for user in editor.users(out)):
            return False
    return True


def results(root: str, group: Iterable[Node], editor: GraphEditor, x: np.ndarray) -> np.ndarray | None:
    """Evaluate the group for codes `x` of `root`; None when an operator has no such form."""
    values: dict[str, np.ndarray] = {root: x}
    out = root
    for node in group:
        arrays = tuple(values[name] if name in values else _const_array(name, editor) for name in node.inputs)
        out = node.outputs[0]
        try:
            values[out] = _evaluate(node, arrays, editor)
        except OpError:
            return None
    return values[out]


def _const_array(name: str, editor: GraphEditor) -> np.ndarray | None:
    if not name:
        return None
    array = editor.consts[name]
    return array.reshape(()) if array.size == 1 else array.reshape(-1)


def _evaluate(node: Node, arrays: tuple[np.ndarray | None, ...], editor: GraphEditor) -> np.ndarray:
    """Return the results of codes: functions in float64, rounded once; everything else by the operator's reference."""
    first, out = arrays[0], editor.types[node.outputs[0]]
    if node.op in _FUNCTIONS and first is not None and out.dtype.is_float:
        name = function_of(node, node.op)
        return exact_f32(real_function(name, *parameters(node, FUNCTIONS[name])), first)
    if node.op == "Pow" and out.dtype.is_float and all(a is not None for a in arrays):
        with np.errstate(all="ignore"):
            return np.asarray(np.power(*(np.asarray(a, np.float64) for a in arrays))).astype(np.float32)
    types = tuple(
        replace(editor.types[name], shape=array.shape, layout="") if array is not None else None
        for name, array in zip(node.inputs, arrays, strict=True)
    )
    data = arrays[:1] if node.op == "Lut" else arrays
    shape = np.broadcast_shapes(*(array.shape for array in data if array is not None))
    (y,) = get_op(node.op).reference(Call(node, arrays, types, (replace(out, shape=shape, layout=""),)))
    return np.broadcast_to(y, shape)
