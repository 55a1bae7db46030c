"""An arena in several memory regions, from the options to the report: who asks, what fits, what is shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NotRequired, TypedDict

from glowc.board import Board, arena_rooms
from glowc.board.sizes import parse_size
from glowc.codegen.bundle import Bundle
from glowc.codegen.places import ArenaPart
from glowc.errors import InputError, RamError
from glowc.memory import Block, MemoryPlan, Room, render_svg, render_text
from glowc.place.planning import Planned
from glowc.program.lifetimes import strip_markers

Wanted = tuple[tuple[str, int | None], ...]


def parse_regions(texts: Sequence[str] | None) -> Wanted:
    """Return (name, bytes) of options NAME=BYTES, or (name, None) of NAME. InputError names all that are wrong."""
    wanted: list[tuple[str, int | None]] = []
    wrong = []
    for text in texts or ():
        try:
            wanted.append(_region(text))
        except InputError:
            wrong.append(f"--region {text}")
    if wrong:
        raise InputError("a region is given as NAME=BYTES", details=wrong, hint="--region dtcm=64K")
    return tuple(wanted)


def _region(text: str) -> tuple[str, int | None]:
    name, equals, value = text.partition("=")
    if not name:
        raise InputError("a region without a name")
    return name, parse_size(value) if equals else None


def rooms_of(board: Board, split: bool, wanted: Wanted) -> tuple[Room, ...]:
    """Return the regions that may hold the arena, the fastest first; nothing when the user names none."""
    return tuple(Room(name, size) for name, size in arena_rooms(board, split, wanted))


def parts_of(plan: MemoryPlan) -> tuple[ArenaPart, ...]:
    """Return the parts of a split arena as the generated code has them; an arena of no bytes stays whole."""
    if plan.arena_bytes == 0:
        return ()
    return tuple(ArenaPart(r.name, r.plan.arena_bytes, frozenset(r.plan.offsets_bytes)) for r in plan.regions)


def named(rooms: Sequence[Room]) -> str:
    """Return the regions in words."""
    return "regions " + ", ".join(f"{room.name} ({room.capacity_bytes} bytes)" for room in rooms)


def require_split(planned: Planned, rooms: Sequence[Room], peak: Sequence[str], kind: str) -> None:
    """Raise LimitError when buffers are too large for regions that have enough bytes in total."""
    if len(rooms) > 1 and not planned.plan.regions:
        raise RamError(
            f"the arena of {planned.plan.arena_bytes} bytes cannot be divided among the {named(rooms)}",
            details=[f"the plan is {planned.title}", *peak],
            hint="make a region larger, as a buffer lies in one of them as a whole"
            + (", or use --plan auto" if kind in ("plain", "overlap") else ""),
        )


class RegionReport(TypedDict):
    """A region of memory as report.json says it."""

    name: str
    capacity_bytes: int
    arena_bytes: int
    lower_bound_bytes: int
    accessed_bytes_estimate: NotRequired[int]
    accesses_share: float


class RegionsReport(TypedDict, total=False):
    """The regions, whether no better division is possible, and the region of every input, output and state."""

    regions: list[RegionReport]
    regions_proven_best: bool
    tensor_regions: dict[str, str]


def region_report(planned: Planned, rooms: Sequence[Room], bundle: Bundle) -> RegionsReport:
    """Return what report.json says of the regions: nothing when the user named none."""
    if not rooms:
        return {}
    plan = planned.plan
    if not plan.regions:
        alone: RegionReport = {
            "name": rooms[0].name, "capacity_bytes": rooms[0].capacity_bytes, "arena_bytes": plan.arena_bytes,
            "lower_bound_bytes": plan.lower_bound_bytes, "accesses_share": 1.0,
        }  # fmt: skip
        return {"regions": [alone]}
    total = max(1, sum(r.accesses for r in plan.regions))
    regions: list[RegionReport] = [
        {"name": r.name, "capacity_bytes": r.capacity_bytes, "arena_bytes": r.plan.arena_bytes,
         "lower_bound_bytes": r.plan.lower_bound_bytes, "accessed_bytes_estimate": r.accesses,
         "accesses_share": round(r.accesses / total, 4)}
        for r in plan.regions
    ]  # fmt: skip
    homes = {view.name: view.region for view in (*bundle.inputs, *bundle.outputs)}
    homes |= {state.name: state.region for state in bundle.states}
    return {"regions": regions, "regions_proven_best": plan.planner.endswith("best"), "tensor_regions": homes}


def plan_maps(planned: Planned) -> list[tuple[str, MemoryPlan, list[Block]]]:
    """Return (region, plan, blocks) of each region, or the whole arena with the region ""."""
    if not planned.plan.regions:
        return [("", planned.plan, planned.blocks)]
    return [
        (r.name, r.plan, [b for b in planned.blocks if b.name in r.plan.offsets_bytes]) for r in planned.plan.regions
    ]


def draw_plans(planned: Planned, title: str) -> dict[str, str]:
    """Return the memory maps as SVG files: <title>_memory.svg, or one for each region."""
    names = [f"{i.op} {', '.join(i.origin)}" for i in strip_markers(planned.program).instrs]
    files = {}
    for region, plan, blocks in plan_maps(planned):
        head = f"{title}, {planned.title}" + (f", region {region}" if region else "")
        file = f"{title}_memory_{region}.svg" if region else f"{title}_memory.svg"
        files[file] = render_svg(plan, blocks, instructions=names, title=head)
    return files


def map_text(planned: Planned) -> str:
    """Return the memory map in text, one for each region."""
    maps = plan_maps(planned)
    return "".join((f"region {name}: " if name else "") + render_text(plan, blocks) for name, plan, blocks in maps)
