"""fold-pad: a constant Pad becomes the padding of the Conv or pool after it, which saves the padded copy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from glowc.graph import numerics
from glowc.graph.graph import GraphEditor, Node
from glowc.passes.base import PassCtx, RewritePass

Shape = tuple[int, ...]


@dataclass(frozen=True)
class FoldPad(RewritePass):
    """Conv and AveragePool take real zeros, MaxPool the lowest value; `limit` bounds the padding per side."""

    limit: int = 255
    name: ClassVar[str] = "fold-pad"
    ops: ClassVar[tuple[str, ...]] = ("Conv", "AveragePool", "MaxPool")

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Fold the Pad in front of `node`."""
        pad = editor.producer(node.inputs[0])
        reshape = pad if pad is not None and pad.op == "Reshape" else None
        pad = editor.producer(reshape.inputs[0]) if reshape is not None else pad
        if pad is None or pad.op != "Pad" or pad.str_("mode") != "constant" or len(pad.inputs) > 1:
            return False
        source, rank = pad.inputs[0], editor.types[pad.inputs[0]].rank
        if node.is_nhwc or editor.types[source].quant != editor.types[node.inputs[0]].quant:
            return False
        extra = _spatial_pads(pad, rank)
        if reshape is not None and extra is not None:
            extra = _of_one_row(extra, editor.types[reshape.inputs[0]].shape, editor.types[node.inputs[0]].shape)
        if extra is None or max(extra) > self.limit or not _fits(node, pad, editor):
            return False
        old = node.ints("pads", len(extra))
        attrs = {**node.attrs, "pads": tuple(a + b for a, b in zip(old, extra, strict=True))}
        if node.op == "AveragePool":
            attrs["count_include_pad"] = 1
        if reshape is not None:
            source = _as_image(source, editor, reshape)
        editor.update(node, inputs=(source, *node.inputs[1:]), attrs=attrs, origin=(*pad.origin, *node.origin))
        return True


def _spatial_pads(pad: Node, rank: int) -> tuple[int, ...] | None:
    """Return begins and ends of the spatial axes; None when others are padded or something is cropped."""
    pads = () if "axes" in pad.attrs else pad.ints("pads")
    if len(pads) != 2 * rank or any(p < 0 for p in pads) or any((*pads[:2], *pads[rank : rank + 2])):
        return None
    return (*pads[2:rank], *pads[rank + 2 :])


def _of_one_row(pads: tuple[int, ...], before: Shape, after: Shape) -> tuple[int, ...] | None:
    """Return the padding of a signal [N, C, L] that a Reshape makes an image of one row; None for another Reshape."""
    if len(before) != 3 or after != (*before[:2], 1, before[2]):
        return None
    return (0, pads[0], 0, pads[1])


def _as_image(source: str, editor: GraphEditor, reshape: Node) -> str:
    type_ = editor.types[source]
    image = replace(type_, shape=(*type_.shape[:2], 1, type_.shape[2]), layout="")
    out = editor.add_value(f"{source}.row", image)
    editor.add_node("Reshape", (source,), (out,), {"shape": image.shape}, origin=reshape.origin)
    return out


def _fits(node: Node, pad: Node, editor: GraphEditor) -> bool:
    value, type_ = pad.float_("value"), editor.types[pad.inputs[0]]
    if node.op == "Conv":
        return value == 0.0
    if node.op == "AveragePool":
        counted = node.int_("count_include_pad") == 1 or not any(node.ints("pads"))
        return value == 0.0 and counted and not node.int_("ceil_mode")
    if node.int_("ceil_mode") or any(node.outputs[1:]):
        return False
    if type_.quant is None:
        return value == -np.inf
    code = numerics.quantize(np.asarray([value], np.float32), type_.quant, type_.dtype)[0]
    return int(code) == type_.dtype.qmin
