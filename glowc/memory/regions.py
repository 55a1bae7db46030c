"""Blocks to an arena in several memory regions: the placement chooses each one's region, the planner its offset."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from glowc.memory.placement import place
from glowc.memory.planner import plan
from glowc.memory.types import Block, MemoryPlan, Overlap, RegionPlan, Room


def split(
    blocks: Sequence[Block], overlaps: Iterable[Overlap], rooms: Sequence[Room], accesses: Mapping[str, int]
) -> MemoryPlan | None:
    """Return the plan with most accesses in the first rooms, None when the blocks do not fit; `rooms` fastest first.

    `accesses` are the bytes of each block that an inference reads and writes. The plan's name says "best" when no
    other placement has more accesses in the first room (then in the second, and so on).
    """
    declared = list(overlaps)
    placement = place(blocks, declared, rooms, accesses)
    if placement is None:
        return None
    regions = []
    for room, group in zip(rooms, placement.groups, strict=True):
        names = {b.name for b in group}
        inside = plan(group, [o for o in declared if o.a in names and o.b in names])
        count = sum(accesses.get(name, 0) for name in names)
        regions.append(RegionPlan(room.name, room.capacity_bytes, inside, count))
    return joined(regions, "split, best" if placement.best else "split")


def joined(regions: Sequence[RegionPlan], planner: str) -> MemoryPlan:
    """Return the plan of an arena whose parts are `regions`."""
    offsets: dict[str, int] = {}
    start = 0
    for region in regions:
        offsets |= {name: start + at for name, at in region.plan.offsets_bytes.items()}
        start += region.plan.arena_bytes
    bound = sum(r.plan.lower_bound_bytes for r in regions)
    return MemoryPlan(offsets, start, bound, planner, tuple(regions))
