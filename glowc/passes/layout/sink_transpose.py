"""sink-transpose: Transposes move down through other operators until a pair meets and cancels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar

from glowc.graph.attrs import AttrValue
from glowc.graph.graph import GraphEditor, Node
from glowc.ops.integer import is_tflite
from glowc.ops.reduce import axes_of
from glowc.passes.axes import (
    TO_NCHW,
    Perm,
    add_transpose,
    compose,
    inverse,
    is_identity,
    moves_only_units,
    perm_of,
    permuted,
)
from glowc.passes.base import PassCtx, RewritePass
from glowc.passes.classes import ALONG_AXIS, NARY, REDUCE, UNARY

Attrs = dict[str, AttrValue]


class SinkTranspose(RewritePass):
    """One direction only, so it ends. An operator with several inputs lets a Transpose through when the other
    inputs bring the same one, are constant, or need only a Reshape; or when its readers undo it anyway.
    """

    name: ClassVar[str] = "sink-transpose"

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Merge a Transpose with the one in front of it, or let one pass `node`."""
        if node.op == "Transpose":
            return _merge(node, editor)
        for ops, rule in _RULES:
            if node.op in ops:
                return rule(node, editor)
        return False


def _transpose_of(editor: GraphEditor, value: str) -> tuple[str, Perm] | None:
    """Return what a Transpose that computes `value` reads, and its permutation."""
    node = editor.producer(value) if value else None
    if node is None or node.op != "Transpose":
        return None
    return node.inputs[0], perm_of(node, editor.types[value].rank)


def _merge(node: Node, editor: GraphEditor) -> bool:
    perm = perm_of(node, editor.types[node.outputs[0]].rank)
    before = _transpose_of(editor, node.inputs[0])
    if before is None:
        return is_identity(perm) and editor.bypass(node, node.inputs[0])
    source, first = before
    total = compose(first, perm)
    if is_identity(total) and editor.bypass(node, source):
        return True
    editor.update(node, inputs=(source,), attrs={"perm": total})
    return True


def _pass_through(node: Node, editor: GraphEditor, inputs: Sequence[str], attrs: Attrs, perms: Sequence[Perm]) -> bool:
    """Let `node` compute transposed outputs from `inputs`, and transpose each output back by its `perms`."""
    outputs, late = [], []
    for out, perm in zip(node.outputs, perms, strict=True):
        if not out or is_identity(perm):  # "" is a part of a Split that nobody reads
            outputs.append(out)
            continue
        inner = editor.add_value(f"{out}.t", permuted(editor.types[out], inverse(perm)))
        outputs.append(inner)
        late.append((inner, out, perm))
    editor.update(node, inputs=tuple(inputs), outputs=tuple(outputs), attrs=attrs)
    for inner, out, perm in late:
        editor.add_node("Transpose", (inner,), (out,), {"perm": perm}, origin=node.origin)
    return True


def _unary(node: Node, editor: GraphEditor) -> bool:
    found = _transpose_of(editor, node.inputs[0])
    if found is None or len(node.outputs) != 1:
        return False
    return _pass_through(node, editor, (found[0], *node.inputs[1:]), dict(node.attrs), [found[1]])


def _joined(node: Node, editor: GraphEditor) -> tuple[Perm, list[str]] | None:
    """Return the permutation that the inputs bring, and what to read instead; None when they disagree."""
    rank = editor.types[node.outputs[0]].rank
    found = [_transpose_of(editor, name) for name in node.inputs]
    perms = {item[1] for item in found if item is not None and len(item[1]) == rank}
    if len(perms) != 1 or not all(node.inputs):
        return None
    perm = perms.pop()
    others = [name for name, item in zip(node.inputs, found, strict=True) if item is None or item[1] != perm]
    undone = _readers_undo(node, editor, perm)
    if not all(undone or _is_cheap(editor, name, perm) for name in others):
        return None
    inputs = [
        item[0] if item is not None and item[1] == perm else _moved_operand(editor, name, perm)
        for name, item in zip(node.inputs, found, strict=True)
    ]
    return perm, inputs


def _readers_undo(node: Node, editor: GraphEditor, perm: Perm) -> bool:
    """Say whether every reader of `node` transposes its output back."""
    out = node.outputs[0]
    readers = editor.users(out)
    undo = inverse(perm)
    same_rank = all(editor.types[name].rank == len(perm) for name in node.inputs)
    if not readers or out in editor.outputs or not same_rank:
        return False
    return all(r.op == "Transpose" and perm_of(r, len(perm)) == undo for r in readers)


def _is_cheap(editor: GraphEditor, name: str, perm: Perm) -> bool:
    type_ = editor.types[name]
    if name in editor.consts or type_.elements == 1:
        return True
    return type_.rank == len(perm) and moves_only_units(type_.shape, inverse(perm))


def _moved_operand(editor: GraphEditor, name: str, perm: Perm) -> str:
    """Return operand `name`, which broadcasts to the transposed shape, for the shape before it."""
    type_ = editor.types[name]
    if type_.elements == 1 and type_.rank < len(perm):
        return name
    if type_.rank < len(perm):
        missing = len(perm) - type_.rank
        quant = type_.quant
        if quant is not None and quant.axis is not None:
            quant = replace(quant, axis=quant.axis + missing)
        wide = replace(type_, shape=(1,) * missing + type_.shape, quant=quant)
        name = editor.add_const(f"{name}.wide", editor.consts[name].reshape(wide.shape), wide)
    back, per_axis = inverse(perm), type_.quant is not None and type_.quant.per_axis
    if name in editor.consts or per_axis or not moves_only_units(editor.types[name].shape, back):
        return add_transpose(editor, name, back)
    moved = permuted(editor.types[name], back)  # a Transpose here would sink again, through the same operator
    out = editor.add_value(f"{name}.t", moved)
    editor.add_node("Reshape", (name,), (out,), {"shape": moved.shape})
    return out


def _nary(node: Node, editor: GraphEditor) -> bool:
    joined = _joined(node, editor) if len(node.outputs) == 1 else None
    if joined is None:
        return False
    return _pass_through(node, editor, joined[1], dict(node.attrs), [joined[0]])


def _concat(node: Node, editor: GraphEditor) -> bool:
    joined = _joined(node, editor)
    if joined is None:
        return False
    perm, inputs = joined
    axis = perm[node.int_("axis") % len(perm)]
    return _pass_through(node, editor, inputs, {**node.attrs, "axis": axis}, [perm])


def _along_axis(node: Node, editor: GraphEditor) -> bool:
    found = _transpose_of(editor, node.inputs[0])
    if found is None or len(node.inputs) != 1:
        return False
    source, perm = found
    axis = node.int_("axis") % len(perm)
    if node.op != "Split" and axis == len(perm) - 1 != perm[axis]:
        return False  # along the last axis it runs over adjacent elements; that is worth more
    return _pass_through(node, editor, (source,), {**node.attrs, "axis": perm[axis]}, [perm] * len(node.outputs))


def _arg_reduce(node: Node, editor: GraphEditor) -> bool:
    found = _transpose_of(editor, node.inputs[0])
    if found is None:
        return False
    source, perm = found
    axis = node.int_("axis") % len(perm)
    out_perm = perm if node.int_("keepdims") else _without(perm, (axis,))
    return _pass_through(node, editor, (source,), {**node.attrs, "axis": perm[axis]}, [out_perm])


def _reduce(node: Node, editor: GraphEditor) -> bool:
    found = _transpose_of(editor, node.inputs[0])
    if found is None or len(node.inputs) != 1 or is_tflite(node):  # those keep the order of the file
        return False
    source, perm = found
    axes = axes_of(node, len(perm))
    attrs = {**node.attrs, "axes": tuple(sorted(perm[axis] for axis in axes))}
    out_perm = perm if node.int_("keepdims") else _without(perm, axes)
    return _pass_through(node, editor, (source,), attrs, [out_perm])


def _without(perm: Perm, axes: Sequence[int]) -> Perm:
    """Return the permutation of the axes that stay when `axes` (of the transposed tensor) go."""
    kept = [old for new, old in enumerate(perm) if new not in axes]
    order = sorted(kept)
    return tuple(order.index(old) for old in kept)


def _pad(node: Node, editor: GraphEditor) -> bool:
    found = _transpose_of(editor, node.inputs[0])
    if found is None or len([name for name in node.inputs if name]) != 1:
        return False
    source, perm = found
    pads, back, rank = node.ints("pads"), inverse(perm), len(perm)
    if "axes" in node.attrs:
        moved = {"axes": tuple(perm[axis % rank] for axis in node.ints("axes"))}
    else:
        moved = {"pads": tuple(pads[side * rank + axis] for side in (0, 1) for axis in back)}
    return _pass_through(node, editor, (source,), {**node.attrs, **moved}, [perm])


def _slice(node: Node, editor: GraphEditor) -> bool:
    found = _transpose_of(editor, node.inputs[0])
    if found is None or len(node.inputs) != 1:
        return False
    source, perm = found
    axes = node.ints("axes") or tuple(range(len(node.ints("starts"))))
    moved = tuple(perm[axis % len(perm)] for axis in axes)
    return _pass_through(node, editor, (source,), {**node.attrs, "axes": moved}, [perm])


def _reshape(node: Node, editor: GraphEditor) -> bool:
    """Let a Transpose pass a Reshape that splits axes, or merges axes that lie side by side in front of it too.

    Where merged axes lie side by side in another order, as channels do in a channel shuffle, that much of the
    Transpose stays, when the rest is the one that undoes layout-nhwc.
    """
    found = _transpose_of(editor, node.inputs[0])
    if found is None:
        return False
    source, perm = found
    before, after = editor.types[source], editor.types[node.outputs[0]]
    if before.quant is not None and before.quant.per_axis:
        return False
    groups = _groups([(axis, before.shape[axis]) for axis in perm if before.shape[axis] != 1], after.shape)
    if groups is None:
        return False
    wide = [axis for _, into in groups for axis in into]
    order = [(min(axes), place) for axes, into in groups for place in range(len(into))]
    late = _late_perm(after.shape, wide, order)
    kept = _order_within(groups, before.shape)
    if kept is None:
        return False
    if not is_identity(kept):
        if late != TO_NCHW or order == sorted(order):
            return False
        source = add_transpose(editor, source, kept, node.origin)
    shape = tuple(after.shape[axis] for axis in inverse(late))
    return _pass_through(node, editor, (source,), {**node.attrs, "shape": shape}, [late])


Group = tuple[list[int], list[int]]


def _groups(axes: Sequence[tuple[int, int]], shape: Sequence[int]) -> list[Group] | None:
    """Return the smallest runs of `axes` (name, length) that a Reshape turns into runs of the wide axes of `shape`."""
    left, right = list(axes), [(axis, length) for axis, length in enumerate(shape) if length != 1]
    groups: list[Group] = []
    while left and right:
        (a, m), (b, n) = left.pop(0), right.pop(0)
        group: Group = ([a], [b])
        while m != n:
            side, names = (left, group[0]) if m < n else (right, group[1])
            if not side:
                return None
            name, length = side.pop(0)
            names.append(name)
            m, n = (m * length, n) if names is group[0] else (m, n * length)
        groups.append(group)
    return groups if not left and not right else None


def _order_within(groups: Sequence[Group], shape: Sequence[int]) -> Perm | None:
    """Return what sorts the axes within each group where they lie; None when a group's axes lie apart."""
    wide = [axis for axis, length in enumerate(shape) if length != 1]
    perm = list(range(len(shape)))
    for axes, _ in groups:
        places = sorted(axes)
        if places != wide[wide.index(places[0]) :][: len(places)]:
            return None
        for place, axis in zip(places, axes, strict=True):
            perm[place] = axis
    return tuple(perm)


def _late_perm(shape: Sequence[int], wide: Sequence[int], order: Sequence[tuple[int, int]]) -> Perm:
    """Return the permutation to `shape` after which axes `wide` come from increasing places as `order` says.

    The one that undoes layout-nhwc is preferred, because it will meet its inverse.
    """
    if len(shape) == len(TO_NCHW):
        places = [TO_NCHW[axis] for axis in wide]
        if sorted(range(len(wide)), key=places.__getitem__) == sorted(range(len(wide)), key=order.__getitem__):
            return TO_NCHW
    moved = [wide[index] for index in sorted(range(len(wide)), key=order.__getitem__)]
    slots = iter(moved)
    inner = [next(slots) if d != 1 else axis for axis, d in enumerate(shape)]
    return inverse(inner)


def _gather(node: Node, editor: GraphEditor) -> bool:
    found = _transpose_of(editor, node.inputs[0])
    count = editor.types[node.inputs[1]].rank
    if found is None or count > 1:
        return False
    source, perm = found
    axis = node.int_("axis") % len(perm)
    out_perm = perm if count else _without(perm, (axis,))
    return _pass_through(node, editor, (source, node.inputs[1]), {**node.attrs, "axis": perm[axis]}, [out_perm])


def _dynamic_quantize(node: Node, editor: GraphEditor) -> bool:
    """Range and codes do not depend on the order of the elements; scale and zero point are single numbers."""
    found = _transpose_of(editor, node.inputs[0])
    if found is None:
        return False
    return _pass_through(node, editor, (found[0],), dict(node.attrs), [found[1], (), ()])


Rule = Callable[[Node, GraphEditor], bool]

_RULES: tuple[tuple[frozenset[str], Rule], ...] = (
    (UNARY, _unary),
    (frozenset(("Reshape",)), _reshape),
    (NARY, _nary),
    (frozenset(("Concat",)), _concat),
    (frozenset(("ArgMax", "ArgMin")), _arg_reduce),
    (ALONG_AXIS, _along_axis),
    (REDUCE, _reduce),
    (frozenset(("Pad",)), _pad),
    (frozenset(("Slice",)), _slice),
    (frozenset(("Gather",)), _gather),
    (frozenset(("DynamicQuantizeLinear",)), _dynamic_quantize),
)
