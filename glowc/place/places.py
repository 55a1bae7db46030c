"""A program in its order, and a proven place for every buffer of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from glowc import memory
from glowc.errors import InternalError
from glowc.kernels.choice import as_placed
from glowc.kernels.verify import verify_program
from glowc.memory.simulate import Action, Touch, simulate
from glowc.memory.types import MemoryPlan
from glowc.place.rewrite.accesses import accesses
from glowc.place.rewrite.eliminate import eliminate_copies, remove_dead_stores
from glowc.place.rewrite.reorder import reorder, steps_of
from glowc.place.rewrite.row_overlap import RowOverlap, row_overlaps, set_directions
from glowc.place.rewrite.share_in_place import in_place_pairs, share_in_place
from glowc.place.trace import Bytes, trace
from glowc.program.ir import Program
from glowc.program.lifetimes import root_lifetimes, strip_markers


def schedule(program: Program) -> Program:
    """Return the program with copies made views, the best order, and elementwise results in place."""
    return shared(ordered(program))


def ordered(program: Program) -> Program:
    """Return the program with copies made views and the instructions in the best order."""
    program = without_copies(program)
    steps = steps_of(program, in_place_pairs(program))
    tasks = [memory.Task(s.name, s.inputs, s.outputs, s.scratch_bytes) for s in steps.steps]
    best = memory.schedule(
        tasks, steps.sizes, alias_of=steps.alias_of, in_place=steps.in_place, graph_inputs=steps.inputs,
        graph_outputs=steps.outputs,
    )  # fmt: skip
    return verified("reordering", program, reorder(program, best.order))


def without_copies(lowered: Program) -> Program:
    verify_program(lowered, "lowering")
    program = verified("copy elimination", lowered, eliminate_copies(lowered))
    return verified("removal of dead stores", program, remove_dead_stores(program))


def shared(program: Program) -> Program:
    return verified("buffer sharing", program, share_in_place(program))


def directed(program: Program, overlaps: Sequence[RowOverlap], plan: MemoryPlan) -> Program:
    turned = set_directions(program, overlaps, plan.offsets_bytes)
    return verified("choice of directions", program, as_placed(turned))


def verified(name: str, before: Program, after: Program) -> Program:
    """Return what a pass made, verified where it changed anything."""
    if after is not before:
        verify_program(after, name, before)
    return after


def plan_memory(
    program: Program, overlaps: Sequence[memory.Overlap] = (), rooms: Sequence[memory.Room] = (), guard_bytes: int = 0
) -> MemoryPlan:
    """Return the proven place of every root buffer; an independent checker runs each time.

    With `rooms` the arena is split, and the buffers that are touched most lie in the first one; a plan without
    regions, as for one arena, says that they do not fit. `guard_bytes` stay free before and after each buffer.
    """
    blocks = _guarded_blocks(program, guard_bytes)
    plan = memory.split(blocks, overlaps, rooms, accesses(program)) if rooms else None
    plan = plan or memory.plan(blocks, overlaps, fixed=_state_places(program, blocks))
    memory.check(plan, blocks, overlaps)
    return replace(plan, offsets_bytes={name: at + guard_bytes for name, at in plan.offsets_bytes.items()})


def has_room(program: Program, arena_bytes: int, guard_bytes: int = 0) -> bool:
    """Say whether an arena of so many bytes surely has a place for every buffer."""
    blocks = _guarded_blocks(program, guard_bytes)
    return memory.fits(blocks, memory_overlaps(program), arena_bytes, fixed=_state_places(program, blocks))


def _guarded_blocks(program: Program, guard_bytes: int) -> list[memory.Block]:
    return [replace(b, size_bytes=b.size_bytes + 2 * guard_bytes) for b in memory_blocks(program)]


def _state_places(program: Program, blocks: Sequence[memory.Block]) -> dict[str, int]:
    """Return where states lie: at the start of the arena, at the same place in all models that have the same ones."""
    places, end = dict[str, int](), 0
    for block in sorted((b for b in blocks if b.name in program.states), key=lambda b: (-b.align_bytes, b.name)):
        places[block.name] = -(-end // block.align_bytes) * block.align_bytes
        end = places[block.name] + block.size_bytes
    return places


def memory_overlaps(program: Program) -> tuple[memory.Overlap, ...]:
    """Return how close the blocks of instructions outside of segments may come."""
    return of_blocks(row_overlaps(strip_markers(program)))


def of_blocks(overlaps: Iterable[RowOverlap]) -> tuple[memory.Overlap, ...]:
    return tuple(memory.Overlap(o.out, o.source, o.low, o.high) for o in overlaps)


def memory_blocks(program: Program) -> list[memory.Block]:
    """Return the planner's view of the program: name, lifetime, bytes, alignment."""
    plain = strip_markers(program)
    return [
        memory.Block(root, memory.Lifetime(*span), plain.buffers[root].size_bytes, plain.buffers[root].align_bytes)
        for root, span in root_lifetimes(plain).items()
        if not plain.is_callers(root)
    ]


def verify_plan(program: Program, plan: MemoryPlan) -> None:
    """Execute the plan with tagged bytes; InternalError when a read does not find what its producer wrote."""
    if plan.regions:
        home = {name: r.name for r in plan.regions for name in r.plan.offsets_bytes}
        sizes = {r.name: r.plan.arena_bytes for r in plan.regions}
        problems = simulate(actions_of(program), local_offsets(plan), sizes, home)
    else:
        problems = simulate(actions_of(program), plan.offsets_bytes, plan.arena_bytes)
    if problems:
        raise InternalError("the memory plan does not keep the data of the program", details=problems[:20])


def local_offsets(plan: MemoryPlan) -> dict[str, int]:
    """Return the offsets from the start of the arena or, when it is split, of the part that a buffer lies in."""
    return dict(plan.offsets_bytes) | {name: at for r in plan.regions for name, at in r.plan.offsets_bytes.items()}


def actions_of(program: Program) -> list[Action]:
    """Return what a program does, for the simulator."""
    return [
        Action(e.name, _touches(e.reads), _touches(e.writes), tuple(e.inputs), e.elements, e.in_place)
        for e in trace(strip_markers(program))
    ]


def _touches(parts: Sequence[Bytes]) -> tuple[Touch, ...]:
    return tuple(Touch(b.root, b.begin, b.size, b.tag) for b in parts)
