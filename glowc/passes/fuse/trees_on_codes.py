"""trees-on-codes: Trees of integers that were made floats compare the integers themselves."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from glowc.graph.graph import GraphEditor, Node
from glowc.graph.types import DType
from glowc.ops.base import Call, OpError
from glowc.ops.forest import Forest
from glowc.ops.registry import get_op
from glowc.passes.base import PassCtx, RewritePass

_STEPS = frozenset(("Cast", "DequantizeLinear", "Identity", "Add", "Sub", "Mul", "Div"))
_CODES = frozenset((DType.S8, DType.U8, DType.S16, DType.U16))
_MOST = 1 << 24  # values of features that are looked at


class TreesOnCodes(RewritePass):
    """Between the integers and the trees may be a Cast, a DequantizeLinear, and arithmetic with constants, of each
    feature its own: all is evaluated for every code by the operators' own references. Where values rise with the codes,
    a threshold becomes the greatest code whose value is no greater.
    """

    name: ClassVar[str] = "trees-on-codes"
    ops: ClassVar[tuple[str, ...]] = ("Trees",)

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Let the trees read the integers that their features come from."""
        steps = _way(node.inputs[0], editor)
        if not steps or not all(name in editor.consts for name in node.inputs[1:]):
            return False
        source = editor.types[steps[0].inputs[0]]
        least, most = source.dtype.qmin, source.dtype.qmax
        if (most - least) * source.shape[1] > _MOST:
            return False
        values = _values(steps, editor, np.arange(least, most + 1))
        if values is None or not (np.diff(values, axis=0) >= 0).all():
            return False
        try:
            forest = Forest.of([editor.consts[name] for name in node.inputs[1:]])
            forest.check(source.shape[1], node.int_("targets"))
        except OpError:
            return False  # the lowering says what is wrong

        def code_of(feature: int, threshold: float) -> int:
            return least - 1 + int(np.searchsorted(values[:, feature], threshold, side="right"))

        weight = editor.types[node.inputs[-1]].dtype.numpy
        arrays = forest.with_thresholds(code_of, least, most).arrays(source.dtype.numpy, weight)
        names = [editor.add_const(f"{node.name}.codes", array) for array in arrays]
        editor.update(node, inputs=(steps[0].inputs[0], *names))
        return True


def _way(value: str, editor: GraphEditor) -> list[Node]:
    """Return the operators that make `value` of integers, in order; none where it is not made so."""
    steps: list[Node] = []
    while editor.types[value].dtype not in _CODES:
        node = editor.producer(value)
        if node is None or node.op not in _STEPS or len(node.outputs) != 1:
            return []
        data = [name for name in node.inputs if name and name not in editor.consts]
        if len(data) != 1 or (node.inputs[0] != data[0] and node.op in ("Sub", "Div")):
            return []
        steps.insert(0, node)
        value = data[0]
    if (steps and value != steps[0].inputs[0]) or editor.types[value].rank != 2:
        return []
    return steps


def _values(steps: list[Node], editor: GraphEditor, codes: np.ndarray) -> np.ndarray | None:
    """Return the value of every code for every feature, [codes, features]."""
    source = editor.types[steps[0].inputs[0]]
    shape = (codes.size, source.shape[1])
    known = {steps[0].inputs[0]: np.broadcast_to(codes[:, None], shape).astype(source.dtype.numpy)}
    for node in steps:
        arrays = tuple(known[name] if name in known else editor.consts[name] for name in node.inputs if name)
        types = tuple(editor.types[n].with_shape(shape) if n in known else editor.types[n] for n in node.inputs if n)
        out = editor.types[node.outputs[0]].with_shape(shape)
        try:
            (known[node.outputs[0]],) = get_op(node.op).reference(Call(node, arrays, types, (out,)))
        except OpError:
            return None
    values = known[steps[-1].outputs[0]]
    return values if values.shape == shape else None
