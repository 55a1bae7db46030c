"""Palettes of the quantiser: which codes they have, what weights lose by them, and what stands in the file."""

from __future__ import annotations

import json
import shutil
from itertools import combinations
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from glowc.quant.palette import _classes, better_palette, first_palette
from glowc.quant.weight_types import Grid, WeightType
from glowc.quant.weights import Fit, Rows, fitted, nearest
from tests.conftest import ROOT, require_module
from tests.unit.cli_calls import Glowc

DIGITS = ROOT / "examples/digits"
PAIRS = ((WeightType.PALETTE4, WeightType.INT4, 0.9), (WeightType.PALETTE2, WeightType.INT2, 0.8))
GEMM = helper.make_node("Gemm", ["x", "w"], ["y"], transB=1)


def weights(channels: int = 24, count: int = 96) -> np.ndarray:
    rng = np.random.default_rng(5)
    return (rng.standard_normal((channels, count)) * rng.uniform(0.2, 3.0, (channels, 1))).astype(np.float32)


def loss(found: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.square(found.astype(np.float64) - wanted).sum() / np.square(wanted.astype(np.float64)).sum())


def test_a_grid_rounds_to_its_nearest_code() -> None:
    grid = Grid(WeightType.PALETTE2, (-100, -7, 0, 90))
    assert grid.nearest(np.asarray([-300.0, -53.6, -53.4, -3.4, 44.0, 46.0])).tolist() == [-100, -100, -7, 0, 0, 90]
    assert Grid(WeightType.INT2).nearest(np.asarray([-9.0, 0.6, 7.0])).tolist() == [-2, 1, 1]


def test_classes_are_those_of_the_least_squares() -> None:
    rng = np.random.default_rng(1)
    values, mass = np.sort(rng.choice(np.linspace(-1, 1, 201), 9, replace=False)), rng.uniform(0.1, 2.0, 9)
    found = _classes(values, mass, 4)

    def error(ends: tuple[int, ...]) -> float:
        parts = [slice(a, b) for a, b in zip((0, *ends), (*ends, 9), strict=True)]
        means = [np.average(values[p], weights=mass[p]) for p in parts]
        return sum(float((mass[p] * np.square(values[p] - m)).sum()) for p, m in zip(parts, means, strict=True))

    distance = np.square(values[:, None] - found).min(axis=1)
    assert float((mass * distance).sum()) <= min(error(ends) for ends in combinations(range(1, 9), 3)) * 1.001


@pytest.mark.parametrize(("kind", "plain", "most"), PAIRS)
def test_a_palette_loses_less_than_numbers_of_as_many_bits(kind: WeightType, plain: WeightType, most: float) -> None:
    array, least = weights(), np.full(24, 1e-12)
    coded, numbers = nearest(array, 0, least, kind=kind), nearest(array, 0, least, kind=plain)
    assert set(np.unique(coded.codes)) <= set(coded.grid.palette)
    assert len(coded.grid.palette) <= 1 << kind.bits
    assert max(map(abs, coded.grid.palette)) == 127
    assert (0 in coded.grid.palette) or kind is WeightType.PALETTE2
    assert loss(coded.values(), array) < most * loss(numbers.values(), array)


@pytest.mark.parametrize("kind", [WeightType.PALETTE4, WeightType.PALETTE2])
def test_fitted_codes_of_a_palette_give_nearer_sums_than_the_nearest(kind: WeightType) -> None:
    rng, array = np.random.default_rng(2), weights()
    inputs = rng.standard_normal((500, 96)) @ rng.standard_normal((96, 96)) * rng.uniform(0.1, 2.0, 96)
    sums, least = inputs @ array.T.astype(np.float64), np.full(24, 1e-12)
    near = nearest(array, 0, least, kind=kind)
    best = fitted(GEMM, array, Rows(inputs[None], sums[None], 500), least, Fit(ridge=0.01, follow=0.0), kind)
    assert set(np.unique(best.codes)) <= set(best.grid.palette)
    assert loss(inputs @ best.values().T, sums) < 0.8 * loss(inputs @ near.values().T, sums)


def test_weights_of_few_bits_follow_the_samples_further() -> None:
    assert Fit().of(WeightType.INT8) == Fit()
    assert Fit().of(WeightType.INT2) == Fit().of(WeightType.PALETTE4) == Fit(ridge=0.1, follow=1.0)
    assert Fit(ridge=0.01, follow=1.0).of(WeightType.INT4) == Fit(ridge=0.01, follow=1.0)


def test_codes_make_a_better_palette() -> None:
    target, least = weights()[None].astype(np.float64), np.full((1, 24), 1e-12)
    form = np.cov(np.random.default_rng(3).standard_normal((96, 400)))[None]
    grid, scales = first_palette(target, form, least, WeightType.PALETTE2)
    codes = grid.nearest(target / scales[..., None] * 1.2)  # fit a palette with larger steps

    def error(one: Grid, sizes: np.ndarray) -> float:
        levels = np.asarray(one.palette)[np.searchsorted(grid.palette, codes)]
        return float(np.einsum("goc,gcd,god->", *(a := levels * sizes[..., None] - target, form, a)))

    assert error(*better_palette(target, form, least, grid, scales, codes)) < error(grid, scales)


def test_scales_are_never_below_the_least() -> None:
    array = weights()
    least = np.full(24, float(np.abs(array).max()) / 20)
    coded = nearest(array, 0, least, kind=WeightType.PALETTE4)
    assert np.all(coded.scales >= least.astype(np.float32))
    assert max(map(abs, coded.grid.palette)) < 127


@pytest.mark.parametrize(
    "array", [np.zeros((4, 8), np.float32), np.ones((4, 8), np.float32), np.eye(4, 8, dtype=np.float32)]
)
def test_weights_of_fewer_values_than_a_palette_has_are_exact(array: np.ndarray) -> None:
    for kind in (WeightType.PALETTE4, WeightType.PALETTE2):
        assert np.allclose(nearest(array, 0, np.full(4, 1e-12), kind=kind).values(), array, atol=1e-6)


@pytest.mark.parametrize(("kind", "stored"), [("palette4", "UINT4"), ("palette2", "UINT2")])
def test_a_file_has_palettes_and_gives_onnxruntimes_bytes(glowc: Glowc, tmp_path: Path, kind: str, stored: str) -> None:
    require_module("onnxruntime")
    if not hasattr(TensorProto, stored):
        pytest.skip(f"this onnx has no {stored}")
    shutil.copy(DIGITS / "digits_fp32.onnx", tmp_path / "float.onnx")
    with np.load(DIGITS / "digits_test.npz") as data:
        np.savez(tmp_path / "codes.npz", image=data["image"][:16])
    done = glowc("quantize", tmp_path / "float.onnx", "--data", DIGITS / "digits_calibration.npz", "-o", "q.onnx",
                 "--weights", kind)  # fmt: skip
    assert done.status == 0, done.err
    assert f"2 layers with weights of {kind[-1]} bits, of a palette" in done.out
    model = onnx.load(tmp_path / "q.onnx")
    onnx.checker.check_model(model, full_check=True)
    kinds = {i.name: i.data_type for i in model.graph.initializer if i.name.endswith("_places")}
    assert set(kinds.values()) == {getattr(TensorProto, stored)}
    palettes = [numpy_helper.to_array(i) for i in model.graph.initializer if i.name.endswith("_palette")]
    assert len(palettes) == len(kinds) == 2
    assert all(len(p) <= 1 << int(kind[-1]) and p.dtype == np.int8 for p in palettes)
    done = glowc("validate", "q.onnx", "--board", "host", "--input", "codes.npz", "--json")
    assert done.status == 0, done.err
    assert json.loads(done.out)["outputs"][0]["equal_share"] == 1.0
    done = glowc("compile", "q.onnx", "--board", "mps2-an386", "-o", "out", "--json")
    assert done.status == 0, done.err
    assert len(json.loads((tmp_path / "out/report.json").read_text())["narrow_weights"]["packed"]) == 2
