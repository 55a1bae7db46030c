"""Sequences and optionals: at import a sequence is a list of value names, and an optional its element or nothing.

Lengths and positions are known then, so nothing of them is left in the graph: SequenceMap is its body once per element.
Sources: ONNX SequenceConstruct-11, SequenceEmpty-11, SequenceInsert-11, SequenceErase-11, SequenceAt-11,
SequenceLength-11, SplitToSequence-24, ConcatFromSequence-11, SequenceMap-17, Optional-15, OptionalGetElement-18,
OptionalHasElement-18.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from glowc.frontend.builder import Builder
from glowc.frontend.control import Import, iteration
from glowc.frontend.normalize_shape import axis_of
from glowc.frontend.onnx_model import OnnxNode
from glowc.frontend.problems import NodeError

AXES = 13  # opset of Squeeze, Unsqueeze and Split with their axes or lengths as inputs
Opsets = Mapping[str, int]


def import_list(node: OnnxNode, b: Builder, opsets: Opsets, import_nodes: Import) -> bool:
    """Import a node about a sequence or an optional; False for any other node."""
    if node.domain:
        return False
    if node.op == "SequenceMap":
        _map(node, b, opsets, import_nodes)
    elif node.op in _MAKERS:
        b.lists[node.outputs[0]] = _MAKERS[node.op](node, b)
    elif node.op in _READERS:
        import_nodes(_READERS[node.op](node, b))
    elif node.op == "SplitToSequence":
        import_nodes(_split(node, b))
    elif node.op in ("Identity", "Optional", "OptionalGetElement"):
        return _same(node, b, import_nodes)
    else:
        return False
    return True


def named_outputs(name: str, b: Builder, import_node: Callable[[OnnxNode], None]) -> tuple[str, ...]:
    """Return the values of a graph output: of a sequence its elements, as NAME.0, NAME.1, ..."""
    if name not in b.lists:
        return (name,)
    made = tuple(b.fresh(f"{name}.{i}") for i in range(len(b.lists[name])))
    origin = OnnxNode("Identity", (), (), version=AXES, origin=name)
    pairs = zip(b.lists[name], made, strict=True)
    for value, out in pairs:
        import_node(origin.new("Identity", (value,), (out,)))
    return made


def _list(node: OnnxNode, b: Builder) -> tuple[str, ...]:
    name = node.input(0)
    if name not in b.lists:
        raise NodeError(
            f'"{name}" is no sequence', "a graph input cannot be one: give the model its elements as inputs"
        )
    return b.lists[name]


def _place(node: OnnxNode, b: Builder, index: int, count: int, last: int) -> int:
    """The position in input `index` (without it `last`), counted from the front."""
    if not node.input(index):
        return last
    at = int(b.need_value(node.inputs[index], "the position").reshape(-1)[0])
    if not -count <= at < count:
        raise NodeError(f"position {at} of {len(_list(node, b))} elements")
    return at % count


def _insert(node: OnnxNode, b: Builder) -> tuple[str, ...]:
    have = _list(node, b)
    at = _place(node, b, 2, len(have) + 1, len(have))
    return (*have[:at], *_tensors(node.inputs[1:2], b), *have[at:])


def _tensors(names: tuple[str, ...], b: Builder) -> tuple[str, ...]:
    """Return the names; an error when one is no tensor."""
    for name in names:
        b.type(name)
    return names


def _erase(node: OnnxNode, b: Builder) -> tuple[str, ...]:
    have = _list(node, b)
    at = _place(node, b, 1, len(have), len(have) - 1)
    return (*have[:at], *have[at + 1 :])


_MAKERS: Mapping[str, Callable[[OnnxNode, Builder], tuple[str, ...]]] = {
    "SequenceEmpty": lambda node, b: (), "SequenceConstruct": lambda node, b: _tensors(node.inputs, b),
    "SequenceInsert": _insert, "SequenceErase": _erase,
}  # fmt: skip


def _at(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    have = _list(node, b)
    return [node.new("Identity", (have[_place(node, b, 1, len(have), 0)],), node.outputs)]


def _length(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    return [node.new("Constant", (), node.outputs, value=np.asarray(len(_list(node, b)), np.int64))]


def _concat(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    have, axis = _list(node, b), node.int_("axis", 0)
    if not have:
        raise NodeError("the sequence has no elements")
    if not node.int_("new_axis", 0):
        return [node.new("Concat", have, node.outputs, axis=axis)]
    where, wide = b.add_const(f"{node.origin}.axis", np.asarray([axis], np.int64)), []
    for name in have:
        wide.append(replace(node.new("Unsqueeze", (name, where), (b.fresh(f"{name}.wide"),)), version=AXES))
    return [*wide, node.new("Concat", (n.outputs[0] for n in wide), node.outputs, axis=axis)]


def _has_element(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    has = bool(node.input(0)) and node.inputs[0] not in b.absent
    return [node.new("Constant", (), node.outputs, value=np.asarray(has))]


_READERS: Mapping[str, Callable[[OnnxNode, Builder], list[OnnxNode]]] = {
    "SequenceAt": _at, "SequenceLength": _length, "ConcatFromSequence": _concat, "OptionalHasElement": _has_element,
}  # fmt: skip


def _same(node: OnnxNode, b: Builder, import_nodes: Import) -> bool:
    """The output is what the input is; False for an Identity of a tensor."""
    source, out = node.input(0), node.outputs[0]
    if source in b.lists:
        b.lists[out] = b.lists[source]
    elif source and source not in b.absent:
        if node.op == "Identity":
            return False
        import_nodes([node.new("Identity", (source,), (out,))])
    elif node.op == "OptionalGetElement":
        raise NodeError("the optional has no element")
    else:
        b.absent.add(out)
    return True


def _split(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """Pieces of the given lengths, or of one length (the last may be shorter), or of 1, then without the axis."""
    source, out = b.type(node.inputs[0]), node.outputs[0]
    axis = axis_of(node.int_("axis", 0), source.rank)
    length = source.shape[axis]
    given = b.need_value(node.inputs[1], "the lengths") if node.input(1) else np.asarray(1)
    step = int(given.reshape(-1)[0]) if given.ndim == 0 else 0
    if given.ndim == 0 and step < 1:
        raise NodeError(f"pieces of length {step}")
    parts = [min(step, length - i) for i in range(0, length, step)] if step else [int(n) for n in given]
    if sum(parts) != length:
        raise NodeError(f"pieces of {parts} of {source} along axis {axis}")
    names = tuple(b.fresh(f"{out}.part.{i}") for i in range(len(parts)))
    lengths = b.add_const(f"{out}.lengths", np.asarray(parts, np.int64))
    nodes = [replace(node.new("Split", (node.inputs[0], lengths), names, axis=axis), version=AXES)]
    if not node.input(1) and not node.int_("keepdims", 1):
        where = b.add_const(f"{out}.axis", np.asarray([axis], np.int64))
        flat = tuple(b.fresh(f"{name}.flat") for name in names)
        pairs = zip(names, flat, strict=True)
        nodes += [replace(node.new("Squeeze", (name, where), (new,)), version=AXES) for name, new in pairs]
        names = flat
    b.lists[out] = names
    return nodes


def _map(node: OnnxNode, b: Builder, opsets: Opsets, import_nodes: Import) -> None:
    """The body once per element; a tensor is the same for all."""
    first = _list(node, b)
    made: list[list[str]] = [[] for _ in node.outputs]
    for step in range(len(first)):
        items = []
        for name in node.inputs:
            if len(b.lists.get(name, first)) != len(first):
                raise NodeError(f"{len(b.lists[name])} elements and {len(first)}")
            items.append(b.lists[name][step] if name in b.lists else name)
        inner, outs = iteration(node, b, opsets, node.attrs["body"], items, step)
        import_nodes(inner)
        for kept, value in zip(made, outs, strict=True):
            kept.append(value)
    b.lists.update({out: tuple(kept) for out, kept in zip(node.outputs, made, strict=True)})
