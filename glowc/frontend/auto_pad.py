"""auto_pad SAME_UPPER and SAME_LOWER as explicit pads; where windows leave gaps, as rows and columns cut off.

ceil(size / stride) windows reach over (that - 1) * stride + span elements. Where the stride is larger than the window
this may be less than the input has: ONNX's formula of the padding is negative, and onnxruntime reads from inside. Which
elements it leaves out at the begin was found by experiment (lengths 5..13, strides 1..7, windows 1..3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from glowc.frontend.builder import Builder
from glowc.frontend.onnx_model import OnnxNode
from glowc.frontend.problems import NodeError

Ints = tuple[int, ...]
UPPER, LOWER = "SAME_UPPER", "SAME_LOWER"


def same_pads(mode: str, size: int, stride: int, span: int, *, conv: bool) -> tuple[int, int]:
    """Return padding at begin and end of an axis; negative: what is left out there."""
    total = (-(-size // stride) - 1) * stride + span - size
    if total >= 0:
        small = total // 2
        return (small, total - small) if mode == UPPER else (total - small, small)
    later = (mode == LOWER) + conv  # an odd element, and one more of a Conv, is left out at the end
    begin = -(max(0, -total - later) // 2)
    return begin, total - begin


def cut_negative(node: OnnxNode, b: Builder, geometry: Mapping[str, Ints]) -> tuple[OnnxNode, dict[str, Ints]]:
    """Return the node with its first input cut where `pads` are negative, and the geometry without those."""
    pads = geometry["pads"]
    if min(pads, default=0) >= 0:
        return node, dict(geometry)
    if any(out and out in b.read for out in node.outputs[1:]):
        raise NodeError(f'output 1 ("{node.outputs[1]}") is not supported with auto_pad that leaves elements out')
    sizes, rank = b.type(node.inputs[0]).shape[2:], len(pads) // 2
    starts = tuple(max(0, -p) for p in pads[:rank])
    ends = tuple(n - max(0, -p) for n, p in zip(sizes, pads[rank:], strict=True))
    axes = tuple(range(2, rank + 2))
    cut = b.emit("Slice", node.inputs[:1], {"starts": starts, "ends": ends, "axes": axes, "steps": (1,) * rank})
    kept = {**geometry, "pads": tuple(max(0, p) for p in pads)}
    return replace(node, inputs=(cut, *node.inputs[1:])), kept
