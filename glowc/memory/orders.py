"""Orders in which first-fit meets the blocks; no single one is good for every network."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

from glowc.memory.conflicts import Problem

# Updates of live totals that the max-live orders may make: about a second of Python.
_MAX_LIVE_UPDATES = 2_000_000


def orders(problem: Problem) -> Iterator[tuple[str, list[int]]]:
    """(name, block indices in placing order), made one by one since the first is often optimal.

    total = live bytes at the worst instant of the block's life, width = length of life, area = size
    times width: TWA, TAW and WAT are MiniMalloc's preorders (Moffitt, "MiniMalloc: A Lightweight
    Memory Allocator for Hardware-Accelerated Machine Learning", ASPLOS 2023). The max-live orders
    are those of `MemoryAllocator::allocateAll` in the Glow compiler.
    """
    size, begin = problem.sizes, problem.begins
    width = [stop - start for start, stop in zip(begin, problem.ends, strict=True)]
    area = [s * w for s, w in zip(size, width, strict=True)]
    count = range(len(size))
    yield "size", sorted(count, key=lambda i: (-size[i], -width[i], begin[i]))
    total = _totals(problem)
    yield "total-width-area", sorted(count, key=lambda i: (-total[i], -width[i], -area[i], begin[i]))
    yield "total-area-width", sorted(count, key=lambda i: (-total[i], -area[i], -width[i], begin[i]))
    yield "width-area-total", sorted(count, key=lambda i: (-width[i], -area[i], -total[i], begin[i]))
    track = _tracks(problem)
    yield "left-edge", sorted(count, key=lambda i: (track[i], -size[i], begin[i]))
    yield "total-size", sorted(count, key=lambda i: (-total[i], -size[i], begin[i]))
    yield "program", sorted(count, key=lambda i: (begin[i], -size[i]))
    yield "reverse-program", sorted(count, key=lambda i: (-problem.ends[i], -size[i]))
    yield "area", sorted(count, key=lambda i: (-area[i], -size[i], begin[i]))
    if sum(len(clique) for clique in problem.cliques) <= _MAX_LIVE_UPDATES:
        yield "max-live-size", _max_live(problem, size)
        yield "max-live-width", _max_live(problem, width)


def _totals(problem: Problem) -> list[int]:
    totals = [0] * len(problem.sizes)
    for clique in problem.cliques:
        live = sum(problem.sizes[i] for i in clique)
        for i in clique:
            totals[i] = max(totals[i], live)
    return totals


def _tracks(problem: Problem) -> list[int]:
    """The left-edge algorithm (Hashimoto and Stevens, "Wire routing by optimizing channel assignment
    within large apertures", DAC 1971): in time order, each block to the first track that is free.

    In a chain every other block lands on track 0; when these are placed first, all others rest
    directly on their two neighbours, which is optimal whatever the sizes are.
    """
    busy: list[tuple[int, int]] = []
    free: list[int] = []
    track = [0] * len(problem.sizes)
    for i in sorted(range(len(track)), key=lambda i: (problem.begins[i], -problem.sizes[i])):
        while busy and busy[0][0] <= problem.begins[i]:
            heapq.heappush(free, heapq.heappop(busy)[1])
        track[i] = heapq.heappop(free) if free else len(busy)
        heapq.heappush(busy, (problem.ends[i], track[i]))
    return track


def _max_live(problem: Problem, weight: Sequence[int]) -> list[int]:
    """Again and again: the instant with the most unplaced live bytes, there the heaviest block."""
    left = [sum(problem.sizes[i] for i in clique) for clique in problem.cliques]
    waiting = [sorted(clique, key=lambda i: (weight[i], problem.sizes[i], -i)) for clique in problem.cliques]
    where: list[list[int]] = [[] for _ in problem.sizes]
    for c, clique in enumerate(problem.cliques):
        for i in clique:
            where[i].append(c)
    order: list[int] = []
    placed = [False] * len(where)
    # Totals only fall, so an entry may be too high but never too low: it is corrected when it is popped.
    heap = [(-total, c) for c, total in enumerate(left)]
    heapq.heapify(heap)
    while heap:
        total, c = heap[0]
        while waiting[c] and placed[waiting[c][-1]]:
            waiting[c].pop()
        if not waiting[c]:
            heapq.heappop(heap)
        elif -total != left[c]:
            heapq.heapreplace(heap, (-left[c], c))
        else:
            block = waiting[c].pop()
            placed[block] = True
            order.append(block)
            for other in where[block]:
                left[other] -= problem.sizes[block]
    return order
