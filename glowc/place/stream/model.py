"""A run of instructions as stages that make their output row by row: order of the rows, rings, liveness.

Rows are made on demand: before a stage makes row y, the stages that it reads make what is missing. A stage beside
another one that reads the same rows may be its companion: it then runs when the other one has gone on so far that
the rows would otherwise have to be kept for it. No row is made twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

Ints = np.ndarray


@dataclass(frozen=True, slots=True)
class Source:
    """One input of a stage: output of the stage `producer` of the segment, else a tensor from outside."""

    role: str
    buffer: str
    producer: int | None
    windows: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """One instruction: its output as rows. `sums`: every row is added to the one row that the output has.

    `over` are the inputs whose rows the output rows may overwrite one by one (elementwise, equal sizes).
    """

    out: str
    rows: int
    row_bytes: int
    sources: tuple[Source, ...]
    leaves: bool
    sums: bool = False
    over: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outside:
    """A tensor that the segment reads: `dies` here, `fed` row by row while the segment runs."""

    buffer: str
    rows: int
    row_bytes: int
    planes: int
    dies: bool
    fed: bool = False

    @property
    def size_bytes(self) -> int:
        """Bytes of the whole tensor."""
        return self.rows * self.row_bytes * self.planes


@dataclass(frozen=True, slots=True)
class Model:
    """The stages of a segment in the order of the program, and what they read from outside."""

    stages: tuple[Stage, ...]
    outside: Mapping[str, Outside]

    @property
    def fed(self) -> Outside | None:
        """The input that arrives row by row, if any."""
        return next((o for o in self.outside.values() if o.fed), None)

    def consumers(self, buffer: str) -> list[int]:
        """Return the stages that read a buffer."""
        return [i for i, s in enumerate(self.stages) if any(source.buffer == buffer for source in s.sources)]


Companions = tuple[tuple[int, int], ...]
"""Pairs (companion, stage that it follows)."""


def possible_companions(model: Model) -> list[tuple[int, int]]:
    """Return the pairs of stages that read the same buffer, either way round."""
    buffers = [*(s.out for s in model.stages), *model.outside]
    readers = [model.consumers(b) for b in buffers]
    return list(dict.fromkeys((e, f) for group in readers for f in group for e in group if e != f))


def order_rows(model: Model, companions: Companions = ()) -> list[int]:
    """Return the stage of each step; the number of stages stands for a row of the input that is fed."""
    return _Order(model, companions).run()


class _Order:
    def __init__(self, model: Model, companions: Companions) -> None:
        self.model = model
        self.followers: dict[int, list[int]] = {}
        for companion, leader in companions:
            self.followers.setdefault(leader, []).append(companion)
        self.made = [0] * (len(model.stages) + 1)
        self.steps: list[int] = []

    def run(self) -> list[int]:
        stages, fed = self.model.stages, self.model.fed
        for i in reversed(range(len(stages))):
            while stages[i].leaves and self.made[i] < stages[i].rows:
                self.make(i)
        while fed is not None and self.made[-1] < fed.rows:
            self.feed()
        return self.steps

    def feed(self) -> None:
        self.steps.append(len(self.model.stages))
        self.made[-1] += 1

    def make(self, i: int) -> None:
        stage = self.model.stages[i]
        goal = self.made[i] + 1
        for source in stage.sources:
            need = source.windows[goal - 1][1] if source.windows[goal - 1][0] < source.windows[goal - 1][1] else 0
            if source.producer is not None:
                while self.made[source.producer] < need:
                    self.make(source.producer)
            elif self.model.outside[source.buffer].fed:
                while self.made[-1] < need:
                    self.feed()
        if self.made[i] >= goal:
            return
        self.steps.append(i)
        self.made[i] = goal
        for follower in self.followers.get(i, ()):
            while self.due(follower, i):
                self.make(follower)

    def due(self, follower: int, leader: int) -> bool:
        """The follower's next row could be made, and the leader no longer needs all rows that it reads."""
        stage, ahead = self.model.stages[follower], self.model.stages[leader]
        y = self.made[follower]
        if y >= stage.rows:
            return False
        for source in stage.sources:
            first, last = source.windows[y]
            if first >= last:
                continue
            fed = source.producer is None and self.model.outside[source.buffer].fed
            ready = self.made[-1] if fed else last if source.producer is None else self.made[source.producer]
            if ready < last:
                return False
        for mine in stage.sources:
            for other in ahead.sources:
                if mine.buffer == other.buffer:
                    later = other.windows[self.made[leader] :]
                    keeps = min((w[0] for w in later if w[0] < w[1]), default=1 << 30)
                    return mine.windows[y][0] < keeps
        return False


@dataclass(slots=True)
class Ring:
    """Rows that share one buffer: those of `stages` (each overwrites the one before), or of a tensor from outside.

    Row r is alive at the steps born[r] <= t <= dead[r]; dead < born: never. `rows` slots of `row_bytes` each.
    """

    buffer: str
    stages: tuple[int, ...]
    row_bytes: int
    born: Ints
    dead: Ints
    rows: int
    planes: int = 1
    sums: bool = False

    @property
    def size_bytes(self) -> int:
        """Bytes of all slots."""
        return self.rows * self.row_bytes * self.planes

    def hull(self, steps: int) -> tuple[Ints, Ints]:
        """Return the lowest live byte and the end of the highest at each step; low = end = -1 where none is."""
        low, high = np.full(steps, self.size_bytes, np.int64), np.full(steps, -1, np.int64)
        plane = self.size_bytes // self.planes
        for r, (born, dead) in enumerate(zip(self.born.tolist(), self.dead.tolist(), strict=True)):
            if born <= dead:
                at = 0 if self.sums else r % self.rows * self.row_bytes
                span = slice(max(born, 0), dead + 1)
                np.minimum(low[span], at, out=low[span])
                np.maximum(high[span], at + self.row_bytes + plane * (self.planes - 1), out=high[span])
        low[high < 0] = -1
        return low, high


@dataclass(slots=True)
class Timeline:
    """When every row of every stage is made and read for the last time."""

    model: Model
    steps: list[int]
    made: list[Ints] = field(default_factory=list)
    read: dict[str, Ints] = field(default_factory=dict)

    def __post_init__(self) -> None:
        when = np.asarray(self.steps)
        stages = self.model.stages
        for i, stage in enumerate(stages):
            at = np.flatnonzero(when == i)
            self.made.append(np.concatenate((at, np.full(stage.rows - len(at), -2))))
        for name, rows in _buffer_rows(self.model):
            self.read[name] = np.full(rows, -2, np.int64)
        for stage, times in zip(stages, self.made, strict=True):
            for source in stage.sources:
                last = self.read[source.buffer]
                for y, t in enumerate(times.tolist()):
                    first, end = source.windows[y]
                    if t >= 0 and first < end:
                        span = last[first:end]
                        np.maximum(span, t, out=span)

    def rings(self, merges: Mapping[int, str]) -> list[Ring]:
        """Return all buffers of the segment; `merges` puts a stage's output over that input, row by row."""
        model, end = self.model, len(self.steps) - 1
        heads: dict[int, list[int]] = {}
        owner = {s.out: i for i, s in enumerate(model.stages)}
        first_of: dict[int, int] = {}
        for i in range(len(model.stages)):
            head = first_of[owner[merges[i]]] if i in merges else i
            first_of[i] = head
            heads.setdefault(head, []).append(i)
        rings = [self._outside(o, end) for o in model.outside.values()]
        for head, members in heads.items():
            last = model.stages[members[-1]]
            born, dead = self.made[head], np.maximum(self.read[last.out], self.made[members[-1]])
            if last.leaves:
                dead = np.full(last.rows, end)
            dead = np.where(born < 0, -3, np.maximum(dead, born))
            if last.sums:
                born, dead = np.full(last.rows, born[0]), np.full(last.rows, end if last.leaves else dead.max())
                rings.append(Ring(last.out, tuple(members), last.row_bytes, born, dead, 1, sums=True))
                continue
            rows = last.rows if last.leaves else _window(born, dead)
            rings.append(Ring(last.out, tuple(members), last.row_bytes, born, dead, rows))
        return rings

    def may_merge(self, i: int, buffer: str) -> bool:
        """True when every other reader of a row is done before stage `i` overwrites it."""
        others = np.full(len(self.read[buffer]), -2, np.int64)
        for j, stage in enumerate(self.model.stages):
            for source in stage.sources:
                if j != i and source.buffer == buffer:
                    for y, t in enumerate(self.made[j].tolist()):
                        first, end = source.windows[y]
                        if t >= 0 and first < end:
                            np.maximum(others[first:end], t, out=others[first:end])
        done = self.made[i]
        owner = next(s for s in self.model.stages if s.out == buffer)
        return bool(np.all((done < 0) | (others < done))) and not owner.leaves and not owner.sums

    def _outside(self, o: Outside, end: int) -> Ring:
        read = self.read[o.buffer]
        if o.fed:
            born = np.flatnonzero(np.asarray(self.steps) == len(self.model.stages))
            dead = np.maximum(read, born)
            return Ring(o.buffer, (), o.row_bytes, born, dead, _window(born, dead))
        dead = read if o.dies else np.full(o.rows, end)
        return Ring(o.buffer, (), o.row_bytes, np.full(o.rows, -1), dead, o.rows, o.planes)


def _buffer_rows(model: Model) -> Iterator[tuple[str, int]]:
    yield from ((o.buffer, o.rows) for o in model.outside.values())
    yield from ((s.out, s.rows) for s in model.stages)


def _window(born: Ints, dead: Ints) -> int:
    """The most rows between the oldest that is still needed and the newest, when the newest is written."""
    oldest, most = 0, 1
    births, deaths = born.tolist(), dead.tolist()
    for newest, t in enumerate(births):
        if t < 0:
            break
        while oldest < newest and deaths[oldest] < t:
            oldest += 1
        most = max(most, newest + 1 - oldest)
    return most
