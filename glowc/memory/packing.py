"""First-fit over forbidden address intervals, kept up to date while the order changes."""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence

import numpy as np

from glowc.memory.conflicts import Problem


class Packing:
    """Every block at the lowest legal offset, given the neighbours that come before it in the order.

    The order is kept as one number per block, so that a block moves without renumbering the others
    and only the blocks whose surroundings really changed are placed again. `work` counts the
    neighbours looked at: a measure of time that is the same on every machine.
    """

    def __init__(self, problem: Problem, order: Sequence[int]) -> None:
        self._problem = problem
        self._rank = [0.0] * len(problem.sizes)
        self._offset = [0] * len(problem.sizes)
        self._end = list(problem.sizes)
        self._ends = np.array(problem.sizes, np.int64)  # the same
        self._movable = np.array([i not in problem.fixed for i in range(len(problem.sizes))], np.bool_)
        self.work = 0
        moving = [i for i in order if i not in problem.fixed]
        for rank, i in enumerate(moving, start=1):
            self._rank[i] = float(rank)
        self._ranks = sorted(self._rank[i] for i in moving)
        for i, offset in problem.fixed.items():
            self._put(i, offset)
        for i in moving:
            self._put(i, self._lowest(i))

    @property
    def height(self) -> int:
        """Bytes from 0 to the end of the highest block."""
        return int(self._ends.max(initial=0))

    @property
    def offsets(self) -> list[int]:
        """A copy of the offset of every block."""
        return list(self._offset)

    def peaks(self) -> list[int]:
        """The movable blocks that end at the height."""
        return np.flatnonzero(self._movable & (self._ends == self.height)).tolist()

    def earlier(self, block: int) -> list[int]:
        """The movable neighbours that come before `block` in the order."""
        mine, fixed = self._rank[block], self._problem.fixed
        near = [*self._problem.plain[block], *(j for j, _, _ in self._problem.special[block])]
        return [j for j in near if self._rank[j] < mine and j not in fixed]

    def promote(self, block: int, before: int) -> Mapping[int, tuple[float, int]]:
        """Move `block` right before `before` in the order; returns what `undo` needs."""
        rank = self._rank_before(before)
        old_rank = self._rank[block]
        self._ranks.pop(bisect_left(self._ranks, old_rank))
        # A move also costs a few passes over all blocks: the height, the peaks, the list of ranks.
        self.work += len(self._rank) // 8
        insort(self._ranks, rank)
        log = {block: (old_rank, self._offset[block])}
        self._rank[block] = rank
        self._settle(block, log)
        return log

    def undo(self, log: Mapping[int, tuple[float, int]]) -> None:
        """Take back the last `promote`."""
        for i, (rank, offset) in log.items():
            if rank != self._rank[i]:
                self._ranks.pop(bisect_left(self._ranks, self._rank[i]))
                insort(self._ranks, rank)
                self._rank[i] = rank
            self._put(i, offset)

    def _settle(self, start: int, log: dict[int, tuple[float, int]]) -> None:
        """Place `start` and whatever its move disturbs again, in the order."""
        rank, plain, special = self._rank, self._problem.plain, self._problem.special
        queue = [(rank[start], start)]
        queued = {start}
        while queue:
            mine, i = heapq.heappop(queue)
            offset = self._lowest(i)
            # The neighbours that `start` overtook must look again even when it stays where it is.
            if offset == self._offset[i] and i != start:
                continue
            log.setdefault(i, (mine, self._offset[i]))
            self._put(i, offset)
            for j in (*plain[i], *(k for k, _, _ in special[i])):
                if rank[j] > mine and j not in queued:
                    queued.add(j)
                    heapq.heappush(queue, (rank[j], j))

    def _rank_before(self, block: int) -> float:
        at = bisect_left(self._ranks, self._rank[block])
        low, high = (self._ranks[at - 1] if at else 0.0), self._rank[block]
        middle = (low + high) / 2
        if low < middle < high:
            return middle
        # Halving runs out of digits after some fifty moves to one place.
        self._renumber()
        return self._rank_before(block)

    def _renumber(self) -> None:
        movable = [i for i in range(len(self._rank)) if i not in self._problem.fixed]
        for rank, i in enumerate(sorted(movable, key=self._rank.__getitem__), start=1):
            self._rank[i] = float(rank)
        self._ranks = [float(rank) for rank in range(1, len(movable) + 1)]

    def _put(self, i: int, offset: int) -> None:
        self._offset[i] = offset
        self._end[i] = self._ends[i] = offset + self._problem.sizes[i]

    def _lowest(self, i: int) -> int:
        offset, end, rank, mine = self._offset, self._end, self._rank, self._rank[i]
        size, align = self._problem.sizes[i], self._problem.aligns[i]
        near = self._problem.plain[i]
        self.work += len(near) + 10
        busy = [(offset[j], end[j]) for j in near if rank[j] < mine]
        # A forbidden interval (low, high) of distances acts like a block at low + size that ends at high.
        for j, low, high in self._problem.special[i]:
            if rank[j] < mine:
                busy.append((offset[j] + low + size, offset[j] + high))
        busy.sort()
        at = 0
        for start, stop in busy:
            if at + size <= start:
                break
            if stop > at:
                at = -(-stop // align) * align
        return at
