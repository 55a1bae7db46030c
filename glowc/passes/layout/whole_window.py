"""whole-window: a Conv whose window is the whole image has one output pixel, and needs no image.

Without groups it is a FullyConnected; a depthwise one sees the image as one row.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar

from glowc.graph.attrs import AttrValue
from glowc.graph.graph import GraphEditor, Node
from glowc.graph.types import TensorType
from glowc.ops.integer import is_tflite
from glowc.passes.base import PassCtx, RewritePass

Shape = tuple[int, ...]


class WholeWindow(RewritePass):
    """Streaming networks compute one pixel a step, of rows that they keep.

    Layers that round half to even keep their form, for which their kernels were chosen and measured.
    """

    name: ClassVar[str] = "whole-window"
    ops: ClassVar[tuple[str, ...]] = ("Conv",)

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Rewrite one Conv."""
        if not (is_tflite(node) and node.is_nhwc and node.inputs[1] in editor.consts and _is_whole(node, editor)):
            return False
        x, w = (editor.types[name] for name in node.inputs[:2])
        if node.int_("group") == 1:
            _to_fully_connected(node, editor, x, w)
            return True
        if w.shape[3] != 1 or w.shape[1] == 1:
            return False
        _to_row(node, editor, x, w)
        return True


def _is_whole(node: Node, editor: GraphEditor) -> bool:
    """Say whether the window is the image, without gaps."""
    image, window = editor.types[node.inputs[0]].shape[1:3], editor.types[node.inputs[1]].shape[1:3]
    gaps = any(d > 1 and k > 1 for d, k in zip(node.ints("dilations", 2) or (1, 1), window, strict=True))
    return image == window and not gaps and not any(node.ints("pads", 4))


def _to_fully_connected(node: Node, editor: GraphEditor, x: TensorType, w: TensorType) -> None:
    inputs = math.prod(x.shape[1:])
    attrs: dict[str, AttrValue] = {k: v for k, v in node.attrs.items() if k.startswith("act_") or k == "rounding"}
    pixel = _viewed(editor, node.inputs[0], (x.shape[0], 1, 1, inputs))
    weights = _shaped(editor, node.inputs[1], (w.shape[0], inputs))
    editor.update(node, op="FullyConnected", inputs=(pixel, weights, *node.inputs[2:]), attrs=attrs)


def _to_row(node: Node, editor: GraphEditor, x: TensorType, w: TensorType) -> None:
    pixels = x.shape[1] * x.shape[2]
    image = _viewed(editor, node.inputs[0], (x.shape[0], 1, pixels, x.shape[3]))
    weights = _shaped(editor, node.inputs[1], (w.shape[0], 1, pixels, 1))
    attrs = {**node.attrs, "kernel_shape": (1, pixels), "strides": (1, 1), "dilations": (1, 1)}
    editor.update(node, inputs=(image, weights, *node.inputs[2:]), attrs=attrs)


def _viewed(editor: GraphEditor, value: str, shape: Shape) -> str:
    if editor.types[value].shape == shape:
        return value
    view = editor.add_value(f"{value}.whole", replace(editor.types[value], shape=shape))
    editor.add_node("Reshape", (value,), (view,), {"shape": shape})
    return view


def _shaped(editor: GraphEditor, name: str, shape: Shape) -> str:
    """Return the weights with another shape."""
    type_ = replace(editor.types[name], shape=shape)
    return editor.add_const(f"{name}.whole", editor.consts[name].reshape(shape), type_)
