"""split-fixed-transpose: TensorFlow Lite's transposed convolution of codes becomes convolutions that interleave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np

from glowc.graph.graph import GraphEditor, Node
from glowc.graph.types import TensorType
from glowc.passes.base import PassCtx, RewritePass
from glowc.passes.layout.split_conv_transpose import Ints, Phase, are_padded, existing, phases_of, repeated, steps_of


class SplitFixedTranspose(RewritePass):
    """As split-conv-transpose, where sums are exact and each ends as that of a convolution: the same codes.

    Those whose result is smaller than the inputs reach stay as they are.
    """

    name: ClassVar[str] = "split-fixed-transpose"
    ops: ClassVar[tuple[str, ...]] = ("FixedConvTranspose",)

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Rewrite one layer."""
        x, w, y = (editor.types[name].shape[1:3] for name in (*node.inputs[:2], node.outputs[0]))
        strides = steps_of(node.ints("strides", 2), x, y)
        rows, columns = phases = phases_of(strides, node.ints("pads", 2), x, w, y)
        if not are_padded(phases):
            return False
        parts = [_convolution(node, editor, row, columns) for row in rows]
        _join(node, editor, parts, (rows[0].count, columns[0].count), strides)
        return True


def _convolution(node: Node, editor: GraphEditor, row: Phase, columns: list[Phase]) -> str:
    """Add the convolution of one phase of rows, whose output channels are those of all phases of columns."""
    bias = editor.consts[node.inputs[2]]
    weights = editor.add_const(f"{node.inputs[1]}.phase", *_weights(node, editor, row, columns))
    biases = editor.add_const(f"{node.inputs[2]}.phase", np.tile(bias, len(columns)))
    kept = {key: node.attrs[key] for key in ("rounding", "act_min", "act_max") if key in node.attrs}
    pads = (row.pad, columns[0].pad, row.end, columns[0].end)
    kernel = (len(row.taps), len(columns[0].taps))
    attrs = {"kernel_shape": kernel, "strides": (1, 1), "dilations": (1, 1), "pads": pads, "layout": "nhwc", **kept}
    shape = (row.count, columns[0].count, len(columns) * bias.size)
    return _add(node, editor, "Conv", (node.inputs[0], weights, biases), shape, attrs)


def _weights(node: Node, editor: GraphEditor, row: Phase, columns: list[Phase]) -> tuple[np.ndarray, TensorType]:
    """Return codes [columns * O, rows, columns, I]; a tap that does not exist has the code of zero."""
    old, type_ = editor.consts[node.inputs[1]], editor.types[node.inputs[1]]
    assert type_.quant is not None
    channels, *_, in_c = old.shape
    codes = np.empty((len(columns), channels, len(row.taps), len(columns[0].taps), in_c), old.dtype)
    codes[:] = np.asarray(type_.quant.zero_point, old.dtype).reshape(-1, 1, 1, 1)
    for q, i, j, ky, kx in existing(row.taps, columns):
        codes[q, :, i, j] = old[:, ky, kx]
    codes = codes.reshape(-1, *codes.shape[2:])
    return codes, replace(type_, shape=codes.shape, quant=repeated(type_.quant, len(columns)))


def _join(node: Node, editor: GraphEditor, parts: list[str], counts: Ints, strides: Ints) -> None:
    """Interleave the phases of rows, and leave out what is too much."""
    (high, wide), out = counts, editor.types[node.outputs[0]]
    line = wide * strides[1] * out.shape[3]
    if len(parts) > 1:
        rows = [_add(node, editor, "Reshape", (part,), (high, 1, line), {}) for part in parts]
        parts = [_add(node, editor, "Concat", tuple(rows), (high, len(rows), line), {"axis": 2})]
    shape = (high * strides[0], wide * strides[1], out.shape[3])
    y = _add(node, editor, "Reshape", (parts[0],), shape, {})
    editor.remove(node)
    cut = {"starts": (0, 0), "ends": out.shape[1:3], "axes": (1, 2), "steps": (1, 1)}
    op, attrs = ("Reshape", {"shape": out.shape}) if shape == out.shape[1:] else ("Slice", cut)
    editor.add_node(op, (y,), node.outputs, attrs, origin=node.origin)


def _add(
    node: Node, editor: GraphEditor, op: str, inputs: tuple[str, ...], shape: Ints, attrs: Mapping[str, object]
) -> str:
    """Add an operator whose result has a shape [N, *shape]."""
    type_ = editor.types[node.outputs[0]]
    type_ = replace(type_, shape=(type_.shape[0], *shape))
    out = editor.add_value(f"{node.outputs[0]}.{op.lower()}", type_)
    given = {"shape": type_.shape} if op == "Reshape" else attrs
    editor.add_node(op, inputs, (out,), given, origin=node.origin)  # type: ignore[arg-type]
    return out
