"""Blocks with lifetimes to offsets in one arena: a portfolio of first-fit orders, then local search or every order.

Both stop at once when the height reaches the lower bound, which is then the proof of optimality.
How long to search is counted in steps, never read from a clock: equal input gives equal plans.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations
from random import Random
from types import MappingProxyType

from glowc.memory.conflicts import Problem, build, lower_bound
from glowc.memory.orders import orders
from glowc.memory.packing import Packing
from glowc.memory.types import Block, MemoryPlan, Overlap

# Neighbours that one second of Python looks at on a slow machine; the unit after `time_limit_s`.
_STEPS_PER_S = 2_000_000
# The search may take this long per block, and this long at least: small networks stay below 0.1 s.
_SEARCH_S_PER_BLOCK = 0.0008
_SEARCH_S_LEAST = 0.08
# Nominal seconds of one question.
_QUESTION_S = 0.01
# Of so many blocks every order is tried.
_FEW = 5
# A move that raises the arena is kept while it beats the height this many moves ago.
_HISTORY = 24
# After this many moves in vain, the last few are made whatever they cost.
_PATIENCE, _KICKS = 150, 6
# How often a move looks one block deeper below the peak.
_DEEPER = 0.4


def plan(
    blocks: Sequence[Block],
    overlaps: Iterable[Overlap] = (),
    *,
    fixed: Mapping[str, int] = MappingProxyType({}),
    time_limit_s: float = 4.0,
    enough_bytes: int = 0,
) -> MemoryPlan:
    """The lowest arena found for these blocks.

    `fixed` gives blocks that must sit at a known offset in bytes. `time_limit_s` is nominal: it is
    turned into a number of steps, so the result never depends on the machine. The search ends at
    an arena of `enough_bytes` or less; one with more time never gives a larger arena. InternalError
    when the blocks, overlaps or fixed offsets contradict themselves.
    """
    overlaps = list(overlaps)
    problem = build(blocks, overlaps, fixed)
    bound = lower_bound(blocks, overlaps)
    # A fixed block may reach above the bound; no search can lower it.
    target = max(bound, *(offset + problem.sizes[i] for i, offset in problem.fixed.items()), enough_bytes)
    steps = _STEPS_PER_S * min(time_limit_s, max(_SEARCH_S_LEAST, _SEARCH_S_PER_BLOCK * len(blocks)))
    method, offsets = _search(problem, target, int(steps))
    return MemoryPlan(
        offsets_bytes={block.name: offset for block, offset in zip(blocks, offsets, strict=True)},
        arena_bytes=_height(problem, offsets),
        lower_bound_bytes=bound,
        planner=method,
    )


def fits(
    blocks: Sequence[Block],
    overlaps: Iterable[Overlap],
    arena_bytes: int,
    *,
    fixed: Mapping[str, int] = MappingProxyType({}),
) -> bool:
    """Say whether a short search finds an arena of so many bytes; if so, `plan` finds one."""
    overlaps = list(overlaps)
    if lower_bound(blocks, overlaps) > arena_bytes:
        return False
    found = plan(blocks, overlaps, fixed=fixed, time_limit_s=_QUESTION_S, enough_bytes=arena_bytes)
    return found.arena_bytes <= arena_bytes


def _search(problem: Problem, target: int, steps: int) -> tuple[str, list[int]]:
    """The name of the method that won, and its offsets."""
    tried: list[tuple[int, str, Packing]] = []
    for name, order in orders(problem):
        packing = Packing(problem, order)
        tried.append((packing.height, name, packing))
        if packing.height <= target:
            return name, packing.offsets
    # The two best starts, as the best one may be a dead end.
    tried.sort(key=lambda entry: entry[0])
    best_height, best_name, best_offsets = tried[0][0], tried[0][1], tried[0][2].offsets
    if len(problem.sizes) <= _FEW:
        found = min(
            (Packing(problem, order) for order in permutations(range(len(problem.sizes)))), key=lambda p: p.height
        )
        return (best_name, best_offsets) if found.height == best_height else ("every order", found.offsets)
    for height, name, packing in tried[:2]:
        offsets = _improve(packing, target, steps // 2) if height > target else packing.offsets
        if _height(problem, offsets) < best_height:
            best_height, best_name, best_offsets = _height(problem, offsets), f"{name}+promote", offsets
        if best_height <= target:
            break
    return best_name, best_offsets


def _improve(packing: Packing, target: int, steps: int) -> list[int]:
    """Promote a block at the peak before one that is in its way, again and again.

    Late acceptance hill climbing (Burke and Bykov, "The late acceptance Hill-Climbing heuristic",
    European Journal of Operational Research 258, 2017): worse moves pass while they beat the
    height of `_HISTORY` moves ago, which leaves plateaus without a temperature to tune.
    """
    random = Random(0)
    current = best = packing.height
    best_offsets = packing.offsets
    history = [current] * _HISTORY
    last_work = packing.work + steps
    in_vain = 0
    while best > target and packing.work < last_work:
        block, before = _pick(packing, random)
        if block == before:
            break
        log = packing.promote(block, before)
        height, in_vain = packing.height, in_vain + 1
        kicked = in_vain % _PATIENCE >= _PATIENCE - _KICKS
        if kicked or height <= max(current, history[in_vain % _HISTORY]):
            current = height
        else:
            packing.undo(log)
        if kicked:
            history = [current] * _HISTORY
        history[in_vain % _HISTORY] = current
        if current < best:
            best, best_offsets, in_vain = current, packing.offsets, 0
    return best_offsets


def _pick(packing: Packing, random: Random) -> tuple[int, int]:
    """A block at the peak, or one that it rests on, and an earlier neighbour of it.

    Twice the same number when nothing can move.
    """
    peaks = packing.peaks()
    random.shuffle(peaks)
    for block in peaks:
        earlier = packing.earlier(block)
        if earlier:
            return _deeper(packing, block, earlier, random)
    return -1, -1


def _deeper(packing: Packing, block: int, earlier: list[int], random: Random) -> tuple[int, int]:
    """Now and then the cause of a peak lies some blocks below it."""
    before = random.choice(earlier)
    below = packing.earlier(before)
    if below and random.random() < _DEEPER:
        return _deeper(packing, before, below, random)
    return block, before


def _height(problem: Problem, offsets: Sequence[int]) -> int:
    return max((offset + size for offset, size in zip(offsets, problem.sizes, strict=True)), default=0)
