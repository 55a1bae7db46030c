"""Layers that scripts/cliffs.py draws: each compiles, twice the same; and what counts as one that takes too much."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model
from tests.conftest import ROOT, require_module

sys.path.insert(0, str(ROOT / "scripts"))

from cliffs import Found, best_of, reason_for
from drawn_layers import KINDS, Drawn, draw, model_bytes, models_bytes


def drawn(count: int, *kinds: str) -> list[Drawn]:
    return draw(np.random.default_rng(7), count, kinds)


def test_a_seed_draws_the_same_layers() -> None:
    require_module("tflite_micro")
    first, second = drawn(12), drawn(12)
    assert first == second
    assert [model_bytes(x) for x in first] == [model_bytes(x) for x in second]


@pytest.mark.parametrize("kind", KINDS)
def test_layers_of_each_kind_compile(kind: str, tmp_path: Path) -> None:
    require_module("tflite_micro")
    for number, layer in enumerate(drawn(2, kind)):
        path = tmp_path / f"layer{number}.{layer.form}"
        path.write_bytes(model_bytes(layer))
        report = compile_model(path, load_board("mps2-an386"), CompileOptions(name="layer")).report
        counted = sum(entry["macs"] for entry in report["layers"])
        assert counted == 0 or counted == pytest.approx(layer.macs, rel=0.1)


@pytest.mark.parametrize("form", ["onnx", "tflite"])
def test_layers_of_one_form_are_one_model_for_fits(form: str, tmp_path: Path) -> None:
    require_module("tflite_micro")
    layers = [x for x in drawn(12, "pointwise", "add", "pool") if x.form == form]
    path = tmp_path / f"layers.{form}"
    path.write_bytes(models_bytes(layers))
    names = [
        x["name"] for x in compile_model(path, load_board("mps2-an386"), CompileOptions(name="m")).report["layers"]
    ]
    assert all(any(f"n_y{at}" in name for name in names) for at in range(len(layers)))


def test_what_the_best_take_is_told_apart_by_products_and_results() -> None:
    layer = Drawn("onnx", "conv", 8, 8, 32, 16, 3, 3)
    found = [Found(layer, "chip", 2000 + factor * layer.macs, 1e6, "conv_s8__dsp 100%") for factor in (1.5, 2.0, 9.0)]
    best = best_of(found)
    assert best["conv"][0] == pytest.approx(1.6, abs=0.05)
    assert found[2].times({"conv": (1.5, 0.0)}) == pytest.approx(6.0, rel=0.01)


def test_a_reason_names_chips_and_what_is_printed_of_a_layer() -> None:
    found = Found(Drawn("onnx", "pool", 8, 8, 32, 32, 3, 3), "stm32l4r5", 1e6, 1e6, "avg_pool_s8w__dsp 100%")
    entry = {"chips": "stm32*", "layers": "*avg_pool_s8w*", "why": "floats"}
    assert reason_for(found, [entry]) == "floats"
    assert reason_for(found, [{**entry, "chips": "rp*"}]) == ""
    assert reason_for(found, [{**entry, "layers": "*conv_s8*"}]) == ""
