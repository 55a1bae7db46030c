"""Random quantised networks: fixed seeds, and every network that ever showed a defect. `make fuzz` tries new ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from scripts.fuzz_ways import run
from tests.conftest import require_module
from tests.fuzz.board import check_board
from tests.fuzz.build import model_of, samples_of
from tests.fuzz.check import DIFFERENT, EQUAL, UNEXPECTED, Finding, check_c, examine
from tests.fuzz.recipe import Recipe, from_json, to_json
from tests.fuzz.shrink import shrunk
from tests.fuzz.strategy import seeded

SEEDS, BATCH = 300, 50
CASES = sorted((Path(__file__).parent / "cases").glob("*.json"))
BOARDS = ("mps2-an385", "mps2-an386", "mps3-an547", "linux-aarch64")
NETWORKS_ON_A_BOARD = 6
SEEDS_OF_WAYS = (70217, 70219, 70230)


def unexpected(recipes: dict[str, Recipe], work: Path) -> dict[str, str]:
    """Return what is wrong with which network, in numpy or in C."""
    require_module("onnxruntime")
    numbered = dict(enumerate(recipes.values()))
    findings = {n: examine(recipe) for n, recipe in numbered.items()}
    findings |= check_c(numbered, findings, work)
    names = list(recipes)
    return {names[n]: f"{f.kind}: {f.text[-500:]}" for n, f in findings.items() if f.kind in UNEXPECTED}


@pytest.mark.parametrize("first", range(0, SEEDS, BATCH))
def test_random_networks_give_the_codes_of_onnxruntime(first: int, tmp_path: Path) -> None:
    assert unexpected({f"seed {s}": seeded(s)[0] for s in range(first, first + BATCH)}, tmp_path) == {}


def test_networks_that_once_showed_a_defect(tmp_path: Path) -> None:
    assert CASES
    assert unexpected({path.name: from_json(path.read_text()) for path in CASES}, tmp_path) == {}


@pytest.mark.qemu
@pytest.mark.parametrize("board", BOARDS)
def test_random_networks_on_a_board(board: str, tmp_path: Path) -> None:
    require_module("onnxruntime")
    wrong = {}
    for seed in range(1000, 1000 + NETWORKS_ON_A_BOARD):
        finding = examine(seeded(seed)[0])
        differs = check_board(finding, board, tmp_path) if finding.codes is not None else None
        if differs is not None:
            wrong[seed] = differs.text
    assert wrong == {}


@pytest.mark.qemu
@pytest.mark.parametrize("seed", SEEDS_OF_WAYS)
def test_networks_in_another_way_give_the_same_codes(seed: int) -> None:
    findings = list(run(seed, 1))
    assert [f.kind for f in findings] == [EQUAL], findings


@pytest.mark.parametrize("seed", [0, 3, 8])
def test_recipe_is_read_back_from_its_text(seed: int) -> None:
    recipe = seeded(seed)[0]
    again = from_json(to_json(recipe))
    assert model_of(again) == model_of(recipe)
    samples = samples_of(recipe, model_of(recipe))
    assert all(np.array_equal(samples[k], v) for k, v in samples_of(again, model_of(again)).items())


@pytest.mark.parametrize("seed", range(20))
def test_networks_are_valid_onnx(seed: int) -> None:
    model = model_of(seeded(seed)[0])
    onnx.checker.check_model(model) if all(not n.domain for n in model.graph.node) else None


def test_shrinking_keeps_what_is_looked_for_and_drops_the_rest() -> None:
    recipe, rolled = next(pair for pair in map(seeded, range(100)) if len(pair[0].layers) > 5 and _convs(pair[0]))
    small = shrunk(rolled, lambda r: _convs(r) > 0, 200)
    assert small is not None
    assert _convs(small) == 1
    assert len(small.layers) < len(recipe.layers)


def _convs(recipe: Recipe) -> int:
    return sum(layer.op == "Conv" for layer in recipe.layers)


def test_difference_is_found_and_blamed_on_its_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    require_module("onnxruntime")
    recipe = next(r for r, _ in map(seeded, range(100)) if r.layers[0].op == "Conv" and examine(r).kind == EQUAL)
    real = examine.__globals__["interpreted"]

    def off_by_one(*args: object) -> dict[str, np.ndarray]:
        return {name: codes ^ 1 for name, codes in real(*args).items()}

    monkeypatch.setitem(examine.__globals__, "interpreted", off_by_one)
    finding: Finding = examine(recipe)
    assert finding.kind == DIFFERENT
    assert finding.text.startswith("Conv")
