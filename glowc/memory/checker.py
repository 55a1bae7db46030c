"""Proof that a memory plan is right, by code that shares nothing with the planner but the types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from glowc.errors import InternalError
from glowc.memory.types import Block, MemoryPlan, Overlap

_Pairs = dict[tuple[str, str], tuple[int, int]]


def check(plan: MemoryPlan, blocks: Sequence[Block], overlaps: Iterable[Overlap] = ()) -> None:
    """Return when `plan` is correct for `blocks`; otherwise InternalError with one line per violation.

    Looked for: blocks unknown, missing or given twice; offsets negative, beyond the arena or
    misaligned; two blocks that overlap in time and come closer than their declared Overlap (or, with
    none, share a byte); an arena that is not the real maximum, or is below the claimed lower bound;
    a lower bound higher than the one that can be shown, which would prove too much. Of an arena in
    several regions besides: blocks in no region or in two, regions of one name or beyond their capacity,
    offsets and sums that are not those of the regions. Blocks of different regions never meet.
    """
    declared = list(overlaps)
    violations = _wrong_split(plan, blocks, declared) if plan.regions else _wrong_arena(plan, blocks, declared)
    if violations:
        raise InternalError(f"the memory plan by {plan.planner!r} is wrong", details=violations)


def _wrong_arena(plan: MemoryPlan, blocks: Sequence[Block], overlaps: Iterable[Overlap]) -> list[str]:
    pairs: _Pairs = {}
    for o in overlaps:
        pairs[o.a, o.b] = (o.low, o.high)
        pairs[o.b, o.a] = (-o.high, -o.low)
    violations = list(_wrong_names(plan, blocks))
    placed = [b for b in {b.name: b for b in blocks}.values() if b.name in plan.offsets_bytes]
    violations += _wrong_places(plan, placed)
    for newer, alive in _meetings(placed):
        violations += _too_close(plan, newer, alive, pairs)
    violations += _wrong_totals(plan, placed, blocks, pairs)
    return violations


def _wrong_split(plan: MemoryPlan, blocks: Sequence[Block], overlaps: Sequence[Overlap]) -> list[str]:
    violations = [f"region {n!r} is given {c} times" for n, c in Counter(r.name for r in plan.regions).items() if c > 1]
    homes = Counter(name for r in plan.regions for name in r.plan.offsets_bytes)
    violations += [f"block {name!r} lies in {count} regions" for name, count in homes.items() if count > 1]
    violations += _wrong_names(replace(plan, offsets_bytes=homes), blocks)
    violations += _wrong_names(plan, blocks)
    start = 0
    for region in plan.regions:
        inner, here = region.plan, [b for b in blocks if b.name in region.plan.offsets_bytes]
        names = {b.name for b in here}
        wrong = _wrong_arena(inner, here, [o for o in overlaps if o.a in names and o.b in names])
        if inner.regions:
            wrong.append("has regions itself")
        if inner.arena_bytes > region.capacity_bytes:
            wrong.append(f"takes {inner.arena_bytes} bytes, there are {region.capacity_bytes}")
        for name, offset in inner.offsets_bytes.items():
            if plan.offsets_bytes.get(name, start + offset) != start + offset:
                wrong.append(f"block {name!r} is at {start + offset}, said to be at {plan.offsets_bytes[name]}")
        violations += [f"region {region.name!r}: {text}" for text in wrong]
        start += inner.arena_bytes
    bound = sum(r.plan.lower_bound_bytes for r in plan.regions)
    totals = plan.arena_bytes, plan.lower_bound_bytes
    if totals != (start, bound):
        violations.append(f"arena and lower bound are {totals}, those of the regions add up to {(start, bound)}")
    return violations


def _wrong_names(plan: MemoryPlan, blocks: Sequence[Block]) -> Iterator[str]:
    for name, count in Counter(b.name for b in blocks).items():
        if count > 1:
            yield f"block {name!r} is given {count} times"
        if name not in plan.offsets_bytes:
            yield f"block {name!r} has no offset"
    for name in sorted(plan.offsets_bytes.keys() - {b.name for b in blocks}):
        yield f"offset for the unknown block {name!r}"


def _wrong_places(plan: MemoryPlan, blocks: Iterable[Block]) -> Iterator[str]:
    for b in blocks:
        offset = plan.offsets_bytes[b.name]
        if b.lifetime.begin >= b.lifetime.end:
            yield f"block {b.name!r} is never alive, so it would be safe nowhere: {b.lifetime}"
        if offset < 0:
            yield f"block {b.name!r} at {offset} is below the arena"
        if offset + b.size_bytes > plan.arena_bytes:
            yield f"block {b.name!r} ends at {offset + b.size_bytes}, the arena at {plan.arena_bytes}"
        if offset % b.align_bytes:
            yield f"block {b.name!r} at {offset} is not aligned to {b.align_bytes}"


def _meetings(blocks: Iterable[Block]) -> Iterator[tuple[Block, list[Block]]]:
    """Each block with those already alive when it begins: every pair that shares an instant, once."""
    alive: list[Block] = []
    for b in sorted(blocks, key=lambda b: (b.lifetime.begin, b.name)):
        alive = [other for other in alive if other.lifetime.end > b.lifetime.begin]
        yield b, alive
        alive = [*alive, b]


def _too_close(plan: MemoryPlan, newer: Block, alive: Iterable[Block], pairs: _Pairs) -> Iterator[str]:
    at = plan.offsets_bytes[newer.name]
    for older in alive:
        distance = at - plan.offsets_bytes[older.name]
        end = plan.offsets_bytes[older.name] + older.size_bytes
        declared = pairs.get((newer.name, older.name))
        if declared is None:
            bytes_in_both = min(at + newer.size_bytes, end) - max(at, end - older.size_bytes)
            clash = min(bytes_in_both, newer.size_bytes, older.size_bytes) > 0
        else:
            clash = declared[0] < distance < declared[1]
        if clash:
            allowed = "may share no byte" if declared is None else f"forbidden distances {declared}"
            yield (
                f"{_place(plan, newer)} and {_place(plan, older)} are alive together from instruction "
                f"{newer.lifetime.begin} and too close: {allowed}"
            )


def _place(plan: MemoryPlan, b: Block) -> str:
    offset = plan.offsets_bytes[b.name]
    return f"{b.name!r} [{offset}, {offset + b.size_bytes})"


def _wrong_totals(plan: MemoryPlan, placed: Iterable[Block], blocks: Sequence[Block], pairs: _Pairs) -> Iterator[str]:
    top = max((plan.offsets_bytes[b.name] + b.size_bytes for b in placed), default=0)
    if plan.arena_bytes != top:
        yield f"arena_bytes is {plan.arena_bytes}, the highest block ends at {top}"
    if plan.arena_bytes < plan.lower_bound_bytes:
        yield f"arena_bytes {plan.arena_bytes} is below the lower bound {plan.lower_bound_bytes}"
    bound = _bound(blocks, pairs)
    if plan.lower_bound_bytes > bound:
        yield f"lower_bound_bytes is {plan.lower_bound_bytes}, but no more than {bound} can be shown"


def _bound(blocks: Sequence[Block], pairs: _Pairs) -> int:
    """The lower bound that `MemoryPlan` defines, from every instant at which a block begins."""
    bound = max((b.size_bytes for b in blocks), default=0)
    grids = {b.align_bytes for b in blocks}
    for newer, older in _meetings(blocks):
        live = [newer, *older]
        for grid in grids:
            on_grid = [b for b in live if b.align_bytes % grid == 0]
            bound = max(bound, _live_bytes(on_grid, pairs, grid) if on_grid else 0)
    return bound


def _live_bytes(live: Sequence[Block], pairs: _Pairs, grid: int) -> int:
    need = {b.name: (b.size_bytes + grid - 1) // grid * grid for b in live}
    loss = max(need[b.name] - b.size_bytes for b in live)
    shared = 0
    for a, b in combinations(sorted(need), 2) if pairs else ():
        if (a, b) in pairs:
            shared += _common(need[a], need[b], pairs[a, b], grid)
    return sum(need.values()) - loss - shared


def _common(size_a: int, size_b: int, forbidden: tuple[int, int], grid: int) -> int:
    """The most bytes that a and b share at any legal distance on the grid."""
    low, high = forbidden
    # Beyond these distances nothing gets better: a starts with b, both end together, or they are
    # as close as the forbidden interval permits.
    distances = (0, size_b - size_a, low - low % grid, high + -high % grid)
    legal = [d for d in distances if not low < d < high]
    return max(max(0, min(d + size_a, size_b) - max(d, 0)) for d in legal)
