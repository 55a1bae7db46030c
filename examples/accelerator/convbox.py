"""A target of one's own: an accelerator that computes chains of int8 convolutions, driven by a list of commands.

glowc compile model.onnx --plugin convbox.py          from this folder
glowc compile model.onnx --target convbox             from an installed package (docs/PLUGINS.md)
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from glowc.graph.graph import Graph, Node
from glowc.graph.types import DType
from glowc.ops.delegated import Backend, Handed

INSNS_PER_LAYER = 200  # what the CPU does: the commands go to a queue


def takes(node: Node, graph: Graph) -> bool:
    """Say whether the box computes a node: a convolution of int8, without dilation, its weights around zero."""
    if node.op != "Conv" or not node.is_nhwc or node.ints("dilations", 2) != (1, 1):
        return False
    x, w = graph.types[node.inputs[0]], graph.types[node.inputs[1]]
    known = all(name in graph.consts for name in node.inputs[1:3]) and len(node.inputs) == 3
    plain = not any(np.isfinite(node.float_(key)) for key in ("act_min", "act_max"))
    if not known or not plain or node.str_("rounding") != "even" or (x.dtype, w.dtype) != (DType.S8, DType.S8):
        return False
    quantised = all(t.quant is not None for t in (x, w, graph.types[node.outputs[0]]))
    return quantised and x.shape[0] == 1 and set(w.quant.zero_point) == {0}


def build(part: Graph) -> Handed | None:
    """Return the call of a part; None where it is no chain, which the box cannot do."""
    ends = [(node.inputs[0], node.outputs[0]) for node in part.nodes]
    if any(after[0] != before[1] for before, after in pairwise(ends)):
        return None
    if (part.inputs, part.outputs) != ((ends[0][0],), (ends[-1][1],)):
        return None
    words, data = [len(part.nodes)], b""
    for node in part.nodes:
        layer, more = _layer(node, part, len(data))
        words += layer
        data += more
    between = [part.types[out].elements for _, out in ends[:-1]]
    return Handed(
        "convbox_run" if between else "convbox_run_one", np.asarray(words, "<i4").tobytes() + data,
        scratch_bytes=2 * max(between, default=0), macs=sum(_macs(node, part) for node in part.nodes),
        insns=INSNS_PER_LAYER * len(part.nodes), header="convbox.h", sources=("convbox.c",),
    )  # fmt: skip


def _macs(node: Node, part: Graph) -> int:
    return part.types[node.outputs[0]].elements * int(np.prod(part.types[node.inputs[1]].shape[1:]))


def _layer(node: Node, part: Graph, at: int) -> tuple[list[int], bytes]:
    """Return the words of a layer (struct convbox_layer) and its data, which begin `at` bytes after all words."""
    x, w, y = (part.types[name] for name in (node.inputs[0], node.inputs[1], node.outputs[0]))
    (zx,), (zy,) = x.quant.zero_point, y.quant.zero_point
    f32 = np.float32
    scale = f32(x.quant.scale[0]) * np.asarray(w.quant.scale, f32) / f32(y.quant.scale[0])
    channels, (top, left) = y.shape[3], node.ints("pads", 4)[:2]
    parts = (
        part.consts[node.inputs[2]].astype("<i4"), np.broadcast_to(scale, channels).astype("<f4"),
        part.consts[node.inputs[1]].astype(np.int8),
    )  # fmt: skip
    data = b"".join(a.tobytes() for a in parts)
    words = [*x.shape[1:], *y.shape[1:], *w.shape[1:3], *node.ints("strides", 2), top, left, node.int_("group")]
    return [*words, zx, zy, at], data + bytes(-len(data) % 4)


BACKENDS = (Backend("convbox", takes, build),)
