"""Caches that grow: a state that new rows are joined to, and which becomes the result, keeps its rows in place.

`--state past=present`, where present is Concat(past, new) along an axis, is one buffer with the rows of `present`. The
model was read for the longest past, so that buffer holds the most rows there can be. Concat becomes Append at a
position which is a state too, and softmax(q k^T) v on its rows becomes Attend, which looks at no row after the
position. Which elements of a cache an operand has is found by moving their numbers: the nodes between may move and
repeat them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from glowc.errors import GroupError
from glowc.graph.graph import Graph, GraphEditor, Node, State
from glowc.graph.types import DType, TensorType
from glowc.ops.strided import axis_of

_HIDDEN = -1e4  # what a mask adds at least to hide a row
_POSITION = TensorType((1,), DType.S32)
_SEEN = "the rows after the position hold nothing; glowc knows that of softmax(q k^T) v, with masks that are constants"
_MASK_HINT = "--set-input MASK=1 makes a constant of a mask that shows all rows"


@dataclass(frozen=True, slots=True)
class _Growth:
    """A cache: the Concat, the value of all rows, the axis, the rows there can be, and those that come."""

    join: Node
    axis: int
    most: int
    fresh: int


def growing(graph: Graph, pairs: Mapping[str, str]) -> Graph:
    """Return the graph in which inputs (keys) that outputs join new rows to have the type of these outputs.

    Raises GroupError with every reader of a cache that needs to know how many rows it has.
    """
    found = {name: growth for name, out in pairs.items() if (growth := _growth(graph, name, out)) is not None}
    if not found:
        return graph
    positions = dict(zip(sorted({(g.most, g.fresh) for g in found.values()}), _names(graph), strict=False))
    editor = GraphEditor(replace(graph, states=(*graph.states, *(_counter(name) for name in positions.values()))))
    for (most, fresh), name in positions.items():
        _count(editor, name, most, fresh)
    for name, growth in found.items():
        _append(editor, name, growth, positions[growth.most, growth.fresh])
    caches = {g.join.outputs[0]: positions[g.most, g.fresh] for g in found.values()}
    for node in list(editor.each("Softmax")):
        _fuse(editor, node, caches)
    _check_readers(editor, caches, set(pairs.values()))
    return editor.finish()


def _names(graph: Graph) -> Iterator[str]:
    """Yield names for counters."""
    index = 0
    while True:
        name = f"position{index or ''}"
        if name not in graph.types and f"{name}.next" not in graph.types:
            yield name
        index += 1


def _counter(name: str) -> State:
    return State(name, f"{name}.next", np.zeros(1, np.int32))


def _growth(graph: Graph, name: str, out: str) -> _Growth | None:
    """Return what is known of a pair whose output joins new rows to its input."""
    producers = graph.producers()
    join = producers.get(out)
    while join is not None and join.op == "Identity":
        join = producers.get(join.inputs[0])
    if name not in graph.inputs or join is None or join.op != "Concat":
        return None
    if join.inputs[0] != name or len(join.inputs) != 2:
        return None
    whole, new = graph.types[join.outputs[0]], graph.types[join.inputs[1]]
    axis = axis_of(join.int_("axis"), whole.rank)
    return _Growth(join, axis, whole.shape[axis], new.shape[axis])


def _count(editor: GraphEditor, name: str, most: int, fresh: int) -> None:
    """Add the nodes that count rows up to the most there can be."""
    editor.types |= {name: _POSITION, f"{name}.next": _POSITION}
    more, limit = (editor.add_const(f"{name}.{n}", np.full(1, n, np.int32)) for n in (fresh, most))
    after = editor.add_value(f"{name}.after", _POSITION)
    editor.add_node("Add", (name, more), (after,), origin=(name,))
    editor.add_node("Min", (after, limit), (f"{name}.next",), origin=(name,))


def _append(editor: GraphEditor, name: str, growth: _Growth, position: str) -> None:
    join = growth.join
    editor.types[name] = editor.types[join.outputs[0]]
    editor.update(join, op="Append", inputs=(*join.inputs, position), attrs={"axis": growth.axis})


@dataclass(frozen=True, slots=True)
class _Rows:
    """An operand made of a cache: which of its elements it has, a factor, and the cache."""

    index: np.ndarray
    factor: float
    cache: str


def _rows(editor: GraphEditor, value: str, caches: Mapping[str, str]) -> _Rows | None:
    """Return the elements of a cache that an operand of a product has, None where it has something else."""
    if value in caches:
        shape = editor.types[value].shape
        return _Rows(np.arange(math.prod(shape)).reshape(shape), 1.0, value)
    node = editor.producer(value)
    if node is None:
        return None
    source, factor = _scaled(editor, node)
    rows = _rows(editor, source, caches) if source else None
    if rows is None:
        return None
    moved = _moved(node, rows.index, editor.types[value].shape)
    return None if moved is None else replace(rows, index=moved, factor=rows.factor * factor)


def _moved(node: Node, index: np.ndarray, shape: tuple[int, ...]) -> np.ndarray | None:
    if node.op == "Transpose":
        return index.transpose(node.ints("perm"))
    return np.broadcast_to(index, shape) if node.op == "Expand" else index.reshape(shape)


def _scaled(editor: GraphEditor, node: Node) -> tuple[str, float]:
    """Return the operand that a node only moves, repeats or multiplies by a number, and the number; else ""."""
    if node.op in ("Identity", "Cast", "Reshape", "Transpose", "Expand", "AssignQuant"):
        same = node.op != "Cast" or editor.types[node.inputs[0]].dtype == editor.types[node.outputs[0]].dtype
        return (node.inputs[0], 1.0) if same else ("", 1.0)
    if node.op == "DequantizeLinear":
        quant = editor.types[node.inputs[0]].quant
        plain = quant is not None and len(quant.scale) == 1 and quant.zero_point == (0,)
        return (node.inputs[0], quant.scale[0]) if plain and quant is not None else ("", 1.0)
    if node.op == "Where" and node.inputs[0] in editor.consts:
        taken = np.unique(editor.consts[node.inputs[0]])
        return (node.inputs[1 if taken[0] else 2], 1.0) if taken.size == 1 else ("", 1.0)
    if node.op in ("Mul", "Div"):
        for x, other in (node.inputs, node.inputs[::-1]):
            number = editor.consts.get(other)
            if number is not None and number.size == 1 and (node.op == "Mul" or other == node.inputs[1]):
                return x, float(number.reshape(-1)[0] if node.op == "Mul" else 1 / number.reshape(-1)[0])
    return "", 1.0


@dataclass(slots=True)
class _Scores:
    """The product of queries and keys that reaches a softmax, a factor, and the masks on the way."""

    product: Node
    factor: float
    masks: list[np.ndarray]


def _scores(editor: GraphEditor, value: str) -> _Scores | None:
    """Return the product, None where something else reaches the softmax."""
    factor, masks = 1.0, list[np.ndarray]()
    while (node := editor.producer(value)) is not None and node.op != "MatMul":
        hidden = _mask(editor, node)
        if hidden is not None:
            value, mask = hidden
            masks.append(mask)
            continue
        value, more = _scaled(editor, node)
        if not value or node.op in ("Transpose", "Expand", "Reshape") or (masks and more < 0):
            return None
        factor *= more
    return None if node is None else _Scores(node, factor, masks)


def _mask(editor: GraphEditor, node: Node) -> tuple[str, np.ndarray] | None:
    """Return what a constant mask is put on, and where it hides: an Add of very negative numbers, or a Where."""
    if node.op == "Add":
        for x, other in (node.inputs, node.inputs[::-1]):
            if other in editor.consts:
                added = editor.consts[other]
                return (x, added < 0) if ((added == 0) | (added <= _HIDDEN)).all() else None
    if node.op == "Where" and node.inputs[0] in editor.consts:
        _, yes, no = node.inputs
        for kept, other, hides in ((yes, no, False), (no, yes, True)):
            number = editor.consts.get(other)
            if number is not None and number.size == 1 and float(number.reshape(-1)[0]) <= _HIDDEN:
                return kept, editor.consts[node.inputs[0]] == hides
    return None


def _fuse(editor: GraphEditor, softmax: Node, caches: Mapping[str, str]) -> None:
    """Put Attend in the place of the product that a softmax of scores of a cache goes into."""
    scores, mix = _scores(editor, softmax.inputs[0]), _user(editor, softmax.outputs[0])
    if scores is None or mix is None or mix.op != "MatMul":
        return
    k, v = (_rows(editor, name, caches) for name in (scores.product.inputs[1], mix.inputs[1]))
    shape, kind = editor.types[scores.product.outputs[0]].shape, editor.types[mix.outputs[0]]
    q, factor = scores.product.inputs[0], scores.factor
    if k is None or v is None or len(shape) < 2 or editor.types[q].shape[:-1] != shape[:-1]:
        return
    if softmax.int_("axis") % len(shape) != len(shape) - 1 or caches[k.cache] != caches[v.cache]:
        return
    walks = [_walk(rows.index, shape[:-2]) for rows in (replace(k, index=k.index.swapaxes(-1, -2)), v)]
    causal = _causal(scores.masks, shape)
    groups = {walk[0] for walk in walks if walk is not None}
    if None in walks or causal is None or len(groups) != 1:
        return
    (group,), steps = groups, [walk[1:] for walk in walks if walk is not None]
    attrs = {
        "group": group, "rows": shape[-1], "value": kind.shape[-1], "causal": int(causal), "k_steps": steps[0],
        "v_steps": steps[1], "scale": factor * k.factor, "v_scale": v.factor,
    }  # fmt: skip
    editor.update(mix, op="Attend", inputs=(q, k.cache, v.cache, caches[k.cache]), attrs=attrs)


def _user(editor: GraphEditor, value: str) -> Node | None:
    """Return the node that a value goes to, past those that leave it as it is."""
    user = editor.sole_user(value)
    while user is not None and user.op in ("Identity", "Cast", "Where") and _scaled(editor, user)[0] == value:
        value = user.outputs[0]
        user = editor.sole_user(value)
    return user if user is not None and user.inputs[0] == value else None


def _walk(index: np.ndarray, lead: tuple[int, ...]) -> tuple[int, int, int] | None:
    """Return heads of a group, and the steps of groups and of rows, of elements [heads, rows, n] of a cache."""
    at = np.broadcast_to(index, (*lead, *index.shape[-2:])).reshape(-1, *index.shape[-2:])
    heads, rows, n = at.shape
    firsts = at[:, 0, 0]
    group = heads // np.unique(firsts).size
    head = int(firsts[group] - firsts[0]) if heads > group else rows * n
    row = int(at[0, 1, 0] - at[0, 0, 0]) if rows > 1 else n
    want = np.arange(heads)[:, None, None] // group * head + np.arange(rows)[:, None] * row + np.arange(n)
    return (group, head, row) if np.array_equal(at, want) else None


def _causal(masks: list[np.ndarray], shape: tuple[int, ...]) -> bool | None:
    """Say whether masks hide from each query the rows that come after it; None where they hide others."""
    queries, rows = shape[-2:]
    later = np.arange(rows) > np.arange(rows - queries, rows)[:, None]
    hidden = np.zeros(shape, bool)
    for mask in masks:
        hidden |= np.broadcast_to(mask, shape)
    if not hidden.any():
        return False
    return True if np.array_equal(hidden, np.broadcast_to(later, shape)) else None


def _check_readers(editor: GraphEditor, caches: Mapping[str, str], outs: set[str]) -> None:
    """Raise GroupError for every node that the rows of a cache reach and that does not know how many there are."""
    needed, stack = set[str](), list(editor.outputs)
    while stack:
        node = editor.producer(stack.pop())
        if node is not None and node.name not in needed:
            needed.add(node.name)
            stack.extend(name for name in node.inputs if name)
    wrong = [
        f'{node.label}: reads all rows of "{cache}"'
        for cache in caches
        for node in editor.users(cache)
        if node.name in needed and node.op != "Attend" and not outs & set(node.outputs)
    ]
    if wrong:
        raise GroupError(
            "a state that grows is read by what needs to know its rows", details=[*wrong, _SEEN], hint=_MASK_HINT
        )
