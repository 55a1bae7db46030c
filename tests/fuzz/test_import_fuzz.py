"""Mutated models with fixed seeds: a bundle that compiles or a message. `make fuzz-import` tries new ones."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from tests.fuzz.build import model_of
from tests.fuzz.importing import GOOD, MESSAGE, run_mutants
from tests.fuzz.mutate import MUTATIONS, damaged, mutated
from tests.fuzz.strategy import seeded

MUTANTS, BATCH = 120, 40


@pytest.mark.qemu
@pytest.mark.parametrize("first", range(0, MUTANTS, BATCH))
def test_mutants_end_in_a_bundle_or_a_message(first: int, tmp_path: Path) -> None:
    made = list(run_mutants(range(first, first + BATCH), tmp_path, node_tests=False))
    assert [m for m in made if m.outcome not in GOOD] == []
    assert sum(m.outcome == MESSAGE for m in made) > BATCH // 4
    assert len({m.outcome for m in made}) == 2


def test_every_mutation_changes_some_model() -> None:
    assert len(set(MUTATIONS)) > 50
    model = next(m for m in map(model_of, (seeded(s)[0] for s in range(100))) if _has_attributes(m))
    done = {name for seed in range(800) for name in mutated(model, seed)[1]}
    assert {m.__name__ for m in MUTATIONS} - done <= {"change_float"}


def _has_attributes(model: onnx.ModelProto) -> bool:
    kinds = {a.type for n in model.graph.node for a in n.attribute}
    return {onnx.AttributeProto.INTS, onnx.AttributeProto.STRING} <= kinds and len(model.graph.node) > 5


def test_mutant_of_a_seed_is_always_the_same() -> None:
    model = model_of(seeded(5)[0])
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for seed in range(20):
        assert mutated(model, seed) == mutated(copy, seed)
    assert model == copy


def test_damaged_bytes_differ() -> None:
    import random

    data = bytes(range(200))
    assert sum(damaged(data, random.Random(seed)) != data for seed in range(40)) > 35
