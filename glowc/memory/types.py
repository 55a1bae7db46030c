"""What the planner, the checker and the memory map talk about: blocks, overlaps, regions and plans."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Lifetime:
    """The instructions `begin <= t < end` during which a block holds data; never empty."""

    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Block:
    """Bytes that need one place in the arena for one lifetime; `size_bytes` may be 0."""

    name: str
    lifetime: Lifetime
    size_bytes: int
    align_bytes: int


@dataclass(frozen=True, slots=True)
class Overlap:
    """How close two blocks that are alive together may come.

    Forbidden is `low < offset[a] - offset[b] < high`, so both ends are legal places. It replaces the
    default (-size_a, size_b), under which the two share no byte. An empty interval (low >= high)
    forbids nothing.

        b  |###### input rows ######|          offset[a] = offset[b] + low: output rows end up
        a |## output rows ##|                  below the input rows that are still needed
    """

    a: str
    b: str
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """An offset for every block, all in bytes from the start of the arena.

    `arena_bytes` is the largest offset + size. `lower_bound_bytes` is a height that no plan can go
    below, so `arena_bytes == lower_bound_bytes` proves the plan optimal. It is the largest, over the
    instants at which a block begins and over all grids g (the alignments that occur), of this sum
    over the live blocks whose alignment is a multiple of g:

        sum of sizes rounded up to g            (every offset is a multiple of g)
        - the most bytes that each declared Overlap pair can share on that grid
        - the largest rounding loss of one block  (nothing has to follow the topmost block)

    and never less than the largest block. `planner` names the method that found the plan.

    An arena that is split into several memory regions has a plan of its own for each of `regions`. The
    offsets here then count through the regions, one after the other in their order, `arena_bytes` and
    `lower_bound_bytes` are the sums.
    """

    offsets_bytes: Mapping[str, int]
    arena_bytes: int
    lower_bound_bytes: int
    planner: str
    regions: tuple[RegionPlan, ...] = ()


@dataclass(frozen=True, slots=True)
class Room:
    """What a memory region offers to the arena: `capacity_bytes` from an aligned address on."""

    name: str
    capacity_bytes: int


@dataclass(frozen=True, slots=True)
class RegionPlan:
    """The part of an arena in one memory region; the offsets of `plan` count from the start of that part.

    `accesses` are the bytes that an inference reads and writes here, estimated.
    """

    name: str
    capacity_bytes: int
    plan: MemoryPlan
    accesses: int
