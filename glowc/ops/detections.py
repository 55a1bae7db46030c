"""DetectionPostProcess: the boxes of a detector, without those that overlap better ones (internal).

`box_corners` makes corners [ymin, xmin, ymax, xmax] of centres and sizes relative to anchors, in float64 rounded once:
centre = e / scale * anchor size + anchor centre, half = 0.5 exp(e / scale) * anchor size. `best_boxes` looks at each
box's best class; `class_boxes` suppresses class by class and keeps the best of all. A box goes when its intersection
with a better one is more than `iou` of their union; of equal scores the earlier box counts. Boxes whose area is not
positive overlap nothing; the runtime of TensorFlow Lite Micro refuses them. With several classes a box `best_boxes`
leaves gaps between them as that runtime does, filled with zeros here; what leads outside of the outputs is left out.
Source: TFLite_Detection_PostProcess of TensorFlow Lite Micro. Evidence: seeded cases (tests/tflite), 0 differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from glowc.graph.attrs import Float, Int
from glowc.graph.graph import Node
from glowc.graph.types import DType, TensorType
from glowc.ops.base import LowerCtx, MaybeTypes, OpDef, OpError, Types
from glowc.ops.derived import derived
from glowc.ops.strided import present
from glowc.program.kernel import Arrays, KernelDef
from glowc.program.params import Params


@dataclass(frozen=True, slots=True)
class CornerParams(Params):
    """Of `box_corners`: boxes, numbers of each encoding (the first four count), and what these are divided by."""

    n: int
    width: int
    y_scale: float
    x_scale: float
    h_scale: float
    w_scale: float


@dataclass(frozen=True, slots=True)
class SuppressParams(Params):
    """Boxes, scores of each, where classes begin among them; how many are kept of a class and in all, and room for.

    `each` are classes of a box for `best_boxes`, boxes of a class for `class_boxes`.
    """

    n: int
    width: int
    first: int
    classes: int
    each: int
    most: int
    room: int
    score: float
    iou: float


def corners_of(codes: np.ndarray, anchors: np.ndarray, p: CornerParams) -> np.ndarray:
    """Return float32 corners [n, 4] of encodings [n, width] and anchors [n, 4], both (y, x, h, w)."""
    e, a = codes.astype(np.float64), anchors.astype(np.float64)
    scales = np.asarray([p.y_scale, p.x_scale, p.h_scale, p.w_scale], np.float32).astype(np.float64)
    centre = (e[:, :2] / scales[:2] * a[:, 2:4] + a[:, :2]).astype(np.float32)
    half = (0.5 * np.exp(e[:, 2:4] / scales[2:]) * a[:, 2:4]).astype(np.float32)
    return np.concatenate((centre - half, centre + half), 1)


def picked(corners: np.ndarray, scores: np.ndarray, most: int, p: SuppressParams) -> Iterator[int]:
    """Yield at most `most` boxes, the best first, none of which overlaps a better one too much."""
    live = scores >= np.float32(p.score)
    size = corners[:, 2:] - corners[:, :2]
    areas = size[:, 0] * size[:, 1]
    for _ in range(most):
        left = np.flatnonzero(live)
        if not left.size:
            return
        best = int(left[np.argmax(scores[left])])
        yield best
        live[best] = False
        inner = np.minimum(corners[best, 2:], corners[:, 2:]) - np.maximum(corners[best, :2], corners[:, :2])
        shared = np.maximum(inner[:, 0], 0) * np.maximum(inner[:, 1], 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = shared / (areas[best] + areas - shared)
        live &= ~((areas[best] > 0) & (areas > 0) & (ratio > np.float32(p.iou)))


Found = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def _empty(room: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.zeros((room, 4), np.float32), np.zeros(room, np.float32), np.zeros(room, np.float32)


def best_boxes(corners: np.ndarray, scores: np.ndarray, p: SuppressParams) -> Found:
    """Return boxes [room, 4], classes, scores and count: suppressed by the best class of each."""
    boxes, classes, found = _empty(p.room)
    rows, written = scores[:, p.first : p.first + p.classes], 0
    for box in picked(corners, rows.max(1), p.most, p):
        for turn, kind in enumerate(np.argsort(-rows[box], kind="stable")[: p.each]):
            at = p.each * written + turn
            if at < p.room:
                boxes[at], classes[at], found[at] = corners[box], kind, rows[box, kind]
            written += 1
    return boxes, classes, found, np.asarray([written], np.float32)


def class_boxes(corners: np.ndarray, scores: np.ndarray, p: SuppressParams) -> Found:
    """Return boxes [room, 4], classes, scores and count: suppressed class by class, the best of all kept."""
    rows: list[tuple[float, int, int]] = []
    for kind in range(p.classes):
        column = scores[:, p.first + kind]
        rows += [(float(column[box]), kind, box) for box in picked(corners, column, p.each, p)]
        rows = sorted(rows, key=lambda row: -row[0])[: p.most]
    boxes, classes, found = _empty(p.room)
    for at, (score, kind, box) in enumerate(rows):
        boxes[at], classes[at], found[at] = corners[box], kind, score
    return boxes, classes, found, np.asarray([len(rows)], np.float32)


def _shapes(node: Node, in_types: MaybeTypes) -> tuple[CornerParams, SuppressParams]:
    codes, scores, anchors = present(in_types[:3])
    floats = all(t.dtype is DType.F32 for t in (codes, scores, anchors))
    ranks = (codes.rank, scores.rank, anchors.rank) == (3, 3, 2)
    if not floats or not ranks or codes.shape[0] != 1 or codes.shape[2] < 4 or anchors.shape[1] != 4:
        raise OpError(
            f"boxes {codes}, scores {scores}, anchors {anchors}: needs f32 [1, n, 4], [1, n, classes], [n, 4]"
        )
    n, width, classes = codes.shape[1], scores.shape[2], node.int_("classes")
    if scores.shape[:2] != (1, n) or anchors.shape[0] != n or not 0 <= width - classes <= 1:
        raise OpError(f"{classes} classes of boxes {codes}, scores {scores}, anchors {anchors}")
    scales = [node.float_(f"{axis}_scale") for axis in "yxhw"]
    if 0 in scales:
        raise OpError("a scale of the boxes is 0")
    each = node.int_("each") if node.int_("by_class") else min(node.int_("each"), classes)
    return CornerParams(n, codes.shape[2], *scales), SuppressParams(
        n, width, width - classes, classes, each, node.int_("most"), node.int_("room"),
        node.float_("score"), node.float_("iou"),
    )  # fmt: skip


def infer(node: Node, in_types: MaybeTypes) -> Types:
    """Boxes, classes, scores, and how many."""
    _, p = _shapes(node, in_types)
    if min(p.each, p.most, p.room) < 1 or (node.int_("by_class") and p.most > p.room):
        raise OpError(f"{p.most} detections, {p.each} each, room for {p.room}")
    shapes = ((1, p.room, 4), (1, p.room), (1, p.room), (1,))
    return tuple(TensorType(shape, DType.F32) for shape in shapes)


def lower(node: Node, ctx: LowerCtx) -> None:
    """`box_corners`, then `best_boxes` or `class_boxes`."""
    codes, scores, anchors = (ctx.read(name) for name in node.inputs)
    corner, p = _shapes(node, (codes.type, scores.type, anchors.type))
    corners = ctx.temp(TensorType((p.n, 4), DType.F32), f"{node.name}_corners")
    ctx.emit("box_corners", {"in": codes, "anchors": anchors, "out": corners}, corner)
    given = {"corners": corners, "scores": scores}
    roles = ("boxes", "classes", "best", "count")
    made = {role: ctx.write(name) for role, name in zip(roles, node.outputs, strict=True)}
    by_class = node.int_("by_class") == 1
    scratch = ctx.temp(TensorType((p.n if by_class else 2 * p.n,), DType.F32), f"{node.name}_scratch")
    ctx.emit("class_boxes" if by_class else "best_boxes", {**given, **made, "scratch": scratch}, p)


def _interpret_corners(a: Arrays, p: CornerParams) -> None:
    a["out"].reshape(-1)[:] = corners_of(a["in"].reshape(p.n, p.width), a["anchors"].reshape(p.n, 4), p).reshape(-1)


def _store(a: Arrays, found: Found) -> None:
    for role, array in zip(("boxes", "classes", "best", "count"), found, strict=True):
        a[role].reshape(-1)[: array.size] = array.reshape(-1)


def _interpret_best(a: Arrays, p: SuppressParams) -> None:
    _store(a, best_boxes(a["corners"].reshape(p.n, 4), a["scores"].reshape(p.n, p.width), p))


def _interpret_class(a: Arrays, p: SuppressParams) -> None:
    _store(a, class_boxes(a["corners"].reshape(p.n, 4), a["scores"].reshape(p.n, p.width), p))


_OPERANDS = ("in corners", "in scores", "out boxes", "out classes", "out best", "out count", "out scratch")
KERNELS = (
    KernelDef("box_corners", ("in in", "in anchors", "out out"), CornerParams, _interpret_corners, kind="f32",
              needs_math=True, doc="corners of boxes by anchors"),
    KernelDef("best_boxes", _OPERANDS, SuppressParams, _interpret_best, kind="f32",
              doc="boxes that overlap no better one"),
    KernelDef("class_boxes", _OPERANDS, SuppressParams, _interpret_class, kind="f32",
              doc="boxes that overlap no better one of their class"),
)  # fmt: skip

OP = OpDef(
    "DetectionPostProcess", infer, derived, lower,
    {"classes": Int(), "each": Int(), "most": Int(), "room": Int(), "by_class": Int(0), "score": Float(),
     "iou": Float(), "y_scale": Float(), "x_scale": Float(), "h_scale": Float(), "w_scale": Float()},
    doc="boxes of a detector (internal)",
)  # fmt: skip
