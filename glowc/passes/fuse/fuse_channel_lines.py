"""fuse-channel-lines: float arithmetic per channel between int8 tensors becomes straight lines in integers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import numpy as np

from glowc.graph.graph import Graph, GraphEditor, Node
from glowc.graph.types import DType
from glowc.passes.base import GraphPass, PassCtx
from glowc.passes.fuse.fuse_lut import groups, is_int8, put, results
from glowc.passes.fuse.lines import CODES, lines_through


class FuseChannelLines(GraphPass):
    """A BatchNormalization that no convolution could take, or a PRelu, stands in float between DequantizeLinear and
    QuantizeLinear. Its results for all 256 codes of every channel are computed by the operators' own references; where
    one or two lines in integers give the same codes, they replace it (`glowc.passes.fuse.lines`), else it stays.
    """

    name: ClassVar[str] = "fuse-channel-lines"

    def run(self, graph: Graph, ctx: PassCtx) -> Graph:
        """Replace such groups, from the end of the graph on."""
        editor = GraphEditor(graph)
        order = {node.name: index for index, node in enumerate(graph.nodes)}
        for node in reversed(graph.nodes):
            out = node.outputs[0]
            if out and node.name in editor.nodes and is_int8(editor.types[out]):
                for root, group in groups(node, editor, order, _constant):
                    if any(editor.types[member.outputs[0]].dtype == DType.F32 for member in group):
                        _replace(node, root, group, editor)
                        break
        return editor.finish()


def _constant(name: str, editor: GraphEditor) -> bool:
    """Accept numbers and one number per index of some axis."""
    quant = editor.types[name].quant
    return sum(d > 1 for d in editor.consts[name].shape) <= 1 and not (quant is not None and quant.per_axis)


def _replace(node: Node, root: str, group: list[Node], editor: GraphEditor) -> None:
    axis = _axis(group, editor)
    table = None if axis is None else results(root, group, editor, CODES.astype(np.int8)[:, None])
    if axis is None or table is None or table.ndim != 2:
        return
    low, high = int(table.min()), int(table.max())
    lines = lines_through(table.T.astype(np.int64), low, high)
    if lines is None or lines.shape[0] != editor.types[root].shape[axis]:
        return
    name = editor.add_const(f"{node.outputs[0]}.lines", lines)
    put(node, group, editor, "ChannelLines", (root, name), {"axis": axis, "out_min": low, "out_max": high})


def _axis(group: Iterable[Node], editor: GraphEditor) -> int | None:
    """Return the one axis of the result along which constants differ."""
    axes: set[int] = set()
    for member in group:
        rank = editor.types[member.outputs[0]].rank
        for name in member.inputs:
            shape = editor.consts[name].shape if name in editor.consts and member.op != "Lut" else ()
            axes.update(rank - len(shape) + i for i, d in enumerate(shape) if d > 1)
    return axes.pop() if len(axes) == 1 else None
