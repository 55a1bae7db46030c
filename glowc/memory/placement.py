"""Blocks and memory regions to a choice: which blocks lie in the fast region, so that most accesses go there.

Regions come fastest first. The first one gets the blocks that make the most accesses, as far as it can hold them and
the others can hold the rest; then the second one, from what is left; and so on.

The choice is found best first. Instant by instant, blocks that begin are put into the fast region or not; what a
region must hold at one instant (sizes, less what declared overlaps can share) is a lower bound, so dynamic
programming over the instants gives for every beginning of a choice the most accesses that its end can add. Complete
choices come out in falling order, and the planner decides whether their blocks fit; a set that it cannot place rules
out every choice that contains it (the cuts of Benders' decomposition). The first choice that fits is the best one, as
far as the planner finds places where there are any. Many blocks alive together make too many cases: then blocks are
taken by accesses per byte, and exchanged while that helps.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from glowc.memory.conflicts import live_sets, most_shared
from glowc.memory.planner import fits
from glowc.memory.types import Block, Overlap, Room

_Set = frozenset[int]

# The best-first search gives up after this many states, steps, and choices that do not fit.
_MOST_STATES, _MOST_STEPS, _MOST_CHOICES = 100_000, 100_000, 200
_MOST_EXCHANGES = 400


@dataclass(frozen=True, slots=True)
class Placement:
    """The blocks of every region, in the regions' order; `best`: no other placement makes more fast accesses."""

    groups: tuple[tuple[Block, ...], ...]
    best: bool


def place(
    blocks: Sequence[Block], overlaps: Sequence[Overlap], rooms: Sequence[Room], accesses: Mapping[str, int]
) -> Placement | None:
    """Return which blocks lie in which room, None when they do not fit; `accesses` by block, 0 where none is given."""
    problem = _Problem(blocks, overlaps, [accesses.get(b.name, 0) for b in blocks])
    every = frozenset(range(len(blocks)))
    if len(rooms) == 1:
        return Placement((tuple(blocks),), best=True) if problem.fits(every, rooms[0].capacity_bytes) else None
    rest_bytes = sum(room.capacity_bytes for room in rooms[1:])
    # Every further room has a topmost block, after which nothing has to be aligned.
    loose_bytes = rest_bytes + sum(max((b.align_bytes for b in blocks), default=1) - 1 for _ in rooms[2:])

    def rest_of(members: _Set) -> Placement | None:
        return place(problem.blocks_of(members), problem.overlaps_of(members), rooms[1:], accesses)

    def rest_fits(members: _Set) -> bool:
        return problem.fits(members, rest_bytes) if len(rooms) == 2 else rest_of(members) is not None

    fast_bytes = rooms[0].capacity_bytes
    chosen, best = _BestFirst(problem, fast_bytes, loose_bytes, rest_fits).search()
    if chosen is None and not best:
        chosen = _Greedy(problem, fast_bytes, rest_fits).search()
    if chosen is None:
        return None
    rest = rest_of(every - chosen)
    return rest and Placement((tuple(problem.blocks_of(chosen)), *rest.groups), best and rest.best)


@dataclass(slots=True)
class _Problem:
    blocks: Sequence[Block]
    overlaps: Sequence[Overlap]
    values: Sequence[int]
    answers: dict[tuple[_Set, int], bool] = field(default_factory=dict)

    def blocks_of(self, members: _Set) -> list[Block]:
        return [self.blocks[i] for i in sorted(members)]

    def overlaps_of(self, members: _Set) -> list[Overlap]:
        names = {self.blocks[i].name for i in members}
        return [o for o in self.overlaps if o.a in names and o.b in names]

    def value(self, members: _Set) -> int:
        return sum(self.values[i] for i in members)

    def fits(self, members: _Set, capacity: int) -> bool:
        """Ask the planner whether these blocks can lie in so many bytes."""
        key = (members, capacity)
        if key not in self.answers:
            blocks, overlaps = self.blocks_of(members), self.overlaps_of(members)
            self.answers[key] = fits(blocks, overlaps, capacity)
        return self.answers[key]

    def core(self, members: _Set, fits: Callable[[_Set], bool]) -> _Set:
        """Return a part of `members`, which do not fit, that does not fit either: none of it can be left out."""
        step = max(1, len(members) // 2)
        while True:
            for at in range(0, len(ordered := sorted(members)), step):
                fewer = members - frozenset(ordered[at : at + step])
                if fewer and not fits(fewer):
                    members = fewer
            if step == 1:
                return members
            step //= 2


@dataclass(slots=True)
class _Layer:
    """An instant: the blocks alive, those that begin, and for each legal set of fast ones what is still to gain."""

    alive: _Set
    born: Sequence[int]
    to_go: dict[_Set, int] = field(default_factory=dict)


class _BestFirst:
    def __init__(self, problem: _Problem, fast_bytes: int, rest_bytes: int, rest_fits: Callable[[_Set], bool]) -> None:
        self._problem = problem
        self._rooms = fast_bytes, rest_bytes
        self._rest_fits = rest_fits
        self._grid = min((b.align_bytes for b in problem.blocks), default=1)
        self._need: dict[_Set, int] = {}
        self._queued = 0
        index = {b.name: i for i, b in enumerate(problem.blocks)}
        self._shared: dict[int, dict[int, int]] = {}
        for o in problem.overlaps:
            a, b = index[o.a], index[o.b]
            most = most_shared(self._rounded(a), self._rounded(b), o.low, o.high, self._grid)
            self._shared.setdefault(a, {})[b] = self._shared.setdefault(b, {})[a] = most

    def _rounded(self, i: int) -> int:
        return -(-self._problem.blocks[i].size_bytes // self._grid) * self._grid

    def _bytes(self, members: _Set) -> int:
        """Return bytes that no plan can go below for blocks that are alive together."""
        if members not in self._need:
            sizes = {i: (self._rounded(i), self._problem.blocks[i].size_bytes) for i in members}
            shared = sum(n for i in members for j, n in self._shared.get(i, {}).items() if i < j and j in members)
            loss = max((rounded - size for rounded, size in sizes.values()), default=0)
            largest = max((size for _, size in sizes.values()), default=0)
            self._need[members] = max(largest, sum(rounded for rounded, _ in sizes.values()) - shared - loss)
        return self._need[members]

    def search(self) -> tuple[_Set | None, bool]:
        """Return the fast blocks; (None, True) when nothing can fit, (None, False) when it takes too long."""
        layers = self._layers()
        if layers is None:
            return None, False
        if not layers:
            return frozenset(), True
        cores: tuple[list[_Set], list[_Set]] = ([], [])
        heap: list[tuple[int, int, int, _Set, _Set, int]] = []
        count = choices = 0
        self._push(heap, layers, 0, frozenset(), frozenset(), 0)
        while heap:
            _, at, _, taken, left, value = heapq.heappop(heap)
            at, count = -at, count + 1
            if any(c <= taken for c in cores[0]) or any(c <= left for c in cores[1]):
                continue
            if at < len(layers):
                self._push(heap, layers, at, taken, left, value)
            elif not self._problem.fits(taken, self._rooms[0]):
                cores[0].append(self._problem.core(taken, lambda m: self._problem.fits(m, self._rooms[0])))
                choices += 1
            elif not self._rest_fits(left):
                cores[1].append(self._problem.core(left, self._rest_fits))
                choices += 1
            else:
                return taken, True
            if count > _MOST_STEPS or choices > _MOST_CHOICES:
                return None, False
        return None, True

    def _push(
        self, heap: list[tuple[int, int, int, _Set, _Set, int]], layers: Sequence[_Layer], at: int, taken: _Set,
        left: _Set, value: int,
    ) -> None:  # fmt: skip
        """Queue every choice for the blocks that begin at layer `at`: most accesses first, then the furthest."""
        layer = layers[at]
        for born in _subsets(layer.born):
            fast = (taken & layer.alive) | born
            if fast in layer.to_go:
                gained = value + self._problem.value(born)
                total = gained + layer.to_go[fast]
                rest = left | (frozenset(layer.born) - born)
                self._queued += 1
                heapq.heappush(heap, (-total, -at - 1, self._queued, taken | born, rest, gained))

    def _layers(self) -> list[_Layer] | None:
        """Return the instants with what every legal state can still gain, None when there are too many states."""
        layers: list[_Layer] = []
        for alive in live_sets(self._problem.blocks):
            before = layers[-1].alive if layers else frozenset()
            layers.append(_Layer(frozenset(alive), [i for i in alive if i not in before]))
        seen = 0
        states: set[_Set] = {frozenset()}
        for layer in layers:
            if len(states) << len(layer.born) > _MOST_STATES:
                return None
            kept = {s & layer.alive for s in states}
            states = {s | born for s in kept for born in _subsets(layer.born) if self._legal(layer.alive, s | born)}
            seen += len(states)
            layer.to_go = dict.fromkeys(states, 0)
            if seen > _MOST_STATES:
                return None
        for layer, after in zip(reversed(layers[:-1]), reversed(layers[1:]), strict=True):
            for fast in list(layer.to_go):
                ends = [
                    self._problem.value(born) + after.to_go[state]
                    for born in _subsets(after.born)
                    if (state := (fast & after.alive) | born) in after.to_go
                ]
                if ends:
                    layer.to_go[fast] = max(ends)
                else:
                    del layer.to_go[fast]
        return layers

    def _legal(self, alive: _Set, fast: _Set) -> bool:
        return self._bytes(fast) <= self._rooms[0] and self._bytes(alive - fast) <= self._rooms[1]


def _subsets(members: Sequence[int]) -> Iterator[_Set]:
    for bits in range(1 << len(members)):
        yield frozenset(i for place, i in enumerate(members) if bits >> place & 1)


class _Greedy:
    """By accesses per byte, then exchanges; blocks without which the rest does not fit come first."""

    def __init__(self, problem: _Problem, fast_bytes: int, rest_fits: Callable[[_Set], bool]) -> None:
        self._problem = problem
        self._fast_bytes = fast_bytes
        self._rest_fits = rest_fits
        self._every = frozenset(range(len(problem.blocks)))
        blocks = problem.blocks
        self._order = sorted(self._every, key=lambda i: (-problem.values[i] / max(blocks[i].size_bytes, 1), i))

    def search(self) -> _Set | None:
        """Return the fast blocks, None when no way was found to fit all."""
        forced: _Set = frozenset()
        for _ in self._every:
            fast = self._filled(forced)
            left = self._every - fast
            if self._rest_fits(left):
                return self._exchanged(fast, forced)
            core = self._problem.core(left, self._rest_fits)
            more = next((i for i in self._order if i in core and self._fits(forced | {i})), None)
            if more is None:
                return None
            forced |= {more}
        return None

    def _fits(self, members: _Set) -> bool:
        return self._problem.fits(members, self._fast_bytes)

    def _filled(self, fast: _Set) -> _Set:
        for i in self._order:
            if i not in fast and self._fits(fast | {i}):
                fast |= {i}
        return fast

    def _exchanged(self, fast: _Set, forced: _Set) -> _Set:
        tried, better = 0, True
        while better:
            better = False
            for i in self._order:
                if i in fast or tried >= _MOST_EXCHANGES:
                    continue
                tried += 1
                other = self._with(i, fast, forced)
                gains = other is not None and self._problem.value(other) > self._problem.value(fast)
                if other is not None and gains and self._rest_fits(self._every - other):
                    fast, better = other, True
        return fast

    def _with(self, new: int, fast: _Set, forced: _Set) -> _Set | None:
        """Return `fast` with a block instead of the cheapest ones that are in its way."""
        life = self._problem.blocks[new].lifetime
        near = [
            i for i in reversed(self._order)
            if i in fast - forced and self._problem.blocks[i].lifetime.begin < life.end
            and life.begin < self._problem.blocks[i].lifetime.end
        ]  # fmt: skip
        members = fast | {new}
        for i in near:
            if self._fits(members):
                break
            members -= {i}
        return self._filled(members) if self._fits(members) else None
