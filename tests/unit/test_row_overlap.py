"""Row overlap: the distances by brute force, both directions, elementwise kernels, and whole plans executed."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from stream_nets import ImageNet, random_net

from glowc.graph.types import DType
from glowc.memory import check
from glowc.place import planning
from glowc.place.places import actions_of, verify_plan
from glowc.place.planning import Planned, Request, make_plan
from glowc.place.rewrite import row_overlap
from glowc.place.rewrite.row_overlap import RowOverlap, row_overlaps, set_directions
from glowc.program.interp import run_program
from glowc.program.ir import Buffer, BufferKind, Program
from glowc.program.rows import RowInput
from tests.kernels.case import make_case


def planned(program: Program, kind: str = "overlap") -> Planned:
    return make_plan(lambda _: program, Request(kind))


def spoiled(program: Program, distance: int, *, descending: bool) -> bool:
    """Whether rows written at `distance` from the input hit input that a later row still needs, element by element."""
    instr = program.instrs[0]
    p = {k: int(v) for k, v in instr.params.items()}
    rows = range(p["out_h"])[:: -1 if descending else 1]
    written: set[int] = set()
    for y in rows:
        needed = {
            r * p["in_row"] + i
            for k in range(p["k_h"])
            if 0 <= (r := y * p["stride_h"] - p["pad_top"] + k * p["dil_h"]) < p["in_h"]
            for i in range(p["in_row"])
        }
        written |= {distance + y * p["out_row"] + i for i in range(p["out_row"])}
        if needed & written:
            return True
    return False


CASES = [
    (h, kernel, stride, pad, channels, dilation)
    for h in (5, 6)
    for kernel in (1, 2, 3)
    for stride in (1, 2)
    for pad in (0, 1)
    for channels in (1, 3)
    for dilation in (1, 2)
    if h + 2 * pad >= dilation * (kernel - 1) + 1
]


@pytest.mark.parametrize(("h", "kernel", "stride", "pad", "channels", "dilation"), CASES)
def test_distances_are_the_tightest_that_spoil_nothing(
    h: int, kernel: int, stride: int, pad: int, channels: int, dilation: int
) -> None:
    net = ImageNet(1)
    x = net.input((h, h, 2))
    program = net.program(net.conv(x, channels, kernel, stride, pad=pad, dilation=dilation))
    (overlap,) = row_overlaps(program)
    assert not spoiled(program, overlap.low, descending=False)
    assert not spoiled(program, overlap.high, descending=True)
    sizes = program.buffers[overlap.out].size_bytes, program.buffers[overlap.source].size_bytes
    if overlap.low > -sizes[0]:
        # one row further is wrong, unless the last windows do not reach the input
        worse = [d for d in range(overlap.low + 1, overlap.low + 2 * sizes[1]) if spoiled(program, d, descending=False)]
        assert worse
    assert all(not spoiled(program, d, descending=False) for d in range(-sizes[0], overlap.low + 1))
    assert all(not spoiled(program, d, descending=True) for d in range(overlap.high, sizes[1] + 1))


def test_distances_of_a_layer_worked_out_by_hand() -> None:
    net = ImageNet(2)
    program = net.program(net.conv(net.input((24, 8, 4)), 8, 3, 2))
    (overlap,) = row_overlaps(program)
    # Rows of 32 bytes on both sides. Upwards, row 1 ends at 64 and needs input from row 1 on; downwards, row 11
    # begins at 352 and needs input up to row 24.
    assert (overlap.low, overlap.high) == (-32, 24 * 32 - 11 * 32)


def test_a_layer_that_grows_is_placed_above_and_runs_downwards() -> None:
    net = ImageNet(3)
    x = net.conv(net.input((10, 6, 2)), 4, 1)
    program = net.program(net.lut(net.conv(net.conv(x, 12), 2, 1)))
    done = planned(program)
    directions = [i.params["descending"] for i in done.program.instrs if "descending" in i.params]
    assert 1 in directions
    assert done.plan.arena_bytes < planned(program, "plain").plan.arena_bytes
    verify_plan(done.program, done.plan)


def test_direction_follows_the_placement() -> None:
    net = ImageNet(4)
    x = net.input((6, 4, 2))
    program = net.program(net.conv(x, 2))
    size = program.buffers[x].size_bytes
    for offset, descending in ((size, 0), (8 * 4, 1), (-8 * 2, 0), (-size, 0)):
        turned = set_directions(program, row_overlaps(program), {"v0": size, "v1": size + offset})
        assert turned.instrs[0].params["descending"] == descending, offset


def test_no_overlap_with_what_lives_on() -> None:
    net = ImageNet(5)
    x = net.input((6, 4, 2))
    y = net.conv(x, 2)
    assert len(row_overlaps(net.program(net.add(y, x)))) == 2  # only those of the addition
    two = ImageNet(5)
    x = two.input((6, 4, 2))
    assert [o.index for o in row_overlaps(two.program(two.add(x, x)))] == []


def test_no_overlap_when_a_variant_does_not_keep_the_rows_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    net = ImageNet(6)
    program = net.program(net.conv(net.input((6, 4, 2)), 2))
    wild = row_overlap.variant_of(program.instrs[0])
    assert wild is not None
    monkeypatch.setattr(row_overlap, "variant_of", lambda _: replace(wild, rows_in_order=False))
    assert row_overlaps(program) == ()


@pytest.mark.parametrize("planes", [1, 3])
def test_rows_of_a_planar_input_are_needed_in_its_last_plane(planes: int) -> None:
    """Five rows of 8 bytes a plane, windows of two rows: output row y of 4 bytes is written above row y + 1."""
    source = RowInput("in", 5, 8, tuple((y, y + 2) for y in range(4)), planes)
    assert row_overlap._high(source, 4) == (planes - 1) * 40 + 5 * 8 - 3 * 4


def test_wider_elements_end_with_their_input() -> None:
    x = np.zeros(12, np.int8)
    case = make_case("dequantize", {"in": x}, {"n": 12, "zp": 3, "scale": 0.5}, out={"out": ((12,), DType.F32)})
    buffers = {"in": Buffer("in", BufferKind.INPUT, 12, 4), "out": Buffer("out", BufferKind.OUTPUT, 48, 4)}
    source, out = case.instr.operands
    program = Program("p", (source,), (out,), buffers, {}, (replace(case.instr, variant="mve"),))
    assert [(o.low, o.high) for o in row_overlaps(program)] == [(12 - 48, 12)]


def test_images_of_a_batch_are_no_rows() -> None:
    net = ImageNet(7)
    program = net.program(net.conv(net.input((6, 4, 2)), 2))
    instr = program.instrs[0]
    batch = replace(program, instrs=(replace(instr, params={**instr.params, "batch": 2}),))
    assert row_overlaps(batch) == ()


@pytest.mark.parametrize("seed", range(40))
def test_random_networks_give_the_same_bytes_in_an_overlapped_arena(seed: int) -> None:
    net, program = random_net(seed)
    feed = net.feed(program)
    wanted = run_program(program, feed)
    done = planned(program)
    verify_plan(done.program, done.plan)
    check(done.plan, done.blocks, done.overlaps)
    plan = done.plan
    got = run_program(done.program, feed, offsets_bytes=plan.offsets_bytes, arena_bytes=plan.arena_bytes)
    assert all(np.array_equal(got[name], wanted[name]) for name in wanted)
    assert plan.arena_bytes <= planned(program, "plain").plan.arena_bytes


def test_simulated_steps_follow_the_direction() -> None:
    net = ImageNet(8)
    program = net.program(net.conv(net.input((5, 4, 2)), 2))
    turned = set_directions(program, row_overlaps(program), {"v0": 0, "v1": 16})
    names = [a.name for a in actions_of(turned)][1:-1]
    assert names == [f"conv_s8.0 row {y}" for y in (4, 3, 2, 1, 0)]
    assert all(a != b for a, b in pairwise(names))


def test_the_input_is_overwritten_but_never_the_callers() -> None:
    net = ImageNet(9)
    program = net.program(net.lut(net.input((6, 4, 2))))
    inside = planned(program)
    assert inside.plan.arena_bytes == 48
    outside = make_plan(lambda _: program, Request("overlap", caller_io=True))
    assert outside.plan.arena_bytes == 0
    assert [b.kind for b in program.buffers.values()].count(BufferKind.INPUT) == 1


@pytest.mark.parametrize(("room", "left"), [(300, set()), (200, {0}), (100, {0, 2}), (0, {0, 1, 2})])
def test_outputs_are_moved_off_their_inputs_as_far_as_there_is_room(
    monkeypatch: pytest.MonkeyPatch, room: int, left: set[int]
) -> None:
    program: Any = SimpleNamespace(instrs=tuple(SimpleNamespace(macs=n, is_marker=False) for n in (1, 3, 2)))
    found = tuple(RowOverlap(index, f"out{index}", f"in{index}", 0, 0, grid=0) for index in range(3))

    def plan_memory(_: object, overlaps: tuple[RowOverlap, ...], *_more: object) -> object:
        return SimpleNamespace(arena_bytes=max(100 * (3 - len(overlaps)), room), offsets_bytes={})

    monkeypatch.setattr(planning, "plan_memory", plan_memory)
    monkeypatch.setattr(planning, "row_overlaps", lambda _: found)
    monkeypatch.setattr(planning, "off_grid", lambda *_: frozenset({0, 1, 2}))
    monkeypatch.setattr(planning, "of_blocks", tuple)
    monkeypatch.setattr(planning, "directed", lambda same, *_: same)
    done: Any = planning._placed(program, Request("overlap"))
    assert {o.index for o in done.overlaps} == left
