"""The checker: every injected error is found and named, and a right plan passes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest
from test_memory_graphs import network, random_blocks, random_overlaps

from glowc.errors import InternalError
from glowc.memory import Block, Lifetime, MemoryPlan, Overlap, check, plan

X, Y = Block("x", Lifetime(0, 2), 100, 4), Block("y", Lifetime(1, 3), 60, 8)


def good() -> MemoryPlan:
    return MemoryPlan({"x": 0, "y": 104}, 164, 160, "by hand")


def complaint(broken: MemoryPlan, blocks: list[Block], overlaps: list[Overlap] | None = None) -> str:
    with pytest.raises(InternalError) as caught:
        check(broken, blocks, overlaps or [])
    return str(caught.value)


def moved(name: str, offset: int, arena: int) -> MemoryPlan:
    return replace(good(), offsets_bytes={**good().offsets_bytes, name: offset}, arena_bytes=arena)


def test_a_right_plan_passes() -> None:
    check(good(), [X, Y])


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (replace(good(), offsets_bytes={"x": 0}), "'y' has no offset"),
        (replace(good(), offsets_bytes={"x": 0, "y": 104, "z": 0}), "unknown block 'z'"),
        (moved("x", -4, 164), "'x' at -4 is below the arena"),
        (moved("y", 112, 164), "'y' ends at 172, the arena at 164"),
        (moved("y", 108, 168), "'y' at 108 is not aligned to 8"),
        (moved("y", 96, 156), "alive together from instruction 1"),
        (replace(good(), arena_bytes=168), "arena_bytes is 168, the highest block ends at 164"),
        (replace(good(), lower_bound_bytes=168), "below the lower bound 168"),
        (moved("y", 200, 260), None),
        (replace(moved("y", 200, 260), lower_bound_bytes=260), "no more than 160 can be shown"),
    ],
)
def test_each_kind_of_error_is_named(broken: MemoryPlan, said: str | None) -> None:
    if said is None:
        check(broken, [X, Y])
    else:
        assert said in complaint(broken, [X, Y])


def test_all_violations_are_listed_at_once() -> None:
    broken = MemoryPlan({"x": -3, "z": 0}, 10, 20, "by hand")
    assert len(complaint(broken, [X, Y]).splitlines()) >= 7


def test_block_given_twice_is_an_error() -> None:
    assert "given 2 times" in complaint(good(), [X, Y, X])


def test_block_that_is_never_alive_is_an_error_as_it_would_clash_with_nobody() -> None:
    assert "'y' is never alive" in complaint(good(), [X, Block("y", Lifetime(3, 3), 60, 8)])


def test_declared_overlap_permits_its_ends_and_nothing_inside() -> None:
    pair = Overlap("y", "x", -16, 100)
    lower = MemoryPlan({"x": 16, "y": 0}, 116, 104, "by hand")
    check(lower, [X, Y], [pair])
    check(lower, [X, Y], [Overlap("x", "y", -100, 16)])
    inside = replace(lower, offsets_bytes={"x": 8, "y": 0}, arena_bytes=108)
    assert "forbidden distances" in complaint(inside, [X, Y], [pair])


def test_overlap_pair_says_nothing_about_a_third_block() -> None:
    z = Block("z", Lifetime(1, 2), 8, 4)
    broken = MemoryPlan({"x": 16, "y": 0, "z": 20}, 116, 0, "by hand")
    assert "'z' [20, 28)" in complaint(broken, [X, Y, z], [Overlap("y", "x", -16, 100)])


def test_empty_block_inside_another_is_legal() -> None:
    check(MemoryPlan({"x": 0, "e": 8}, 100, 100, "by hand"), [X, Block("e", Lifetime(0, 2), 0, 4)])


def mutants(right: MemoryPlan, blocks: list[Block], random: Random) -> Iterator[MemoryPlan]:
    """Plans with one change each; some of the changes happen to be harmless."""
    offsets = dict(right.offsets_bytes)
    for _ in range(20):
        a, b = random.sample(blocks, 2)
        yield replace(right, offsets_bytes={n: o for n, o in offsets.items() if n != a.name})
        yield replace(right, offsets_bytes={**offsets, a.name + "?": 0})
        yield replace(right, offsets_bytes={**offsets, a.name: offsets[b.name], b.name: offsets[a.name]})
        for shift in (-16, -8, -4, -1, 1, 4, 8, 16, a.size_bytes, -a.size_bytes):
            yield replace(right, offsets_bytes={**offsets, a.name: offsets[a.name] + shift})
        yield replace(right, offsets_bytes={**offsets, a.name: 0})
        yield replace(right, arena_bytes=right.arena_bytes + random.choice([-16, -4, -1, 1, 4, 64]))
        yield replace(right, lower_bound_bytes=right.arena_bytes + random.randrange(1, 9))
        if right.lower_bound_bytes < right.arena_bytes:
            yield replace(right, lower_bound_bytes=right.arena_bytes)


def really_wrong(tried: MemoryPlan, right: MemoryPlan, blocks: list[Block], overlaps: list[Overlap]) -> bool:
    """The definition of a right plan, byte by byte and pair by pair, at any cost."""
    at = tried.offsets_bytes
    if set(at) != {b.name for b in blocks} or any(at[b.name] < 0 or at[b.name] % b.align_bytes for b in blocks):
        return True
    if tried.arena_bytes != max(at[b.name] + b.size_bytes for b in blocks):
        return True
    forbidden = {(o.a, o.b): range(o.low + 1, o.high) for o in overlaps}
    for a in blocks:
        for b in blocks:
            if a is b or not set(range(*_life(a))) & set(range(*_life(b))):
                continue
            if at[a.name] - at[b.name] in forbidden.get((a.name, b.name), ()):
                return True
            declared = (a.name, b.name) in forbidden or (b.name, a.name) in forbidden
            if not declared and set(_bytes(a, at[a.name])) & set(_bytes(b, at[b.name])):
                return True
    return tried.lower_bound_bytes > right.lower_bound_bytes


def _life(block: Block) -> tuple[int, int]:
    return block.lifetime.begin, block.lifetime.end


def _bytes(block: Block, offset: int) -> range:
    return range(offset, offset + block.size_bytes)


def small_cases() -> Iterator[tuple[list[Block], list[Overlap]]]:
    for seed in range(3):
        blocks = [replace(b, size_bytes=b.size_bytes // 100 * 4) for b in network("mixed", 12, seed, (4, 8, 16))]
        yield blocks, []
        blocks = [replace(b, size_bytes=b.size_bytes // 20) for b in random_blocks(14, seed, (1, 4, 8), life=6)]
        yield blocks, random_overlaps(blocks, seed)


def test_every_injected_error_is_caught_and_nothing_else() -> None:
    caught = 0
    for blocks, overlaps in small_cases():
        right = plan(blocks, overlaps)
        check(right, blocks, overlaps)
        for tried in mutants(right, blocks, Random(len(blocks))):
            if really_wrong(tried, right, blocks, overlaps):
                complaint(tried, blocks, overlaps)
                caught += 1
            else:
                check(tried, blocks, overlaps)
    assert caught >= 50
