"""The planner against an exact solver: CP-SAT (ortools, extra `plan`) proves the lowest arena of small instances.

The planner stops its search after a fixed number of steps. Measured: of 400 graphs that look like networks 399 get the
lowest arena and one 0.005 % more; of 40 random sets of blocks 38 get it (worst 1.0001 times the lowest), with random
overlaps 38 (1.022), and 33 (1.079) where nearly all blocks are alive together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from test_memory_graphs import KINDS, ds_cnn_kws, layer_blocks, mobilenet_vww, network, random_blocks, random_overlaps

from glowc.memory import Block, Overlap, check, plan, planner
from tests.conftest import require

try:
    from ortools.sat.python import cp_model
except ImportError:
    cp_model = None

Instance = tuple[list[Block], list[Overlap]]
SEEDS = range(40)


@pytest.fixture(autouse=True)
def _needs_ortools() -> None:
    require(cp_model is not None, "ortools is not installed (pip install 'glowc[plan]')")


def optimum(blocks: Sequence[Block], overlaps: Sequence[Overlap], upper: int) -> int:
    """The lowest arena there is, proven; `upper` is one that is known to be possible."""
    model = cp_model.CpModel()
    height = model.new_int_var(0, upper, "height")
    at = {}
    for b in blocks:
        at[b.name] = b.align_bytes * model.new_int_var(0, max(0, (upper - b.size_bytes) // b.align_bytes), b.name)
        model.add(height >= at[b.name] + b.size_bytes)
    for a, b, low, high in forbidden(blocks, overlaps):
        below = model.new_bool_var("")
        model.add(at[a] - at[b] <= low).only_enforce_if(below)
        model.add(at[a] - at[b] >= high).only_enforce_if(~below)
    model.minimize(height)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers, solver.parameters.random_seed = 1, 0
    solver.parameters.max_deterministic_time = 20
    status = solver.solve(model)
    assert status == cp_model.OPTIMAL, "CP-SAT proved nothing: make the instance smaller"
    return int(solver.objective_value)


def forbidden(blocks: Sequence[Block], overlaps: Sequence[Overlap]) -> list[tuple[str, str, int, int]]:
    """Return (a, b, low, high) for blocks alive together: no distance offset[a] - offset[b] strictly between."""
    declared = {frozenset((o.a, o.b)): o for o in overlaps}
    found = []
    for i, a in enumerate(blocks):
        for b in blocks[i + 1 :]:
            if a.lifetime.end <= b.lifetime.begin or b.lifetime.end <= a.lifetime.begin:
                continue
            o = declared.get(frozenset((a.name, b.name)))
            if o is not None and o.low < o.high:
                found.append((o.a, o.b, o.low, o.high))
            elif o is None and a.size_bytes and b.size_bytes:
                found.append((a.name, b.name, -a.size_bytes, b.size_bytes))
    return found


def ratio(instance: Instance) -> float:
    """Planned arena over the lowest one; the bound that the plan states is never above the lowest."""
    blocks, overlaps = instance
    found = plan(blocks, overlaps)
    check(found, blocks, overlaps)
    best = optimum(blocks, overlaps, found.arena_bytes)
    assert found.lower_bound_bytes <= best <= found.arena_bytes
    return found.arena_bytes / max(best, 1)


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("align", [1, 16])
def test_arenas_of_network_like_graphs_are_the_lowest(kind: str, align: int) -> None:
    ratios = [ratio((network(kind, 18, seed, (align,)), [])) for seed in range(10)]
    assert ratios.count(1) >= 9
    assert max(ratios) <= 1.0001


@pytest.mark.parametrize("layers", [ds_cnn_kws(), mobilenet_vww()], ids=["ds_cnn", "mobilenet"])
@pytest.mark.parametrize("rows", ["plain", "both ways", "ascending"])
def test_arenas_of_published_models_are_the_lowest(layers: list, rows: str) -> None:
    blocks, both = layer_blocks(layers)
    size = {b.name: b.size_bytes for b in blocks}
    up = [Overlap(o.a, o.b, o.low, size[o.b]) for o in both]
    assert ratio((blocks, {"plain": [], "both ways": both, "ascending": up}[rows])) == 1


def apart(seed: int) -> Instance:
    return random_blocks(12, seed, (1, 4, 16), 6), []


def overlapping(seed: int) -> Instance:
    blocks = random_blocks(10, seed, (1, 4, 16), 6)
    return blocks, random_overlaps(blocks, seed, 0.5)


def crowded(seed: int) -> Instance:
    blocks = random_blocks(11, seed, (1, 4), 10)
    return blocks, random_overlaps(blocks, seed, 0.4)


@pytest.mark.parametrize(("make", "equal", "worst"), [(apart, 38, 1.001), (overlapping, 38, 1.03), (crowded, 33, 1.08)])
def test_arenas_of_random_blocks_are_the_lowest_nearly_always(
    make: Callable[[int], Instance], equal: int, worst: float
) -> None:
    """How many of 40 are the lowest at least, and by how much the others miss at most."""
    ratios = [ratio(make(seed)) for seed in SEEDS]
    assert ratios.count(1) >= equal
    assert max(ratios) <= worst


def test_longer_search_finds_what_the_short_one_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The moves of the search lead to the optimum: it is only a matter of steps."""
    missed = [overlapping(seed) for seed in SEEDS if ratio(overlapping(seed)) > 1]
    assert missed
    monkeypatch.setattr(planner, "_SEARCH_S_LEAST", 0.5)
    assert [ratio(instance) for instance in missed] == [1] * len(missed)
