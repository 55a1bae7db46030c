"""From a lowered program to a proven place for every buffer: order, sharing, streaming, overlap, plan, check."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from glowc import memory
from glowc.board import Cpu
from glowc.errors import InputError
from glowc.kernels.base import spending
from glowc.kernels.choice import guessed_insns, variant_of
from glowc.memory.types import MemoryPlan
from glowc.place.places import (
    directed,
    has_room,
    memory_blocks,
    of_blocks,
    ordered,
    plan_memory,
    schedule,
    shared,
    verified,
    without_copies,
)
from glowc.place.rewrite.keep_weights import keep_weights, wanted_gaps
from glowc.place.rewrite.reorder import reorder, steps_of
from glowc.place.rewrite.row_overlap import off_grid, row_overlaps
from glowc.place.rewrite.unpack_weights import Room, narrow_layers, unpack_weights
from glowc.place.spare import widest_gaps
from glowc.place.stream.rings import Distance, Streamer, distances
from glowc.place.stream.segmentation import Cut, frontier
from glowc.program.ir import Instr, Program, scratch_bytes, scratch_of
from glowc.program.lifetimes import live_bytes, strip_markers

Lower = Callable[[Callable[[str], bool]], Program]
"""Lowers the model; its argument says by name which instructions need a variant that streams rows."""

Insns = Callable[[Instr], int | None]
"""Predicts the instructions of a call, None where nothing is known of the kernel."""

GUARD_BYTES = 16
_ROOM_PERCENTS = (100, 90, 75, 50, 25)  # of the room that weights may have, as a planner leaves gaps
_MOST_SPENDING = 24  # layers that are given scratch one after the other
_MOST_APART = 4  # instructions whose outputs are moved off their inputs one by one
_MOST_MOVES = 8  # instructions after a layer that may run ahead of it, and orders that are tried
_MOST_GROWTHS = 8  # of an arena for those layers, that are tried
_WANTED_PERCENT = 5  # of the arena, by which it may grow for weights that are then read half as often
_GROWTH_PERCENT, _GROWTH_BYTES = 15, 8192  # of an arena without a limit, whichever is more, where they are read once
_CACHED_BYTES = 32 << 10  # of constants that a data cache keeps at most
KINDS = ("auto", "plain", "overlap", "stream")


@dataclass(frozen=True, slots=True)
class Request:
    """What a plan has to be: its `kind`, the bytes that it may take, and how the model's input arrives.

    `limit_bytes` is the user's wish, `room_bytes` what the board has. `rooms`, the fastest first, split the arena.
    `keeps`: weights that are read again and again from a slow flash are copied into what is free of it. `grows`: the
    arena may grow a little for layers that then read them once, `roomy`: also for ones that read them half as often.
    For `cpu` weights of few bits are unpacked in front of their layers, None: they are stored as bytes. `divide` says
    which instructions cores share.
    """

    kind: str = "auto"
    limit_bytes: int | None = None
    room_bytes: int | None = None
    fed: bool = False
    caller_io: bool = False
    rooms: tuple[memory.Room, ...] = ()
    guard: bool = False
    keeps: bool = False
    grows: bool = False
    roomy: bool = False
    cpu: Cpu | None = None
    divide: Callable[[Program], Program] = lambda program: program

    @property
    def guard_bytes(self) -> int:
        """Bytes that stay free before and after every buffer; a multiple of every alignment."""
        return GUARD_BYTES if self.guard else 0


@dataclass(frozen=True, slots=True)
class Planned:
    """A program with the place of every buffer. `extra_insns` is what it costs over the plain plan, estimated."""

    kind: str
    program: Program
    plan: MemoryPlan
    overlaps: tuple[memory.Overlap, ...]
    extra_insns: int = 0

    @property
    def title(self) -> str:
        """The plan in words."""
        segments = self.program.segments
        if not segments:
            return self.kind
        counted = strip_markers(self.program).instrs
        layers = ", ".join(f"{s.begin}-{s.end - 1}" for s in segments)
        return f"{self.kind} (layers {layers} of {len(counted)})"

    @property
    def blocks(self) -> list[memory.Block]:
        """The planner's view of the program."""
        return memory_blocks(self.program)


_Spent = tuple[Program, Planned]  # a program whose instructions spend what there is room for, and its plan


@dataclass(frozen=True, slots=True)
class _Order:
    """An order of instructions: its arena where they spend nothing, and what they spend with the price of that."""

    arena_bytes: int
    way: _Spent
    price: int


def _unknown(_: Instr) -> int | None:
    return None


def make_plan(lower: Lower, request: Request, insns: Insns = _unknown) -> Planned:
    """Return the cheapest plan of the wanted kind that fits, else the smallest.

    "auto" takes the overlapped plan before streamed ones; "stream" and an input that is fed by rows take the
    smallest one when no limit is given. `insns` is for the price of streaming. InputError when the input cannot be fed
    by rows.
    """
    if request.fed:
        _check_feedable(lower(_no))
    if not request.fed and request.kind != "stream":
        done = _whole(lower, request)
        if request.kind != "auto" or fits(done, request):
            return done
    plans = pareto(lower, request, insns)
    if request.limit_bytes is None and (request.fed or request.kind == "stream"):
        return plans[-1]
    fitting = [p for p in plans if fits(p, request)]
    return fitting[0] if fitting else plans[-1]


def fits(done: Planned, request: Request) -> bool:
    """Say whether a plan keeps the limits of a request."""
    bound = min((b for b in (request.limit_bytes, request.room_bytes) if b is not None), default=1 << 62)
    return _rank(done, request) <= (False, bound)


def _rank(done: Planned, request: Request) -> tuple[bool, int]:
    """Return what a better plan has less of; one that does not fit into the rooms has no regions."""
    return bool(request.rooms) and not done.plan.regions, done.plan.arena_bytes


def _check_feedable(program: Program) -> None:
    if len(program.inputs) != 1 or program.states:
        raise InputError(
            "--input-stream rows needs a model with one input and without state",
            details=[f"inputs: {', '.join(o.role for o in program.inputs)}"],
        )


def pareto(lower: Lower, request: Request, insns: Insns = _unknown) -> list[Planned]:
    """Return the plans that no other beats in bytes and instructions, the cheapest first."""
    plans = [] if request.fed else [_whole(lower, replace(request, kind="overlap"))]
    for planned in _streamed_plans(lower, request, insns):
        if not plans or _rank(planned, request) < _rank(plans[-1], request):
            plans.append(planned)
    return plans


def _whole(lower: Lower, request: Request) -> Planned:
    program = schedule(replace(lower(_no), caller_io=request.caller_io))
    moved, spent = _in_roomier_order(program, request)
    divided = request.divide(moved)
    program, done = spent if divided is moved else _spent(divided, _placed(divided, request), request)
    done = _unpacked(program, done, request)
    return done if request.kind == "plain" else _kept(_roomy(program, _apart(program, done, request), request), request)


def _in_roomier_order(program: Program, request: Request) -> tuple[Program, _Spent]:
    """Return the program in which instructions that leave fewer live bytes run ahead of ones that can spend these.

    Without what these spend the arena is no larger. The second is the program with what they spend, and its plan.
    """
    best, tries = _tried(program, request), 0
    for name in _spenders(program) if _spends(request) else ():
        for moved in _moved_ahead(program, name):
            found = _tried(moved, request)
            tries += 1
            if found.arena_bytes <= best.arena_bytes and found.price < best.price:
                program, best = moved, found
                break
            if tries == _MOST_MOVES:
                return program, best.way
    return program, best.way


def _tried(program: Program, request: Request) -> _Order:
    done = _placed(program, request)
    way = _spent(program, done, request)
    return _Order(done.plan.arena_bytes, way, _price(*way))


def _moved_ahead(program: Program, name: str) -> Iterator[Program]:
    """Yield the programs in which one of the next instructions runs ahead of a named one, which then has more room."""
    steps, live = steps_of(program).steps, live_bytes(program)
    at = next(n for n, step in enumerate(steps) if step.name == name)
    made: set[str] = set()
    for later in range(at + 1, min(at + 1 + _MOST_MOVES, len(steps))):
        made.update(steps[later - 1].outputs)
        if made.isdisjoint(steps[later].inputs):
            order = (*range(at), later, *(n for n in range(at, len(steps)) if n != later))
            moved = verified("reordering", program, reorder(program, order))
            if live_bytes(moved)[at + 1] < live[at]:
                yield moved


def _placed(program: Program, request: Request) -> Planned:
    """Return the plan of a program whose instructions stay in their order."""
    plain, found = request.kind == "plain", row_overlaps(strip_markers(program))
    overlaps = () if plain else of_blocks(found)
    plan = plan_memory(program, overlaps, request.rooms, request.guard_bytes)
    slower = frozenset[int]() if plain else off_grid(program, found, plan.offsets_bytes)
    apart = frozenset[int]()  # where there is room: all of them, or the largest
    largest = sorted(slower, key=lambda i: -program.instrs[i].macs)[:_MOST_APART]
    for more in (slower, *(frozenset({i}) for i in largest)):
        if more <= apart:
            continue
        fewer = of_blocks(o for o in found if o.index not in apart | more)
        other = plan_memory(program, fewer, request.rooms, request.guard_bytes)
        if other.arena_bytes <= plan.arena_bytes:
            apart, overlaps, plan = apart | more, fewer, other
    return Planned("plain" if plain else "overlap", directed(program, found, plan), plan, overlaps)


def _spends(request: Request) -> bool:
    """Say whether instructions may have more scratch than they must."""
    return not request.rooms and request.kind != "plain"


def _spenders(program: Program) -> list[str]:
    """Return the names of instructions that can have more scratch than they must, the largest first."""
    found = sorted((i for i in program.instrs if variant_of(i).spends is not None), key=lambda i: -i.macs)
    return [i.name for i in found[:_MOST_SPENDING]]


def _price(program: Program, done: Planned) -> int:
    """Return the bytes of the arena times the instructions, roughly: what is less by a share outweighs a like share."""
    return done.plan.arena_bytes * sum(map(guessed_insns, program.instrs))


def _spent(program: Program, done: Planned, request: Request) -> _Spent:
    """Return the program whose instructions have the scratch that the arena of its plan has room for, and its plan.

    The arena may grow where that saves a larger share of the instructions; `done` is the plan without.
    """
    if not _spends(request):
        return program, done
    need = done.plan.arena_bytes
    best = _filled(program, done, request, need)
    bounds = (request.limit_bytes, request.room_bytes, need + _growth(need) if request.roomy else need)
    bound = min(b for b in bounds if b is not None)
    for _ in range(_MOST_GROWTHS):
        if bound <= need or need * _least_insns(program, bound) >= _price(*best):
            break
        found = _filled(program, done, request, bound)
        best = min(best, found, key=lambda way: _price(*way))
        bound = found[1].plan.arena_bytes - 1
    return best


def _least_insns(program: Program, arena_bytes: int) -> int:
    """Return the instructions, roughly, of a program whose layers each have the scratch that an arena has room for."""
    room = _room_of_scratch(program, arena_bytes)
    return sum(guessed_insns(spending(i, variant_of(i), room.get(i.name, 0) // i.shares)) for i in program.instrs)


def _filled(program: Program, done: Planned, request: Request, arena_bytes: int) -> _Spent:
    """Return the program whose instructions have the scratch that so large an arena has room for, and its plan."""
    plain, room = program, _room_of_scratch(program, arena_bytes)
    for name in sorted(room, key=lambda name: (-room[name], name))[:_MOST_SPENDING]:
        for percent in _ROOM_PERCENTS:
            wide = _spending(program, name, room[name] * percent // 100)
            if wide is program:
                break
            if has_room(wide, arena_bytes, request.guard_bytes):
                program = wide
                break
    if program is not plain:
        done = _placed(verified("more scratch", plain, program), request)
    return program, done


def _spending(program: Program, name: str, room_bytes: int) -> Program:
    """Return the program in which an instruction spends so many bytes of scratch, the same where it spends no more."""
    at, instr = next((n, i) for n, i in enumerate(program.instrs) if i.name == name)
    wide = spending(instr, variant_of(instr), room_bytes // instr.shares)
    if wide == instr:
        return program
    (scratch,) = (o for o in wide.operands if o.role == "scratch")
    buffer = scratch_of(instr, replace(program.buffers[scratch.buffer], size_bytes=scratch.type.size_bytes))
    instrs = (*program.instrs[:at], wide, *program.instrs[at + 1 :])
    return replace(program, instrs=instrs, buffers={**program.buffers, scratch.buffer: buffer})


def _room_of_scratch(program: Program, arena_bytes: int) -> dict[str, int]:
    """Return the bytes that instructions by name may spend on scratch, where those are more than they have."""
    room = room_of_scratch(program, arena_bytes)
    return {
        i.name: room[i.name]
        for i in program.instrs
        if variant_of(i).spends is not None and i.shares * scratch_bytes(i) < room[i.name]
    }


def room_of_scratch(program: Program, arena_bytes: int) -> dict[str, int]:
    """Return the bytes that an arena may have for scratch of instructions by name.

    An output lies over its input as far as it may.
    """
    saved: dict[int, int] = defaultdict(int)
    for o in row_overlaps(program):
        source, out = (program.buffers[name].size_bytes for name in (o.source, o.out))
        saved[o.index] = max(saved[o.index], source - o.high, out + o.low)
    return {
        instr.name: arena_bytes - live + saved[index] + instr.shares * scratch_bytes(instr)
        for index, (instr, live) in enumerate(zip(program.instrs, live_bytes(program), strict=True))
    }


def _unpacked(program: Program, done: Planned, request: Request) -> Planned:
    """Return the plan in which weights of few bits are unpacked in front of their layers, or of the parts of these.

    The parts are as large as there is room for; `done` is the plan in which weights are bytes. Without a limit the
    arena may grow by a share of it.
    """
    layers = narrow_layers(program) if request.cpu is not None else []
    if not layers or request.cpu is None:
        return done
    room = _room_to_unpack(done, request)
    for percent in _ROOM_PERCENTS:
        rooms = _rooms_to_unpack(program, done, room, percent)
        cut = unpack_weights(program, layers, rooms, request.cpu)
        found = _placed(verified("unpacking", program, cut), request)
        if _rank(found, request) <= (False, room):
            return found
    return done


def _rooms_to_unpack(program: Program, done: Planned, arena_bytes: int, percent: int) -> dict[str, Room]:
    """Return a share of what an arena of so many bytes has beside each instruction by name.

    All weights may lie in a gap of the plan; parts are beside the whole input and the whole output.
    """
    gaps = widest_gaps(done.program, done.plan)
    more, rooms = arena_bytes - done.plan.arena_bytes, {}
    for instr, live in zip(program.instrs, live_bytes(program), strict=True):
        part = (arena_bytes - live) * percent // 100
        gap = gaps[instr.name].size_bytes if instr.name in gaps else 0
        rooms[instr.name] = Room(max((gap + more) * percent // 100, part), part)
    return rooms


def _room_to_unpack(done: Planned, request: Request) -> int:
    """Return the bytes that an arena may have for weights that are unpacked."""
    need = done.plan.arena_bytes
    wanted = request.limit_bytes or need + max(_growth(need), _GROWTH_BYTES)
    return max(need, min(wanted, request.room_bytes or wanted))


def _roomy(program: Program, done: Planned, request: Request) -> Planned:
    """Return the plan in which layers have the scratch that they want, where they are most of the model and few bytes.

    `done` is the plan without; layers beside which it has room for weights are content with that.
    """
    if not request.roomy or request.rooms or done.program.consts.keys() != program.consts.keys():
        return done  # regions have rooms of their own, and so have weights that are unpacked
    gaps, need = widest_gaps(done.program, done.plan), done.plan.arena_bytes
    for every, growth in ((True, _growth(need)), (False, need * _WANTED_PERCENT // 100)):
        wanted = wanted_gaps(program, gaps, every=every)
        if 2 * sum(i.macs for i in program.instrs if i.name in wanted) >= sum(i.macs for i in program.instrs):
            wide, _ = keep_weights(program, wanted)
            found = _placed(verified("more scratch", program, wide), request)
            bounds = [b for b in (need + growth, request.limit_bytes, request.room_bytes) if b is not None]
            if found.plan.arena_bytes <= min(bounds):
                return found
    return done


def _apart(program: Program, done: Planned, request: Request) -> Planned:
    """Return the plan in which layers read their weights once, where they are most of the model and few bytes.

    Outputs of others lie over their inputs; `done` is the plan in which theirs do, too.
    """
    if not request.grows or request.rooms or done.program.consts.keys() != program.consts.keys():
        return done
    found = row_overlaps(strip_markers(program))
    once = [o for o in found if o.grid == 0 and _constant_bytes(program, program.instrs[o.index]) > _CACHED_BYTES]
    slower = off_grid(program, once, done.plan.offsets_bytes)
    if not slower or 2 * sum(program.instrs[i].macs for i in slower) < sum(i.macs for i in program.instrs):
        return done
    fewer = of_blocks(o for o in found if o.index not in slower)
    plan = plan_memory(program, fewer, guard_bytes=request.guard_bytes)
    bounds = (done.plan.arena_bytes + _growth(done.plan.arena_bytes), request.limit_bytes, request.room_bytes)
    if plan.arena_bytes > min(b for b in bounds if b is not None):
        return done
    return replace(done, program=directed(program, found, plan), plan=plan, overlaps=fewer)


def _constant_bytes(program: Program, instr: Instr) -> int:
    return sum(program.buffers[o.buffer].size_bytes for o in instr.operands if o.buffer in program.consts)


def _growth(arena_bytes: int) -> int:
    """Return the bytes by which an arena without a limit may grow."""
    return max(arena_bytes * _GROWTH_PERCENT // 100, min(_GROWTH_BYTES, arena_bytes // 2))


def _kept(planned: Planned, request: Request) -> Planned:
    """Return the plan whose gaps hold weights that instructions would read from flash again and again."""
    if not request.keeps or request.rooms:
        return planned
    gaps = widest_gaps(planned.program, planned.plan)
    program, places = keep_weights(planned.program, gaps, request.cpu.near_bytes if request.cpu is not None else 0)
    plan = replace(planned.plan, offsets_bytes={**planned.plan.offsets_bytes, **places})
    memory.check(plan, memory_blocks(program), planned.overlaps)
    return replace(planned, program=verified("keeping of weights", planned.program, program), plan=plan)


def _streamed_plans(lower: Lower, request: Request, insns: Insns) -> list[Planned]:
    every = ordered(replace(lower(_yes), caller_io=request.caller_io))
    streamer = Streamer(every, fed=request.fed, whole={i.name: i for i in lower(_no).instrs})
    cuts = frontier(streamer, insns)
    if request.fed and not cuts:
        name = every.inputs[0].role
        raise InputError(
            f"the input {name!r} cannot be fed by rows",
            details=["its first layers cannot run row by row, or need it in another layout"],
            hint="leave out --input-stream",
        )
    plans = [_streamed(lower, request, every, cut) for cut in cuts if cut.segments]
    return sorted(plans, key=lambda p: (p.extra_insns, p.plan.arena_bytes))


def _streamed(lower: Lower, request: Request, every: Program, cut: Cut) -> Planned:
    """Return the plan of one cut: outside of its segments the instructions may have any variant."""
    names = {i.name for s in cut.segments for i in every.instrs[s.begin : s.end]}
    program = replace(lower(names.__contains__), caller_io=request.caller_io)
    if program.instrs != every.instrs:
        program = without_copies(program)
        position = {i.name: at for at, i in enumerate(program.instrs)}
        program = verified("reordering", program, reorder(program, [position[i.name] for i in every.instrs]))
    streamer = Streamer(program, fed=request.fed)
    segments = [streamer.segment(s.begin, s.end) for s in cut.segments]
    done = [s for s in segments if s is not None]
    assert len(done) == len(segments)
    program = shared(verified("streaming", program, streamer.apply(done)))
    near = [_overlap(program, d) for s in done for d in distances(s)]
    found = row_overlaps(program)
    overlaps = (*of_blocks(found), *(o for o in near if o is not None))
    plan = plan_memory(program, overlaps, request.rooms)
    return Planned("stream", directed(program, found, plan), plan, overlaps, cut.extra_insns)


def _overlap(program: Program, distance: Distance) -> memory.Overlap | None:
    """Return what the planner may do with two buffers of a segment."""
    (a, a_at), (b, b_at) = program.root(distance.a), program.root(distance.b)
    if program.is_callers(a) or program.is_callers(b):
        return None
    if distance.interval is None:
        return memory.Overlap(a, b, 0, 0)
    low, high = distance.interval
    return memory.Overlap(a, b, low + b_at - a_at, high + b_at - a_at)


def _no(_: str) -> bool:
    return False


def _yes(_: str) -> bool:
    return True
