"""What must fit where: the limits of options and board, the plan that keeps them, what is said when none does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from glowc.board import Board
from glowc.codegen.bundle import Bundle
from glowc.compiler.flash import SURE, Printed
from glowc.compiler.options import CompileOptions
from glowc.errors import FlashError, InputError, LimitError, RamError
from glowc.graph.types import LARGEST_TENSOR_BYTES
from glowc.memory import Room
from glowc.memory.types import MemoryPlan
from glowc.place.planning import Planned, Request, fits, make_plan, pareto, room_of_scratch
from glowc.place.regions import named, require_split, rooms_of
from glowc.place.spare import widest_gaps
from glowc.program.ir import Program
from glowc.program.lifetimes import live_bytes, root_lifetimes, strip_markers
from glowc.select.choose import Selection

_ROOM_PERCENTS = (100, 90, 75, 50)  # of what a limit leaves beside a layer, as a planner leaves gaps


def flash_limit(options: CompileOptions, board: Board) -> int | None:
    """Return the bytes of flash that constants and code may take, None for any number."""
    flash = board.bytes_of("flash") if board.bare_metal else None
    return min((b for b in (options.flash_limit, flash) if b is not None), default=None)


def rooms_wanted(options: CompileOptions, board: Board) -> tuple[Room, ...]:
    return rooms_of(board, options.arena_split, options.regions)


def request_of(options: CompileOptions, board: Board) -> Request:
    if options.input_stream == "rows" and options.io_buffers == "caller":
        raise InputError("--input-stream rows keeps what it needs of the input itself", hint="leave out --io-buffers")
    if options.guard and (options.plan not in ("auto", "plain") or options.input_stream == "rows"):
        raise InputError("--guard keeps every tensor apart: --plan plain", hint="leave out --plan and --input-stream")
    room, rooms = board.arena_room, rooms_wanted(options, board)
    if options.guard and len(rooms) > 1:
        raise InputError("--guard needs an arena in one region", hint="leave out --arena-split and --region")
    if rooms:
        offered = sum(r.capacity_bytes for r in rooms)
        room = offered if room is None or board.arena_regions else min(room, offered)
    fed, caller_io = options.input_stream == "rows", options.io_buffers == "caller"
    kind = "plain" if options.guard else options.plan
    kind = "overlap" if kind == "auto" and (options.slice is not None or options.cores > 1) else kind
    keeps = board.cpu.slow_flash and not options.guard
    short_loops = board.cpu.loop_bytes is not None and options.code_section is None
    grows = options.opt != "size" and not options.guard
    roomy = grows and keeps and short_loops
    split = rooms if len(rooms) > 1 else ()
    return Request(
        kind, options.ram_limit, room, fed, caller_io, split, options.guard, keeps, grows, roomy, board.cpu
    )  # fmt: skip


Select = Callable[[Mapping[str, int]], Selection]
"""Chooses the variants, given the bytes of the arena that are to spare beside layers, by name."""


Share = Callable[[Selection, Request], Request]
"""Returns a request of which cores share layers."""


def plan_selection(select: Select, request: Request, share: Share) -> tuple[Selection, Planned]:
    """Choose the variants and plan the memory; what the plan leaves free is for variants with much scratch.

    Layers whose variants were measured keep the best of those.
    """
    usual = select({})
    best = _plan_selection(usual, share(usual, request))
    gaps = widest_gaps(best[1].program, best[1].plan)
    spare = {name: gap.size_bytes for name, gap in gaps.items() if name not in best[0].tuned}
    if not any(0 < x.withheld <= spare.get(x.name, 0) for x in best[0].layers):
        return best
    wider = select(spare)
    if best[0] is usual and best[1].kind != "stream" and fits(best[1], request) and wider.chosen == usual.chosen:
        return wider, best[1]
    richer = _plan_selection(wider, share(wider, request))
    return richer if _is_no_larger(richer[1], best[1]) else best


def _is_no_larger(done: Planned, than: Planned) -> bool:
    return done.kind == than.kind and done.plan.arena_bytes <= than.plan.arena_bytes


def _plan_selection(selection: Selection, request: Request) -> tuple[Selection, Planned]:
    """Plan the memory; when it does not fit without streaming, weigh variants with less scratch.

    The plan's extra instructions are those over the whole layers of the selection that was given.
    """
    best = selection, make_plan(selection.lower, request, selection.predict)
    bounded = request.limit_bytes is not None or request.room_bytes is not None
    if not bounded or (best[1].kind != "stream" and fits(best[1], request)):
        return best
    base = _whole_insns(selection)
    sizes = selection.scratch_sizes()[:-1]
    attempts = [(sizes[:1] if fits(best[1], request) else sizes, request)]
    if fits(best[1], request) and request.kind == "auto" and not request.fed:  # it streams, and need not
        attempts.append((sizes[1:], replace(request, kind="overlap")))
    for limits, wanted in attempts:
        low, high = 0, len(limits)
        while low < high:  # the largest limit with which the plan fits
            middle = (low + high) // 2
            limited = selection.limited(limits[middle])
            done = make_plan(limited.lower, wanted, limited.predict)
            done = replace(done, extra_insns=done.extra_insns + _whole_insns(limited) - base)
            if (not fits(done, request), done.extra_insns) < (not fits(best[1], request), best[1].extra_insns):
                best = limited, done
            low, high = (middle + 1, high) if fits(done, request) else (low, middle)
    return _in_own_rooms(selection, request, best, base)


def _in_own_rooms(
    selection: Selection, request: Request, best: tuple[Selection, Planned], base: int
) -> tuple[Selection, Planned]:  # fmt: skip
    """Return the plan without streaming in which layers take what the limit leaves beside them, if that is better."""
    wanted = replace(request, kind="overlap")
    if request.kind not in ("auto", "overlap") or request.fed or request.rooms:
        return best
    least = selection.limited(0)
    done = make_plan(least.lower, wanted, least.predict)
    bound = min(b for b in (request.limit_bytes, request.room_bytes) if b is not None)
    room = room_of_scratch(strip_markers(done.program), bound)
    for percent in _ROOM_PERCENTS if fits(done, request) else ():
        limited = selection.limited_each({name: max(0, size) * percent // 100 for name, size in room.items()})
        done = make_plan(limited.lower, wanted, limited.predict)
        if fits(done, request):
            streams = best[1].kind == "stream"
            taken = _whole_cycles(selection) * (1 + best[1].extra_insns / base) if streams else _whole_cycles(best[0])
            better = not fits(best[1], request) or _whole_cycles(limited) < taken
            more = _whole_insns(limited) - base
            return (limited, replace(done, extra_insns=done.extra_insns + more)) if better else best
    return best


def _whole_insns(selection: Selection) -> int:
    """Return the predicted instructions of an inference without streaming, guessed where nothing was measured."""
    whole = selection.lower(lambda _: False)
    return sum(cost.insns for cost in selection.estimates(whole))


def _whole_cycles(selection: Selection) -> float:
    """Return the predicted cycles of an inference without streaming."""
    return sum(cost.cycles for cost in selection.estimates(selection.lower(lambda _: False)))


def check_mapped(options: CompileOptions, board: Board) -> None:
    """Raise InputError where nothing maps a file of constants into memory."""
    if options.weights == "file" and board.bare_metal:
        raise InputError(f"--weights file: {board.name} has no operating system that maps files",
                         hint="--weights blob, with the file in flash")  # fmt: skip


def check_arena(planned: Planned) -> None:
    """Raise LimitError for an arena beyond what the generated code can address."""
    if planned.plan.arena_bytes > LARGEST_TENSOR_BYTES:
        raise RamError(
            f"the model needs {planned.plan.arena_bytes:,} bytes of RAM for its arena; "
            f"an arena has at most {LARGEST_TENSOR_BYTES:,} bytes",
            details=_peak(planned.program, planned.plan),
            hint="give its inputs smaller sizes, or choose a smaller model",
        )


def check_fit(
    planned: Planned, board: Board, options: CompileOptions, lower: Callable[[Callable[[str], bool]], Program]
) -> None:  # fmt: skip
    program, plan = planned.program, planned.plan
    ram, rooms = request_of(options, board).room_bytes, rooms_wanted(options, board)
    bound = min((b for b in (options.ram_limit, ram) if b is not None), default=None)
    need = plan.arena_bytes
    if bound is not None and need > bound:
        offered = rooms and ram == sum(r.capacity_bytes for r in rooms)
        place = f"{named(rooms)} allow" if offered else f"board {board.name} allows"
        source = f"--ram-limit {bound} allows" if bound == options.ram_limit else place
        details = [f"the plan is {planned.title}", *_peak(program, plan)]
        smallest = pareto(lower, request_of(options, board))[-1] if planned.kind in ("plain", "overlap") else planned
        if smallest.plan.arena_bytes < need:
            details.append(f"the smallest plan, {smallest.title}, needs {smallest.plan.arena_bytes} bytes")
        hint = "use --plan auto" if smallest.plan.arena_bytes <= bound else larger("RAM")
        raise RamError(
            f"the model needs {need} bytes of RAM for its arena, {source} {bound}", details=details, hint=hint
        )
    require_split(planned, rooms, _peak(program, plan), options.plan)


def check_flash(printed: Printed, board: Board, options: CompileOptions) -> None:
    """Refuse what does not fit although it has the smallest kernels; without a compiler its code is predicted."""
    bound, constants = flash_limit(options, board), printed.bundle.weights_bytes
    need = printed.predicted(SURE) if printed.flash_bytes is None else printed.flash_bytes
    if bound is None or need <= bound:
        return
    source = f"--flash-limit {bound} allows" if bound == options.flash_limit else f"board {board.name} allows"
    about = "about " if printed.flash_bytes is None else ""
    raise FlashError(
        f"the model needs {need} bytes of flash for its constants and its code, {source} {bound}",
        details=[
            f"the constants take {constants} bytes, the code {about}{need - constants}, with the smallest kernels "
            "there are",
            *_largest_constants(printed.program),
        ],
        hint=smaller_flash(printed.program.consts, options),
        need_bytes=need,
    )


def smaller_flash(consts: Mapping[str, np.ndarray], options: CompileOptions) -> str:
    """Return the options that make constants or code smaller."""
    ways = [] if options.opt == "size" else ["--opt size shares functions"]
    floats = any(a.dtype.kind == "f" and a.size > 64 for a in consts.values())
    ways += ["glowc quantize makes weights of 8 bits"] if floats else []
    ways += ["glowc quantize --flash-limit BYTES gives layers weights of 4 and 2 bits"]
    return f"{'; '.join(ways)}; or {larger('flash')}"


def check_group(board: Board, arena_bytes: int, flash_bytes: int, options: CompileOptions) -> None:
    """Refuse models that each fit and together do not: their arenas, and their constants and code."""
    ram = min((b for b in (options.ram_limit, board.arena_room) if b is not None), default=None)
    needs = (
        ("RAM for the arena", arena_bytes, ram),
        ("flash for constants and code", flash_bytes, flash_limit(options, board)),
    )
    wrong = [
        f"{need:,} bytes of {what}, {bound:,} are allowed" for what, need, bound in needs if bound and need > bound
    ]
    if wrong:
        hint = "share more: --share-arena --share-weights; or leave a model out"
        raise LimitError("the models do not fit together", details=wrong, hint=hint)


def larger(kind: str) -> str:
    """Return what to do where there is too little of RAM or flash."""
    return f"choose a board with more {kind} (`glowc boards`) or a smaller model"


def _peak(program: Program, plan: MemoryPlan) -> list[str]:
    plain = strip_markers(program)
    live = live_bytes(plain)
    if not live:
        return []
    at = max(range(len(live)), key=lambda i: live[i])
    instr = plain.instrs[at]
    spans = root_lifetimes(plain)
    alive = [root for root, (first, last) in spans.items() if first <= at < last]
    alive.sort(key=lambda root: -plain.buffers[root].size_bytes)
    label = instr.origin[0] if instr.origin else instr.name
    sharing = " and share bytes" if live[at] > plan.arena_bytes else ""
    of = "" if sharing else f"of {live[at]} bytes "
    return [
        f'the peak {of}is at {instr.op} "{label}", where these are alive{sharing}:',
        *(f"  {plain.buffers[root].size_bytes:>10} {root}" for root in alive),
    ]


def _largest_constants(program: Program) -> list[str]:
    """Return lines with the bytes of constants of the layers that have most; what several read counts for the first."""
    counted: set[str] = set()
    sizes: dict[str, int] = {}
    for instr in strip_markers(program).instrs:
        own = {o.buffer for o in instr.operands if o.buffer in program.consts} - counted
        counted |= own
        label = f'{instr.op} "{instr.origin[0] if instr.origin else instr.name}"'
        sizes[label] = sizes.get(label, 0) + sum(program.consts[name].nbytes for name in own)
    most = sorted(((size, label) for label, size in sizes.items() if size), key=lambda s: -s[0])[:8]
    return ["largest constants, by layer:", *(f"  {size:>10} {label}" for size, label in most)]


def check_aligned(bundle: Bundle, options: CompileOptions) -> None:
    """Raise InputError where an input or output is a part of another tensor and cannot begin as --align wants it."""
    if options.align is None or options.io_buffers == "caller":
        return
    tensors = (*bundle.outputs, *(() if options.input_stream == "rows" else bundle.inputs))
    if wrong := [t.name for t in tensors if t.offset_bytes % options.align]:
        raise InputError(
            f"--align {options.align}: {', '.join(wrong)} is a part of another tensor and begins inside of it",
            hint="--io-buffers caller leaves inputs and outputs in buffers of your own",
        )
