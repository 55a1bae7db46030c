"""Errors put into plans, one at a time: the checker or the simulator catches every one of them.

The checker knows what was declared and finds places that break it; the simulator executes the bytes and finds what
was declared wrongly: distances, directions, rings and steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from stream_nets import ImageNet, random_net

from glowc.errors import InternalError
from glowc.memory import MemoryPlan, check, plan
from glowc.memory.simulate import Action, Touch, simulate
from glowc.place.places import actions_of, memory_blocks, verify_plan
from glowc.place.planning import Planned, Request, make_plan, pareto
from glowc.program.ir import Advance, Instr, Program, Segment


@dataclass(frozen=True)
class Mutant:
    """A plan with one error in it; `simulated`: only executing it can show the error."""

    label: str
    planned: Planned
    simulated: bool


def overlapped(seed: int) -> Planned:
    _, program = random_net(seed)
    return make_plan(lambda _: program, Request("overlap"))


def streamed(seed: int = 0, *, fed: bool = False) -> Planned:
    net = ImageNet(seed)
    x = net.input((16, 6, 2))
    x = net.conv(net.conv(x, 4), 4, 3, 2)
    x = net.add(x, net.conv(net.conv(x, 4, 3, depthwise=True), 4, 1))
    program = net.program(net.mean(net.conv(net.lut(x), 6)))
    return pareto(lambda _: program, Request("stream", fed=fed))[-1]


def moved(done: Planned, block: str, offset: int) -> Planned:
    offsets = {**done.plan.offsets_bytes, block: offset}
    sizes = {b.name: b.size_bytes for b in done.blocks}
    top = max(at + sizes[name] for name, at in offsets.items())
    return replace(done, plan=replace(done.plan, offsets_bytes=offsets, arena_bytes=top, lower_bound_bytes=0))


def wrong_places() -> Iterator[Mutant]:
    """Blocks inside of their forbidden distance: what a planner with a slip would give."""
    for seed in range(6):
        done = overlapped(seed)
        sizes = {b.name: b.size_bytes for b in done.blocks}
        aligns = {b.name: b.align_bytes for b in done.blocks}
        for o in done.overlaps:
            other = done.plan.offsets_bytes[o.b]
            inside = range(max(-other, o.low + 1), o.high)
            fitting = [d for d in inside if (other + d) % aligns[o.a] == 0 and sizes[o.a] and sizes[o.b]]
            if fitting:
                yield Mutant(f"{seed} {o.a} too close to {o.b}", moved(done, o.a, other + fitting[0]), False)


def wrong_totals() -> Iterator[Mutant]:
    done = overlapped(1)
    p, first = done.plan, done.blocks[0].name
    missing = {n: o for n, o in p.offsets_bytes.items() if n != first}
    for label, broken in (
        ("arena too small", replace(p, arena_bytes=p.arena_bytes - 1)),
        ("arena too large", replace(p, arena_bytes=p.arena_bytes + 16)),
        ("bound above the arena", replace(p, lower_bound_bytes=p.arena_bytes + 1)),
        ("block without a place", replace(p, offsets_bytes=missing)),
        ("unknown block", replace(p, offsets_bytes={**p.offsets_bytes, "nobody": 0})),
        ("negative place", replace(p, offsets_bytes={**p.offsets_bytes, first: -16})),
    ):
        yield Mutant(label, replace(done, plan=broken), False)


def wrong_distances() -> Iterator[Mutant]:
    """A distance declared one byte too lenient, and a plan that uses it: the checker is told the same lie."""
    for channels, kernel, stride in ((2, 3, 1), (3, 3, 2), (1, 2, 1), (4, 1, 1), (2, 3, 2), (5, 2, 2)):
        net = ImageNet(1)
        program = net.program(net.conv(net.input((8, 5, 2)), channels, kernel, stride))
        honest = make_plan(lambda _, p=program: p, Request("overlap"))
        (o,) = honest.overlaps
        for side, lie in (("above", replace(o, high=o.high - 1)), ("below", replace(o, low=o.low + 1))):
            at = {o.b: 1000, o.a: 1000 + (lie.high if side == "above" else lie.low)}
            placed = plan(honest.blocks, [lie], fixed=at)
            params = {**honest.program.instrs[0].params, "descending": int(side == "above")}
            instr = replace(honest.program.instrs[0], params=params)
            turned = replace(honest.program, instrs=(instr,))
            yield Mutant(f"{channels} {kernel} {stride} {side}", Planned("overlap", turned, placed, (lie,)), True)


def wrong_directions() -> Iterator[Mutant]:
    for seed in range(12):
        done = overlapped(seed)
        for index, instr in enumerate(done.program.instrs):
            reads = {done.program.root(o.buffer)[0] for o in instr.operands if o.role == "in"}
            out = done.program.root(instr.operand("out").buffer)[0]
            mine = [o for o in done.overlaps if o.a == out and o.b in reads]
            if "descending" not in instr.params or not mine or instr.params["out_h"] == 1:
                continue
            at = done.plan.offsets_bytes
            distance = at[mine[0].a] - at[mine[0].b]
            sizes = {b.name: b.size_bytes for b in done.blocks}
            if not -sizes[mine[0].a] < distance < sizes[mine[0].b] or mine[0].low >= mine[0].high:
                continue
            params = {**instr.params, "descending": 1 - int(instr.params["descending"])}
            yield Mutant(f"{seed} {instr.name}", replace(done, program=with_instr(done.program, index, params)), True)


def with_instr(program: Program, index: int, params: dict[str, object]) -> Program:
    instrs = list(program.instrs)
    instrs[index] = replace(instrs[index], params=params)  # type: ignore[arg-type]
    return replace(program, instrs=tuple(instrs))


def wrong_rings() -> Iterator[Mutant]:
    """A ring with a row less, as everybody who uses it sees it."""
    for done in (streamed(), streamed(fed=True)):
        program = done.program
        segment = program.segments[0]
        for root in sorted({program.root(o.buffer)[0] for i in program.instrs for o in i.operands}):
            smaller = shrunk(program, segment, root)
            if smaller is not None:
                yield Mutant(f"{'fed ' if segment.feed else ''}{root}", replace(done, program=smaller), True)


def shrunk(program: Program, segment: Segment, root: str) -> Program | None:
    instrs, advances, seen = [], [], False
    for instr, moves in zip(program.instrs[segment.begin : segment.end], segment.advances, strict=True):
        roots = {o.role: program.root(o.buffer)[0] for o in instr.operands}
        params = dict(instr.params)
        for role, height in (("in", "in_h"), ("out", "out_h")):
            key = f"{role}_ring"
            if roots.get(role) == root and key in params and 1 < int(params[key]) < int(params.get(height, 99)):
                params[key], seen = int(params[key]) - 1, True
        instrs.append(replace(instr, params=params))
        advances.append(tuple(less(m) if roots[m.role] == root and m.ring < 8 else m for m in moves))
    feed = segment.feed
    if feed is not None and program.root(feed.role)[0] == root:
        feed = less(feed)
    mutant = replace(segment, advances=tuple(advances), feed=feed)
    changed: list[Instr] = [*program.instrs[: segment.begin], *instrs, *program.instrs[segment.end :]]
    return replace(program, instrs=tuple(changed), segments=(mutant, *program.segments[1:])) if seen else None


def less(move: Advance) -> Advance:
    return replace(move, ring=max(1, move.ring - 1))


def wrong_steps() -> Iterator[Mutant]:
    """Rows in another order: a step too early or left out."""
    for done in (streamed(), streamed(fed=True)):
        segment = done.program.segments[0]
        steps = list(segment.steps)
        kind = "fed " if segment.feed else ""
        for at in range(3, len(steps) - 1, 4):
            if steps[at] == steps[at + 1]:
                continue
            later = next((i for i in range(at + 1, len(steps)) if steps[i] == steps[at]), None)
            without = [*steps[:at], *steps[at + 1 :]]
            if later is not None:
                yield Mutant(f"{kind}step {at} left out", with_steps(done, without), True)


def with_steps(done: Planned, steps: list[int]) -> Planned:
    first = replace(done.program.segments[0], steps=tuple(steps))
    return replace(done, program=replace(done.program, segments=(first, *done.program.segments[1:])))


MUTANTS = [
    *wrong_places(), *wrong_totals(), *wrong_distances(), *wrong_directions(), *wrong_rings(), *wrong_steps(),
]  # fmt: skip


def caught(mutant: Mutant) -> bool:
    for judge in (
        lambda: check(mutant.planned.plan, memory_blocks(mutant.planned.program), mutant.planned.overlaps),
        lambda: verify_plan(mutant.planned.program, mutant.planned.plan),
    ):
        try:
            judge()
        except InternalError:
            return True
    return False


def test_there_are_at_least_fifty_errors_of_all_kinds() -> None:
    assert len(MUTANTS) >= 50
    kinds = (wrong_places, wrong_totals, wrong_distances, wrong_directions, wrong_rings, wrong_steps)
    assert all(len(list(kind())) >= 3 for kind in kinds), [len(list(kind())) for kind in kinds]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.label)
def test_error_is_caught(mutant: Mutant) -> None:
    if mutant.simulated:  # what the checker cannot know
        check(mutant.planned.plan, memory_blocks(mutant.planned.program), mutant.planned.overlaps)
        with pytest.raises(InternalError, match="does not keep the data"):
            verify_plan(mutant.planned.program, mutant.planned.plan)
    else:
        assert caught(mutant)


@pytest.mark.parametrize(("at", "size", "wrong"), [(8, 4, 0), (7, 4, 0), (9, 4, 1), (8, 8, 1), (5, 8, 0), (6, 8, 1)])
def test_an_element_is_read_before_it_is_overwritten(at: int, size: int, wrong: int) -> None:
    """Four elements of an input at byte 8; an output of one byte each may start there, one of two at 5."""
    x, y = Touch("x", 0, 4, 1), Touch("y", 0, size, 11)
    actions = [Action("make", (), (x,)), Action("use", (x,), (y,), (("x", 0, 4),), elements=4)]
    assert len(simulate(actions, {"x": 8, "y": at}, 24)) == wrong


@pytest.mark.parametrize(("size", "wrong"), [(4, 0), (8, 1)])
def test_an_output_over_its_input_has_its_size(size: int, wrong: int) -> None:
    x, y = Touch("x", 0, 4, 1), Touch("y", 0, size, 11)
    actions = [Action("make", (), (x,)), Action("use", (x,), (y,), (("x", 0, 4),), in_place=True)]
    assert len(simulate(actions, {"x": 0, "y": 0}, 24)) == wrong


@pytest.mark.parametrize("fed", [False, True])
def test_the_plans_that_were_broken_are_right_otherwise(fed: bool) -> None:
    done = streamed(fed=fed)
    assert done.kind == "stream"
    check(done.plan, done.blocks, done.overlaps)
    verify_plan(done.program, done.plan)
    assert len(actions_of(done.program)) > 50


def test_a_plan_of_one_block_per_offset_is_right() -> None:
    done = streamed()
    at, offsets = 0, {}
    for block in done.blocks:
        at = -(-at // block.align_bytes) * block.align_bytes
        offsets[block.name] = at
        at += block.size_bytes
    verify_plan(done.program, MemoryPlan(offsets, at, 0, "by hand"))
