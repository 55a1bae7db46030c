"""DetectionPostProcess: boxes that overlap better ones go; its kernels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pytest

from glowc.graph.attrs import AttrValue
from glowc.ops.base import OpError
from tests.kernels.case import Case
from tests.ops.one_node import check, graph_of
from tests.ops.program_cases import cases_of

RNG = np.random.default_rng(3)
_NONE = (None,) * 4


def attrs(**changed: AttrValue) -> Mapping[str, AttrValue]:
    scales = dict.fromkeys(("y_scale", "x_scale", "h_scale", "w_scale"), 1.0)
    return {
        "classes": 2,
        "each": 1,
        "most": 3,
        "room": 3,
        "by_class": 0,
        "score": 0.25,
        "iou": 0.5,
        **scales,
        **changed,
    }


def boxes(*centres: float) -> tuple[np.ndarray, np.ndarray]:
    """Return encodings and anchors of boxes of 1 x 1 along a line."""
    anchors = np.asarray([(0.0, x, 1.0, 1.0) for x in centres], np.float32)
    return np.zeros((1, len(centres), 4), np.float32), anchors


def scores(*rows: tuple[float, float]) -> np.ndarray:
    return np.asarray([rows], np.float32)


@pytest.mark.parametrize(("gap", "kept"), [(0.25, [0.75]), (0.5, [0.75, 0.5])])
def test_a_box_goes_when_it_shares_more_than_the_bound(gap: float, kept: list[float]) -> None:
    codes, anchors = boxes(0.0, gap)  # shared / union: 0.6, 0.33
    found = check("DetectionPostProcess", [codes, scores((0.75, 0), (0.5, 0)), anchors], attrs(), out_quants=_NONE)
    assert (found[2][0, : len(kept)].tolist(), found[3].tolist()) == (kept, [len(kept)])


def test_overlap_as_large_as_the_bound_stays() -> None:
    codes, anchors = boxes(0.0, 0.5)
    third = float(np.float32(0.5) / np.float32(1.5))
    given = [codes, scores((0.75, 0), (0.5, 0)), anchors]
    assert check("DetectionPostProcess", given, attrs(iou=third), out_quants=_NONE)[3] == 2
    assert check("DetectionPostProcess", given, attrs(iou=third - 1e-6), out_quants=_NONE)[3] == 1


def test_boxes_of_other_classes_overlap_only_without_by_class() -> None:
    codes, anchors = boxes(0.0, 0.0, 9.0)
    given = [codes, scores((0.75, 0), (0, 0.5), (0.25, 0)), anchors]
    best = check("DetectionPostProcess", given, attrs(), out_quants=_NONE)
    each = check("DetectionPostProcess", given, attrs(by_class=1, each=2), out_quants=_NONE)
    assert (best[1][0, :2].tolist(), best[3].tolist()) == ([0, 0], [2])
    assert (each[1][0].tolist(), each[2][0].tolist(), each[3].tolist()) == ([0, 1, 0], [0.75, 0.5, 0.25], [3])


def test_of_equal_scores_the_earlier_box_and_class_count() -> None:
    codes, anchors = boxes(0.0, 9.0, 18.0)
    given = [codes, scores((0.5, 0.5), (0.5, 0.5), (0.5, 0.5)), anchors]
    for by_class, classes in ((0, [0, 0]), (1, [0, 0])):
        found = check("DetectionPostProcess", given, attrs(by_class=by_class, each=2, most=2, room=4), out_quants=_NONE)
        assert found[0][0, 0, 1] == -0.5
        assert found[1][0, [0, 1]].tolist()[: 1 + by_class] == classes[: 1 + by_class]


def test_shapes_that_do_not_fit_are_told() -> None:
    codes, anchors = boxes(0.0, 9.0)
    with pytest.raises(OpError, match="3 classes of boxes"):
        graph_of("DetectionPostProcess", [codes, scores((1, 0), (0, 1)), anchors], attrs(classes=3), out_quants=_NONE)
    with pytest.raises(OpError, match="4 detections, 1 each, room for 3"):
        graph_of("DetectionPostProcess", [codes, scores((1, 0), (0, 1)), anchors], attrs(most=4, by_class=1),
                 out_quants=_NONE)  # fmt: skip


def kernel_cases() -> Iterator[Case]:
    kernels = {"box_corners", "best_boxes", "class_boxes"}
    for n, classes, background, steps in ((1, 1, 0, 9), (7, 3, 1, 4), (30, 2, 0, 1000)):
        codes = RNG.normal(0, 0.5, (1, n, 5)).astype(np.float32)
        anchors = np.concatenate((RNG.uniform(0, 2, (n, 2)), RNG.uniform(0.2, 1, (n, 2))), 1).astype(np.float32)
        drawn = (RNG.integers(0, steps, (1, n, classes + background)) / steps).astype(np.float32)
        for by_class, each, most in ((0, 1, 5), (0, 2, 4), (1, 3, 6), (1, 9, 2)):
            changed = attrs(classes=classes, each=each, most=most, room=8, by_class=by_class, score=0.2)
            yield from cases_of(kernels, "DetectionPostProcess", [codes, drawn, anchors], changed, outputs=4,
                                rtol=1e-6, why="exp of the C library")  # fmt: skip
