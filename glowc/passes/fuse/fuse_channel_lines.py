"""fuse-channel-lines: float arithmetic per channel between int8 tensors becomes straight lines in integers.

A line is (m, b, s) with y = (m * x + b) >> s for all 256 codes x. It gives y exactly when y * 2^s <= m * x + b < (y
+ 1) * 2^s; where y is clamped, one side is free. For a given m the range of b is max(low - m * x) .. min(high - m *
x): its width is concave in m, so that halving an interval finds an m of every channel that has one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import numpy as np

from glowc.graph.graph import Graph, GraphEditor, Node
from glowc.graph.types import DType
from glowc.passes.base import GraphPass, PassCtx
from glowc.passes.fuse.fuse_lut import groups, is_int8, put, results

CODES = np.arange(-128, 128, dtype=np.int64)
SHIFTS = (23, 21, 18, 15, 12, 8, 4)
_ROUGH = 15
_FREE = np.int64(1) << 17  # codes beyond a clamp: far enough for slopes up to 500
_INT32 = np.int64(2**31 - 1)


def lines_through(table: np.ndarray, low: int, high: int) -> np.ndarray | None:
    """Return int32[channels, 3 or 7] (see `glowc.ops.channel_lines`) for int64 codes table[channels, 256].

    `low` and `high` are the clamp; None when two lines do not suffice.
    """
    lines, found = _fit(table, low, high, np.ones(table.shape, np.bool_))
    if found.all():
        return lines.astype(np.int32)
    both = np.concatenate([lines, lines, np.zeros((len(lines), 1), np.int64)], axis=1)
    bent = table[~found]
    first = _longest(bent, low, high)
    early = np.arange(-128, 128) < first[:, None]
    before, fits = _fit(bent, low, high, early)
    behind, rest = _fit(bent, low, high, ~early)
    both[~found] = np.concatenate([before, behind, first[:, None]], axis=1)
    return both.astype(np.int32) if (fits & rest).all() else None


def _longest(table: np.ndarray, low: int, high: int) -> np.ndarray:
    """Return per channel the code after the longest beginning that one line goes through, of any size."""
    begin, end = np.full(len(table), -127), np.full(len(table), 128)
    while np.any(begin < end):
        middle = (begin + end + 1) // 2
        bounds = _bounds(table, low, high, np.arange(-128, 128) < middle[:, None], _ROUGH)
        found = _best(*bounds, 256 << _ROUGH)[2] >= 0
        begin, end = np.where(found, middle, begin), np.where(found, end, middle - 1)
    return begin


def _fit(table: np.ndarray, low: int, high: int, used: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a line per channel through the codes `used`, with the finest shift that fits int32; and which exist."""
    lines, found = np.zeros((len(table), 3), np.int64), np.zeros(len(table), np.bool_)
    for shift in SHIFTS:
        left = np.flatnonzero(~found)
        codes, mine = table[left], used[left]
        m, b, width = _best(*_bounds(codes, low, high, mine, shift), 256 << shift)
        largest = np.maximum(np.abs(m * -128 + b), np.abs(m * 127 + b))
        good = (width >= 0) & (np.maximum(largest, np.abs(b)) <= _INT32) & (np.abs(m) <= _INT32 // 128)
        lines[left[good]] = np.stack([m, b, np.full(len(m), shift)], axis=1)[good]
        found[left[good]] = True
        if found.all():
            break
    return lines, found


def _bounds(table: np.ndarray, low: int, high: int, used: np.ndarray, shift: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and largest m * x + b that give each code."""
    floor = np.where(used & (table > low), table, -_FREE) << shift
    return floor, (np.where(used & (table < high), table + 1, _FREE) << shift) - 1


def _best(floor: np.ndarray, ceiling: np.ndarray, reach: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return m with a range of b, the middle of that range, and its width; negative where no m has one.

    The codes at which both ends of the range are reached say on which side of m the range is wider.
    """
    rows = np.arange(len(floor))
    left, right = np.full(len(floor), -reach, np.int64), np.full(len(floor), reach, np.int64)
    m, middle, width = (np.full(len(floor), value, np.int64) for value in (0, 0, -1))
    while (open_ := rows[left <= right]).size:
        here = (left[open_] + right[open_]) >> 1
        low, high = floor[open_] - here[:, None] * CODES, ceiling[open_] - here[:, None] * CODES
        at, to = low.argmax(axis=1), high.argmin(axis=1)
        lowest, highest = (np.take_along_axis(v, i[:, None], 1)[:, 0] for v, i in ((low, at), (high, to)))
        found = highest >= lowest
        done = open_[found]
        m[done], middle[done] = here[found], ((lowest + highest) >> 1)[found]
        width[done] = (highest - lowest)[found]
        left[open_] = np.where(at > to, here + 1, left[open_])
        right[open_] = np.where(at < to, here - 1, right[open_])
        left[open_[found | (at == to)]] = reach + 1
    return m, middle, width


class FuseChannelLines(GraphPass):
    """A BatchNormalization that no convolution could take, or a PRelu, stands in float between DequantizeLinear and
    QuantizeLinear. Its results for all 256 codes of every channel are computed by the operators' own references; where
    one or two lines in integers give the same codes, they replace it (above), else it stays.
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
