"""The planner: legal plans at or near the lower bound, published arenas, overlaps, determinism."""

from __future__ import annotations

import time
from itertools import permutations
from random import Random

import pytest
from test_memory_graphs import (
    KINDS,
    ds_cnn_kws,
    layer_blocks,
    mobilenet_vww,
    network,
    random_blocks,
    random_overlaps,
)

from glowc.errors import InternalError
from glowc.memory import Block, Lifetime, MemoryPlan, Overlap, check, fits, plan


def checked(blocks: list[Block], overlaps: list[Overlap] | None = None, **options: object) -> MemoryPlan:
    found = plan(blocks, overlaps or [], **options)  # type: ignore[arg-type]
    check(found, blocks, overlaps or [])
    return found


def first_fit(blocks: list[Block]) -> int:
    """Height of plain first-fit in the given order, written without the planner."""
    placed: list[tuple[int, Block]] = []
    for block in blocks:
        at = 0
        for start, other in sorted(placed, key=lambda p: p[0]):
            apart = other.lifetime.end <= block.lifetime.begin or block.lifetime.end <= other.lifetime.begin
            if apart or at + block.size_bytes <= start:
                continue
            at = max(at, -(-(start + other.size_bytes) // block.align_bytes) * block.align_bytes)
        placed.append((at, block))
    return max(at + block.size_bytes for at, block in placed)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [5, 20, 60, 200])
def test_network_like_graphs_reach_the_bound_within_one_percent(kind: str, count: int) -> None:
    for seed in range(5):
        found = checked(network(kind, count, seed))
        assert found.arena_bytes <= 1.01 * found.lower_bound_bytes, (kind, count, seed)


@pytest.mark.parametrize("aligns", [(4,), (8,), (16,), (4, 8, 16)])
def test_aligned_networks_stay_near_the_bound(aligns: tuple[int, ...]) -> None:
    for seed in range(5):
        blocks = network("mixed", 60, seed, aligns)
        found = checked(blocks)
        assert all(found.offsets_bytes[b.name] % b.align_bytes == 0 for b in blocks)
        assert found.arena_bytes <= 1.01 * found.lower_bound_bytes


@pytest.mark.parametrize("seed", range(30))
def test_random_blocks_with_zero_sizes_and_mixed_alignment_pass_the_checker(seed: int) -> None:
    checked(random_blocks(40, seed, (1, 4, 8, 16)))


@pytest.mark.parametrize("seed", range(30))
def test_random_overlap_pairs_pass_the_checker_and_help(seed: int) -> None:
    blocks = random_blocks(25, seed, (1, 4, 16), life=8)
    overlaps = random_overlaps(blocks, seed)
    assert checked(blocks, overlaps).lower_bound_bytes <= checked(blocks).lower_bound_bytes


@pytest.mark.parametrize("seed", range(12))
def test_no_first_fit_order_of_few_blocks_beats_the_plan(seed: int) -> None:
    blocks = random_blocks(6, seed, (1, 8), life=4)
    assert checked(blocks).arena_bytes <= min(first_fit(list(order)) for order in permutations(blocks))


def test_vww_needs_55296_where_greedy_by_size_takes_73728() -> None:
    blocks, _ = layer_blocks(mobilenet_vww())
    # TFLM sorts by size and meets equal sizes last first.
    by_size = sorted(blocks, key=lambda b: (-b.size_bytes, -b.lifetime.begin))
    assert first_fit(by_size) == 73_728
    found = checked(blocks)
    assert found.arena_bytes == found.lower_bound_bytes == 55_296


@pytest.mark.parametrize(("layers", "arena"), [(mobilenet_vww(), 37_248), (ds_cnn_kws(), 8_640)])
def test_row_overlap_of_published_models_reaches_the_proven_optimum(layers: list, arena: int) -> None:
    blocks, overlaps = layer_blocks(layers)
    found = checked(blocks, overlaps)
    assert found.arena_bytes == found.lower_bound_bytes == arena


@pytest.mark.parametrize(("layers", "arena"), [(mobilenet_vww(), 37_632), (ds_cnn_kws(), 11_840)])
def test_ascending_rows_only_finds_the_optimum_that_the_bound_cannot_prove(layers: list, arena: int) -> None:
    blocks, both_ways = layer_blocks(layers)
    size = {b.name: b.size_bytes for b in blocks}
    overlaps = [Overlap(o.a, o.b, o.low, size[o.b]) for o in both_ways]
    assert checked(blocks, overlaps).arena_bytes == arena


def test_unaligned_sizes_count_the_gap_below_the_next_block_but_not_above_the_last() -> None:
    blocks = [Block(name, Lifetime(0, 1), 17, 16) for name in "abc"]
    found = checked(blocks)
    assert found.arena_bytes == found.lower_bound_bytes == 32 + 32 + 17


def test_small_alignment_fills_the_gap_of_a_large_one() -> None:
    blocks = [Block("a", Lifetime(0, 1), 20, 16), Block("b", Lifetime(0, 1), 20, 16)]
    blocks.append(Block("c", Lifetime(0, 1), 12, 4))
    found = checked(blocks)
    assert found.arena_bytes == found.lower_bound_bytes == 52


def test_overlap_lets_the_output_start_below_its_input() -> None:
    blocks = [Block("x", Lifetime(0, 1), 100, 4), Block("y", Lifetime(0, 1), 80, 4)]
    found = checked(blocks, [Overlap("y", "x", -12, 100)])
    assert found.arena_bytes == found.lower_bound_bytes == 112
    assert found.offsets_bytes["y"] - found.offsets_bytes["x"] == -12


@pytest.mark.parametrize(("floor", "found"), [(6, 6), (7, 20)])
def test_overlap_ends_at_its_distance_and_not_a_byte_beyond(floor: int, found: int) -> None:
    """`y` may start four bytes below `x`: above a floor of six bytes it does, above one of seven it does not fit."""
    blocks = [
        Block("floor", Lifetime(0, 1), floor, 1),
        Block("x", Lifetime(0, 1), 10, 1),
        Block("y", Lifetime(0, 1), 7, 1),
    ]
    plan = checked(blocks, [Overlap("y", "x", -4, 10)], fixed={"floor": 0, "x": 10})
    assert plan.offsets_bytes["y"] == found


def test_empty_forbidden_interval_is_full_in_place() -> None:
    blocks = [Block("x", Lifetime(0, 1), 100, 4), Block("y", Lifetime(0, 1), 100, 4)]
    assert checked(blocks, [Overlap("x", "y", 0, 0)]).arena_bytes == 100


def test_forbidden_interval_wider_than_the_blocks_keeps_them_apart() -> None:
    blocks = [Block("x", Lifetime(0, 1), 10, 1), Block("y", Lifetime(0, 1), 10, 1)]
    assert checked(blocks, [Overlap("x", "y", -50, 60)]).arena_bytes == 60


def test_fixed_offset_is_kept_and_others_move_around_it() -> None:
    blocks = [Block(name, Lifetime(0, 2), 100, 4) for name in "abc"]
    found = checked(blocks, fixed={"b": 60})
    assert (found.offsets_bytes["b"], found.arena_bytes) == (60, 360)
    assert checked(blocks, fixed={"b": 100}).arena_bytes == 300


def test_nothing_to_plan_is_an_empty_arena() -> None:
    assert checked([]).arena_bytes == 0
    assert checked([Block("z", Lifetime(0, 3), 0, 16)]).arena_bytes == 0


def test_same_blocks_give_the_same_plan_and_their_order_hardly_matters() -> None:
    blocks = random_blocks(60, seed=7, life=20)
    assert plan(blocks) == plan(blocks)
    Random(1).shuffle(blocks)
    assert checked(blocks).arena_bytes <= 1.05 * plan(random_blocks(60, seed=7, life=20)).arena_bytes


@pytest.mark.parametrize(
    ("blocks", "overlaps", "fixed", "said"),
    [
        ([Block("a", Lifetime(0, 0), 4, 4)], [], {}, "empty lifetime"),
        ([Block("a", Lifetime(0, 1), -4, 4)], [], {}, "size -4"),
        ([Block("a", Lifetime(0, 1), 4, 0)], [], {}, "alignment 0"),
        ([Block("a", Lifetime(0, 1), 4, 4)] * 2, [], {}, "given twice"),
        ([Block("a", Lifetime(0, 1), 4, 4)], [Overlap("a", "b", -4, 4)], {}, "unknown block"),
        ([Block("a", Lifetime(0, 1), 4, 4)], [Overlap("a", "a", -4, 4)], {}, "one block"),
        ([Block("a", Lifetime(0, 1), 4, 4)], [], {"b": 0}, "unknown block"),
        ([Block("a", Lifetime(0, 1), 4, 4)], [], {"a": 2}, "not a multiple"),
        ([Block(n, Lifetime(0, 1), 8, 4) for n in "ab"], [], {"a": 0, "b": 4}, "fixed offsets overlap"),
    ],
)
def test_contradicting_input_is_refused(
    blocks: list[Block], overlaps: list[Overlap], fixed: dict[str, int], said: str
) -> None:
    with pytest.raises(InternalError, match=said):
        plan(blocks, overlaps, fixed=fixed)


@pytest.mark.parametrize(("count", "limit_s"), [(60, 0.1), (1_000, 1.0), (10_000, 10.0)])
def test_planning_time_grows_gently(count: int, limit_s: float) -> None:
    blocks = network("mixed", count, seed=3, align_choices=(4, 16))
    # Time of this process alone, as other work on the machine says nothing about the planner; the least of three, as
    # what else is in memory makes a collection of garbage longer.
    taken = []
    for _ in range(3):
        start = time.process_time()
        found = plan(blocks)
        taken.append(time.process_time() - start)
    assert min(taken) < limit_s
    assert found.arena_bytes <= 1.01 * found.lower_bound_bytes


def test_search_without_a_reachable_bound_stops_in_time() -> None:
    blocks = random_blocks(1_000, seed=5, life=100)
    start = time.process_time()
    checked(blocks)
    assert time.process_time() - start < 2.0


def test_fits_says_yes_only_where_plan_finds_so_small_an_arena() -> None:
    lives = [(0, 2, 48), (1, 4, 32), (2, 6, 64), (3, 8, 16), (5, 9, 80), (7, 9, 48), (0, 9, 16)]
    blocks = [Block(f"b{n}", Lifetime(begin, end), size, 8) for n, (begin, end, size) in enumerate(lives)]
    for count in (3, 5, 7):
        least = plan(blocks[:count]).arena_bytes
        assert fits(blocks[:count], (), least)
        assert not fits(blocks[:count], (), least - 1)
