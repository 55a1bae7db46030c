"""propagate-quant: brings the meaning of integers (`AssignQuant`) up to where they come from, and down."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from glowc.graph.attrs import AttrValue
from glowc.graph.graph import GraphEditor, Node
from glowc.graph.types import QuantParams, TensorType
from glowc.passes.axes import inverse, perm_of, permuted_quant
from glowc.passes.base import PassCtx, RewritePass
from glowc.passes.classes import moved_inputs


class PropagateQuant(RewritePass):
    """`AssignQuant` only says what bytes mean, so a type can say it as well.

    It climbs through operators that move data, to a graph input, a constant or the operator that computes
    the integers; an operator that moves typed integers passes their type on.
    """

    name: ClassVar[str] = "propagate-quant"

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Move one AssignQuant up, or one type down."""
        return _up(node, editor) if node.op == "AssignQuant" else _down(node, editor)


def _up(node: Node, editor: GraphEditor) -> bool:
    raw, typed = node.inputs[0], node.outputs[0]
    wanted = editor.types[typed].quant
    if wanted is None or editor.types[raw].quant == wanted:
        return wanted is not None and editor.bypass(node, raw)
    if editor.types[raw].quantized or editor.types[raw].dtype != editor.types[typed].dtype:
        return False
    if raw in editor.consts:
        return _type_const(node, editor)
    if not _all_assign(editor, raw, wanted):
        return False
    source = editor.producer(raw)
    if source is None:
        return _type_input(node, editor, wanted)
    return _through(source, editor, wanted)


def _type_const(node: Node, editor: GraphEditor) -> bool:
    raw, typed = node.inputs[0], node.outputs[0]
    if typed in editor.outputs:
        return False
    editor.remove(node)
    editor.replace_uses(typed, editor.add_const(typed, editor.consts[raw], editor.types[typed]))
    return True


def _all_assign(editor: GraphEditor, raw: str, wanted: QuantParams) -> bool:
    """Say whether every reader of `raw` gives it the same meaning."""
    readers = editor.users(raw)
    same = all(r.op == "AssignQuant" and editor.types[r.outputs[0]].quant == wanted for r in readers)
    return same and raw not in editor.outputs


def _type_input(node: Node, editor: GraphEditor, wanted: QuantParams) -> bool:
    raw = node.inputs[0]
    if node.outputs[0] in editor.outputs:
        return False
    editor.types[raw] = replace(editor.types[raw], quant=wanted)
    return editor.bypass(node, raw)


def _through(source: Node, editor: GraphEditor, wanted: QuantParams) -> bool:
    """Give the data inputs of a moving operator the meaning `wanted`, and its output with them."""
    moved = moved_inputs(source)
    if not moved or len(source.outputs) != 1:
        return False
    inner = _quant_before(source, editor, wanted)
    if inner is None or any(editor.types[source.inputs[i]].quantized for i in moved):
        return False
    inputs = list(source.inputs)
    for index in moved:
        type_ = replace(editor.types[inputs[index]], quant=inner)
        typed = editor.add_value(f"{inputs[index]}.typed", type_)
        editor.add_node("AssignQuant", (inputs[index],), (typed,), origin=source.origin)
        inputs[index] = typed
    out = source.outputs[0]
    editor.types[out] = replace(editor.types[out], quant=wanted)
    editor.update(source, inputs=tuple(inputs), attrs=_real_attrs(source, wanted))
    return True


def _quant_before(source: Node, editor: GraphEditor, wanted: QuantParams) -> QuantParams | None:
    """Return the meaning of the inputs for which the output has the meaning `wanted`, or None."""
    if wanted.axis is None:
        return wanted
    if source.op == "Transpose":
        return permuted_quant(wanted, inverse(perm_of(source, editor.types[source.inputs[0]].rank)))
    return wanted if source.op == "Identity" else None


def _quant_after(node: Node, type_: TensorType) -> QuantParams | None:
    """Return the meaning of the output of `node`, whose data inputs have type `type_`."""
    if type_.quant is None or type_.quant.axis is None or node.op == "Identity":
        return type_.quant
    return permuted_quant(type_.quant, perm_of(node, type_.rank)) if node.op == "Transpose" else None


def _down(node: Node, editor: GraphEditor) -> bool:
    moved = moved_inputs(node)
    if not moved or all(editor.types[out].quantized for out in node.outputs if out):
        return False
    types = [editor.types[node.inputs[index]] for index in moved]
    quants = {_quant_after(node, type_) for type_ in types}
    if len(quants) != 1 or (quant := quants.pop()) is None:
        return False
    if any(editor.types[out].dtype != types[0].dtype for out in node.outputs if out):
        return False
    for out in node.outputs:
        if out:
            editor.types[out] = replace(editor.types[out], quant=quant)
    editor.changed = True
    editor.update(node, attrs=_real_attrs(node, quant))
    return True


def _real_attrs(node: Node, quant: QuantParams) -> dict[str, AttrValue]:
    """Return the attributes with the value of a Pad as a real number instead of a code."""
    attrs = dict(node.attrs)
    if node.op == "Pad" and node.str_("mode") == "constant":
        attrs["value"] = (node.float_("value") - quant.zero_point[0]) * quant.scale[0]
    return attrs
