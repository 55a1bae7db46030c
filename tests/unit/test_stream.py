"""Row streaming: random networks under every plan give the same bytes, no row is made twice, rings are no larger."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from stream_nets import ImageNet, random_net

from glowc.errors import InputError, InternalError
from glowc.graph.types import DType, TensorType
from glowc.kernels.verify import verify_program
from glowc.memory import MemoryPlan, check
from glowc.place.places import ordered, verify_plan
from glowc.place.planning import Planned, Request, make_plan, pareto
from glowc.place.stream.rings import Streamed, Streamer, scratch_of, share_scratch
from glowc.place.stream.segmentation import frontier
from glowc.program.interp import run_program
from glowc.program.ir import Access, Buffer, BufferKind, Operand, Program
from glowc.program.text import dump_program, parse_program


def plans(program: Program, **wanted: bool) -> list[Planned]:
    return pareto(lambda _: program, Request("stream", **wanted))


def holds(done: Planned, feed: dict[str, np.ndarray], wanted: dict[str, np.ndarray]) -> None:
    """The plan passes the checker and the simulator, and the interpreter computes the same bytes in its arena."""
    check(done.plan, done.blocks, done.overlaps)
    verify_plan(done.program, done.plan)
    plan = done.plan
    got = run_program(done.program, feed, offsets_bytes=plan.offsets_bytes, arena_bytes=plan.arena_bytes)
    assert all(np.array_equal(got[name], wanted[name]) for name in wanted)


def rows_made(done: Planned) -> list[Counter[int]]:
    return [Counter(s for s in segment.steps) for segment in done.program.segments]


@pytest.mark.parametrize("seed", range(60))
def test_random_networks_give_the_same_bytes_under_every_plan(seed: int) -> None:
    net, program = random_net(seed)
    feed = net.feed(program)
    wanted = run_program(program, feed)
    for caller_io in (False, True):
        for done in plans(program, caller_io=caller_io):
            holds(done, feed, wanted)
    try:
        fed = plans(program, fed=True)
    except InputError:
        return
    for done in fed:
        holds(done, feed, wanted)


@pytest.mark.parametrize("seed", range(60))
def test_every_cut_of_a_random_network_is_sound(seed: int) -> None:
    """Not only the cuts that pay: any run of instructions that can be streamed."""
    net, program = random_net(seed)
    feed = net.feed(program)
    wanted = run_program(program, feed)
    streamer = Streamer(ordered(program))
    count = len(streamer.program.instrs)
    rng = np.random.default_rng(seed)
    pairs = [(b, e) for b in range(count) for e in range(b + 1, count + 1)]
    for at in rng.permutation(len(pairs))[:6]:
        segment = streamer.segment(*pairs[at])
        if segment is not None:
            got = run_program(streamer.apply([segment]), feed)
            assert all(np.array_equal(got[name], wanted[name]) for name in wanted), pairs[at]


@pytest.mark.parametrize("seed", range(40))
def test_no_row_is_made_twice_and_none_of_a_result_is_left_out(seed: int) -> None:
    _, program = random_net(seed)
    for done in plans(program):
        for segment, made in zip(done.program.segments, rows_made(done), strict=True):
            for number, instr in enumerate(done.program.instrs[segment.begin : segment.end]):
                rows = instr.rows[1] if instr.rows is not None else made[number]
                assert 0 < made[number] <= rows, instr.name
        assert done.plan.arena_bytes <= plans(program)[0].plan.arena_bytes


def chain(pointwise: int) -> tuple[ImageNet, Program]:
    net = ImageNet(1)
    x = net.input((16, 8, 2))
    for _ in range(pointwise):
        x = net.conv(net.conv(x, 0, 3, depthwise=True), 8, 1)
    return net, net.program(net.mean(x))


def whole(program: Program, *, fed: bool = False) -> Streamed:
    segment = Streamer(ordered(program), fed=fed).segment(0, len(program.instrs))
    assert segment is not None
    return segment


def test_rings_hold_the_rows_of_one_window() -> None:
    _, program = chain(3)
    rows = {r.buffer: r.rows for r in whole(program).rings}
    assert [rows[f"v{i}"] for i in range(7)] == [16, 1, 3, 1, 3, 1, 1]
    fed = {r.buffer: r.rows for r in whole(program, fed=True).rings}
    assert fed["v0"] == 3


def test_the_mean_becomes_sums_of_rows() -> None:
    _, program = chain(2)
    done = plans(program)[-1]
    kernels = [i.kernel for i in done.program.instrs]
    assert kernels[-2:] == ["sum_rows_s8", "requant_sums_s8"]
    assert sum(i.macs for i in done.program.instrs) == sum(i.macs for i in program.instrs)


def residual(*, shortcut: bool) -> Program:
    net = ImageNet(2)
    x = net.conv(net.input((16, 8, 2)), 4)
    y = net.conv(net.conv(x, 4, 3, 2 if shortcut else 1), 4)
    return net.program(net.mean(net.add(net.conv(x, 4, 1, 2) if shortcut else x, y)))


def test_the_sum_of_a_residual_block_lies_over_its_skip_branch() -> None:
    segment = whole(residual(shortcut=False))
    merged = [r for r in segment.rings if len(r.stages) > 1]
    assert [(r.stages, r.rows) for r in merged] == [((0, 3), 3)]


def test_a_shortcut_runs_beside_the_branch_that_needs_the_same_rows() -> None:
    segment = whole(residual(shortcut=True))
    skip = next(r for r in segment.rings if r.buffer == "v1")
    assert skip.rows == 3


def test_instructions_of_a_segment_share_the_largest_scratch() -> None:
    net = ImageNet(5)
    program = net.program(net.conv(net.conv(net.input((8, 4, 2)), 3), 2))
    buffers, instrs = dict(program.buffers), []
    for instr, size in zip(program.instrs, (64, 16), strict=True):
        name = f"{instr.name}.scratch"
        buffers[name] = Buffer(name, BufferKind.SCRATCH, size, 4)
        scratch = Operand("scratch", name, Access.OUT, TensorType((size,), DType.S8))
        instrs.append(replace(instr, operands=(*instr.operands, scratch)))
    largest = scratch_of(replace(program, buffers=buffers, instrs=tuple(instrs)), 0, 2)
    assert largest is not None
    assert largest.size_bytes == 64
    assert {i.operand("scratch").buffer for i in share_scratch(instrs, largest)} == {largest.name}


def test_whoever_sees_rows_in_another_way_is_not_streamed() -> None:
    _, program = chain(1)
    first, second, *rest = program.instrs
    planar = replace(second, params={**second.params, "in_ch": 128, "in_col": 1, "in_row": 8})
    assert Streamer(program).segment(0, 2) is not None
    assert Streamer(replace(program, instrs=(first, planar, *rest))).segment(0, 2) is None


def test_a_limit_takes_the_cheapest_plan_that_fits() -> None:
    _, program = chain(4)
    every = plans(program)
    assert len(every) >= 2
    for wanted in every:
        got = make_plan(lambda _: program, Request(limit_bytes=wanted.plan.arena_bytes))
        assert (got.plan.arena_bytes, got.extra_insns) == (wanted.plan.arena_bytes, wanted.extra_insns)
    none_fits = make_plan(lambda _: program, Request(limit_bytes=1))
    assert none_fits.plan.arena_bytes == every[-1].plan.arena_bytes
    assert make_plan(lambda _: program, Request()).kind == "overlap"
    assert make_plan(lambda _: program, Request(room_bytes=every[-1].plan.arena_bytes)).kind == "stream"


def test_the_frontier_falls_in_bytes_and_rises_in_price() -> None:
    for seed in range(20):
        _, program = random_net(seed)
        cuts = frontier(Streamer(ordered(program)))
        for a, b in pairwise(cuts):
            assert a.peak_bytes > b.peak_bytes
            assert a.extra_insns < b.extra_insns


def test_rows_cannot_feed_two_inputs() -> None:
    net = ImageNet(3)
    a, b = net.input((6, 4, 2)), net.input((6, 4, 2))
    program = net.program(net.add(a, b))
    with pytest.raises(InputError, match="one input"):
        make_plan(lambda _: program, Request(fed=True))


@pytest.mark.parametrize("wanted", [{}, {"fed": True}, {"caller_io": True}])
def test_segments_survive_the_text_form(wanted: dict[str, bool]) -> None:
    _, program = chain(2)
    done = plans(program, **wanted)[-1]
    read = parse_program(dump_program(done.program))
    assert read.segments == done.program.segments
    assert read.caller_io == done.program.caller_io
    assert read.instrs == done.program.instrs


def test_broken_segments_are_reported() -> None:
    _, program = chain(2)
    done = plans(program, fed=True)[-1].program
    (segment,) = done.segments
    for broken, said in (
        (replace(segment, end=99), "leaves the"),
        (replace(segment, steps=segment.steps[:2]), "missing or unknown"),
        (replace(segment, progress="nobody"), "has no buffer"),
    ):
        with pytest.raises(InternalError, match=said):
            verify_program(replace(done, segments=(broken,)))


def test_a_plan_that_fits_no_longer_is_found_by_the_simulator() -> None:
    _, program = chain(2)
    done = plans(program)[-1]
    shrunk = MemoryPlan(dict.fromkeys(done.plan.offsets_bytes, 0), done.plan.arena_bytes, 0, "broken")
    with pytest.raises(InternalError, match="does not keep the data"):
        verify_plan(done.program, shrunk)


@pytest.mark.parametrize("part", [0, 1])
def test_a_layer_behind_a_segment_may_read_a_part_of_what_it_made(part: int) -> None:
    """As the groups of a convolution do after a mean: their views keep their size and place."""
    net = ImageNet(5)
    x = net.input((9, 8, 4))
    y = net.mean(net.conv(net.conv(x, 8), 8))
    half = net.value((1, 1, 4))
    net.buffers[half] = replace(net.buffers[half], alias_of=y, alias_offset_bytes=4 * part)
    program = net.program(net.lut(y), net.conv(half, 6, 1))
    feed = net.feed(program)
    wanted = run_program(program, feed)
    done = plans(program)
    assert any(plan.kind == "stream" for plan in done)
    for plan in done:
        holds(plan, feed, wanted)
