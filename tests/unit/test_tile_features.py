"""Features of tiles: how many there are, where windows leave the image, what a plan says of its blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from glowc.kernels.features import FEATURES, features
from glowc.kernels.tile_features import TILE_FEATURES
from glowc.program.ir import Instr, Plan
from tests.unit.test_costs import conv


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks(Plan):
    """A plan that computes blocks of outputs of several pixels."""

    pixels: int = 4
    outputs: int = 4
    grain: int = 16
    narrow: int = 0
    span: bool = False


def planned(instr: Instr, plan: Plan) -> dict[str, float]:
    return features(replace(instr, plan=plan))


def test_spans_are_four_pixels_of_a_row() -> None:
    found = features(conv(size=10))
    assert found["spans"] == 30
    assert found["span_blocks"] == 60
    assert found["span_macs"] == 60 * 36
    assert found["span_products"] == 60 * 9


def test_spans_at_the_edges_have_windows_that_are_not_whole() -> None:
    found = features(conv(size=10))
    assert found["torn_spans"] == 30 - 8  # eight rows whose middle span has whole windows
    assert found["torn_patch"] == (100 - 32) * 36
    assert found["whole_runs"] == 8 * 2 * 3
    assert found["runs"] == (8 * 3 + 2 * 2) * 10
    assert found["cut_runs"] == (8 * 3 + 2 * 2) * 2
    inner = features(replace(conv(size=10), params={**conv(size=10, pad=0).params, "in_h": 12, "in_w": 12}))
    assert inner["torn_spans"] == inner["cut_runs"] == 0


def test_runs_of_an_image_whose_channels_are_apart_are_copied_one_by_one() -> None:
    planar = replace(conv(size=10), params={**conv(size=10).params, "in_ch": 100, "in_col": 1})
    found = features(planar)
    assert found["cut_runs"] == found["runs"]
    assert found["torn_spans"] == found["spans"]


def test_blocks_of_a_plan() -> None:
    found = planned(conv(size=10), Blocks())
    assert found["plan_spans"] == 30
    assert found["plan_tiles"] == 60
    assert found["plan_steps"] == 60 * 3
    assert planned(conv(size=10), Blocks(span=True))["plan_spans"] == 25
    few = planned(conv(size=8), Blocks(pixels=8, outputs=6, narrow=2))
    assert (few["plan_tiles"], few["narrow_tiles"], few["narrow_steps"]) == (8, 8, 96)


def test_layers_without_products_have_no_tiles() -> None:
    found = features(replace(conv(), macs=0))
    assert not found.keys() & set(TILE_FEATURES)
    assert set(TILE_FEATURES) <= set(FEATURES)
