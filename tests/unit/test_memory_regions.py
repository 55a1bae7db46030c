"""An arena in several memory regions: the best choice on small cases by brute force, capacities, errors put into plans,
the estimate of accesses, board files and options."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from pathlib import Path
from random import Random

import numpy as np
import pytest
from stream_nets import ImageNet, random_net

from glowc.board import arena_rooms, load_board
from glowc.codegen.places import ArenaPart, check_parts
from glowc.errors import BoardError, GlowcError, InputError, InternalError
from glowc.graph.types import DType, TensorType
from glowc.memory import Block, Lifetime, MemoryPlan, Overlap, Room, check, placement, split
from glowc.memory.regions import joined
from glowc.memory.simulate import Action, Touch, simulate
from glowc.place.places import verify_plan
from glowc.place.planning import Planned, Request, make_plan, pareto
from glowc.place.regions import parse_regions, plan_maps
from glowc.place.rewrite.accesses import accesses, elements_touched
from glowc.program.interp import run_program
from glowc.program.ir import Access, Instr, Operand, Program
from tests.kernels.collect import all_cases
from tests.unit.test_target import VALID, own_board


@dataclass(frozen=True)
class Case:
    """A placement problem; sizes and capacities are a few bytes, so that brute force sees every placement."""

    blocks: list[Block]
    overlaps: list[Overlap]
    accesses: dict[str, int]


def small_case(seed: int) -> Case:
    r = Random(seed)
    blocks = []
    for i in range(r.randrange(2, 7)):
        begin = r.randrange(5)
        life = Lifetime(begin, begin + r.randrange(1, 4))
        blocks.append(Block(f"b{i}", life, r.randrange(5), r.choice([1, 1, 2])))
    overlaps = []
    for a, b in pairwise(blocks):
        if r.random() < 0.3:
            overlaps.append(Overlap(a.name, b.name, -r.randrange(a.size_bytes + 1), r.randrange(b.size_bytes + 1)))
    return Case(blocks, overlaps, {b.name: r.randrange(20) for b in blocks if r.random() < 0.9})


def fits(blocks: Sequence[Block], overlaps: Sequence[Overlap], capacity: int) -> bool:
    """Try every offset of every block."""
    pairs = {(o.a, o.b): (o.low, o.high) for o in overlaps} | {(o.b, o.a): (-o.high, -o.low) for o in overlaps}
    placed: dict[str, int] = {}

    def legal(block: Block, offset: int, other: Block) -> bool:
        together = block.lifetime.begin < other.lifetime.end and other.lifetime.begin < block.lifetime.end
        low, high = pairs.get((block.name, other.name), (-block.size_bytes, other.size_bytes))
        default = (block.name, other.name) not in pairs
        if not together or (default and not (block.size_bytes and other.size_bytes)):
            return True
        return not low < offset - placed[other.name] < high

    def extend(left: Sequence[Block]) -> bool:
        if not left:
            return True
        block = left[0]
        for offset in range(0, capacity - block.size_bytes + 1, block.align_bytes):
            if all(legal(block, offset, other) for other in blocks if other.name in placed):
                placed[block.name] = offset
                if extend(left[1:]):
                    return True
                del placed[block.name]
        return False

    return extend(sorted(blocks, key=lambda b: -b.size_bytes))


def best_by_force(case: Case, capacities: Sequence[int]) -> tuple[int, ...] | None:
    """The most accesses in the first room, then in the second and so on, over all placements that fit."""
    best = None
    for homes in product(range(len(capacities)), repeat=len(case.blocks)):
        groups = [[b for b, h in zip(case.blocks, homes, strict=True) if h == room] for room in range(len(capacities))]
        counts = tuple(sum(case.accesses.get(b.name, 0) for b in group) for group in groups)
        if best is not None and counts <= best:
            continue
        near = [[o for o in case.overlaps if {o.a, o.b} <= {b.name for b in group}] for group in groups]
        if all(fits(g, n, c) for g, n, c in zip(groups, near, capacities, strict=True)):
            best = counts
    return best


def rooms(*capacities: int) -> list[Room]:
    return [Room(f"r{i}", size) for i, size in enumerate(capacities)]


def counts(plan: MemoryPlan | None) -> tuple[int, ...] | None:
    return None if plan is None else tuple(r.accesses for r in plan.regions)


@pytest.mark.parametrize("seed", range(60))
def test_two_regions_are_as_good_as_brute_force(seed: int) -> None:
    case, r = small_case(seed), Random(seed)
    capacities = r.randrange(1, 8), r.randrange(3, 10)
    plan = split(case.blocks, case.overlaps, rooms(*capacities), case.accesses)
    assert counts(plan) == best_by_force(case, capacities)
    if plan is not None:
        check(plan, case.blocks, case.overlaps)
        assert plan.planner == "split, best"


@pytest.mark.parametrize("seed", range(30))
def test_three_regions_are_filled_one_after_the_other(seed: int) -> None:
    case, r = small_case(1000 + seed), Random(seed)
    case = replace(case, blocks=case.blocks[:5], overlaps=[o for o in case.overlaps if o.a != "b4" and o.b != "b5"])
    case = replace(case, overlaps=[o for o in case.overlaps if {o.a, o.b} <= {b.name for b in case.blocks}])
    capacities = r.randrange(1, 5), r.randrange(1, 5), r.randrange(3, 8)
    plan = split(case.blocks, case.overlaps, rooms(*capacities), case.accesses)
    assert counts(plan) == best_by_force(case, capacities)


@pytest.mark.parametrize("seed", range(40))
def test_without_the_search_the_choice_is_legal_and_seldom_worse(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement, "_MOST_STATES", 0)
    case = small_case(seed)
    plan = split(case.blocks, case.overlaps, rooms(5, 9), case.accesses)
    best = best_by_force(case, (5, 9))
    if plan is None or best is None:
        assert best is None or plan is None
        return
    check(plan, case.blocks, case.overlaps)
    assert plan.regions[0].accesses <= best[0]
    assert plan.regions[0].accesses >= 0.7 * best[0]


def large_case(seed: int) -> Case:
    r = Random(seed)
    blocks = []
    for i in range(r.randrange(20, 60)):
        begin = r.randrange(40)
        blocks.append(Block(f"b{i}", Lifetime(begin, begin + r.choice([1, 2, 3, 9])), r.randrange(1, 2000), 16))
    return Case(blocks, [], {b.name: r.randrange(100) * b.size_bytes for b in blocks})


@pytest.mark.parametrize("seed", range(12))
def test_no_capacity_is_exceeded_and_every_block_has_one_home(seed: int) -> None:
    case = large_case(seed)
    offered = rooms(3000, 6000, 1 << 20)
    plan = split(case.blocks, case.overlaps, offered, case.accesses)
    assert plan is not None
    check(plan, case.blocks)
    assert [(r.name, r.capacity_bytes) for r in plan.regions] == [(r.name, r.capacity_bytes) for r in offered]
    assert all(r.plan.arena_bytes <= r.capacity_bytes for r in plan.regions)
    homes = sorted(name for r in plan.regions for name in r.plan.offsets_bytes)
    assert homes == sorted(b.name for b in case.blocks)
    assert sum(r.accesses for r in plan.regions) == sum(case.accesses.values())


def test_equal_input_gives_equal_plans() -> None:
    case = large_case(3)
    plans = [split(case.blocks, [], rooms(4000, 1 << 20), case.accesses) for _ in range(2)]
    assert plans[0] == plans[1]


def test_what_fits_nowhere_gives_no_plan() -> None:
    block = Block("b", Lifetime(0, 1), 100, 4)
    assert split([block], [], rooms(99, 99), {"b": 1}) is None
    assert split([block], [], rooms(10, 100), {"b": 1}) is not None
    assert split([], [], rooms(10, 100), {}) is not None


def good() -> tuple[MemoryPlan, list[Block], list[Overlap]]:
    blocks = [Block(n, Lifetime(0, 2), 64, 16) for n in "abcd"] + [Block("e", Lifetime(2, 3), 100, 4)]
    overlaps = [Overlap("a", "b", -32, 64)]
    plan = split(blocks, overlaps, rooms(130, 400), {"a": 9, "b": 9, "c": 5, "d": 1, "e": 99})
    assert plan is not None
    assert len(plan.regions[0].plan.offsets_bytes) >= 2
    assert len(plan.regions[1].plan.offsets_bytes) >= 2
    return plan, blocks, overlaps


def broken_plans() -> Iterator[tuple[str, MemoryPlan]]:
    plan, _, _ = good()
    fast, slow = plan.regions

    def with_regions(*regions: object) -> MemoryPlan:
        return joined(regions, "by hand")  # type: ignore[arg-type]

    name = next(n for n in slow.plan.offsets_bytes)
    twice = replace(fast, plan=replace(fast.plan, offsets_bytes={**fast.plan.offsets_bytes, name: 0}))
    yield "lies in 2 regions", with_regions(twice, slow)
    left = {n: o for n, o in slow.plan.offsets_bytes.items() if n != name}
    yield "has no offset", with_regions(fast, replace(slow, plan=replace(slow.plan, offsets_bytes=left)))
    yield (
        "unknown block",
        with_regions(fast, replace(slow, plan=replace(slow.plan, offsets_bytes={**slow.plan.offsets_bytes, "x": 0}))),
    )
    yield "there are 1", with_regions(replace(fast, capacity_bytes=1), slow)
    less = fast.plan.arena_bytes - 1
    yield f"there are {less}", with_regions(replace(fast, capacity_bytes=less), slow)
    yield "is given 2 times", with_regions(fast, replace(slow, name=fast.name))
    same = replace(slow.plan, offsets_bytes=dict.fromkeys(slow.plan.offsets_bytes, 0))
    yield "too close", with_regions(fast, replace(slow, plan=same))
    shifted = {n: o + 1 for n, o in fast.plan.offsets_bytes.items()}
    yield "not aligned", with_regions(replace(fast, plan=replace(fast.plan, offsets_bytes=shifted)), slow)
    yield "said to be at", replace(plan, offsets_bytes={**plan.offsets_bytes, name: 0})
    yield "add up to", replace(plan, arena_bytes=plan.arena_bytes + 1)
    yield "add up to", replace(plan, lower_bound_bytes=plan.lower_bound_bytes - 1)
    yield "below the lower bound", with_regions(fast, replace(slow, plan=replace(slow.plan, lower_bound_bytes=1 << 20)))
    yield "the highest block ends", with_regions(replace(fast, plan=replace(fast.plan, arena_bytes=1)), slow)
    yield "has regions itself", with_regions(fast, replace(slow, plan=replace(slow.plan, regions=(fast,))))
    yield "has no offset", with_regions(fast)


@pytest.mark.parametrize(("text", "plan"), list(broken_plans()))
def test_checker_finds_errors_across_regions(text: str, plan: MemoryPlan) -> None:
    right, blocks, overlaps = good()
    check(right, blocks, overlaps)
    with pytest.raises(InternalError, match=text):
        check(plan, blocks, overlaps)


def test_overlap_is_forbidden_within_a_region_and_nothing_between_regions() -> None:
    blocks = [Block("a", Lifetime(0, 2), 8, 1), Block("b", Lifetime(0, 2), 8, 1)]
    far = Overlap("a", "b", -1000, 1000)
    plan = split(blocks, [far], rooms(8, 8), {"a": 2, "b": 1})
    assert plan is not None
    check(plan, blocks, [far])
    assert split(blocks, [far], rooms(999, 4), {"a": 2, "b": 1}) is None


def test_simulator_knows_regions() -> None:
    actions = [
        Action("make", (), (Touch("a", 0, 4, 1), Touch("b", 0, 4, 11))),
        Action("use", (Touch("a", 0, 4, 1), Touch("b", 0, 4, 11)), (Touch("c", 0, 4, 21),), (("a", 0, 4), ("b", 0, 4))),
    ]
    offsets, sizes = {"a": 0, "b": 0, "c": 4}, {"fast": 8, "slow": 8}
    home = {"a": "fast", "b": "slow", "c": "fast"}
    assert simulate(actions, offsets, sizes, home) == []
    assert "not what was written" in simulate(actions, offsets, sizes, dict.fromkeys("abc", "fast"))[0]
    assert "overwrites" in simulate(actions, {**offsets, "c": 0}, sizes, home)[0]
    assert simulate(actions, {**offsets, "c": 0}, {**sizes, "third": 4}, {**home, "c": "third"}) == []
    assert "outside" in simulate(actions, {**offsets, "c": 6}, sizes, home)[0]
    assert "has no place" in simulate(actions, offsets, sizes, {**home, "c": "nowhere"})[0]


# Programs


def planned_nets() -> Iterator[tuple[str, ImageNet, Program, Request]]:
    for seed in range(12):
        net, program = random_net(seed)
        yield f"overlap {seed}", net, program, Request("overlap")
    net = ImageNet(7)
    x = net.input((16, 6, 2))
    x = net.conv(net.conv(x, 4), 4, 3, 2)
    x = net.add(x, net.conv(net.conv(x, 4, 3, depthwise=True), 4, 1))
    program = net.program(net.mean(net.conv(net.lut(x), 6)))
    yield "stream", net, program, Request("stream")
    yield "rows", net, program, Request(fed=True)
    yield "caller", net, program, Request("stream", caller_io=True)


@pytest.mark.parametrize("share", [0.3, 0.6])
@pytest.mark.parametrize(("net", "program", "request_"), [pytest.param(*c[1:], id=c[0]) for c in planned_nets()])
def test_split_programs_keep_their_data_and_results(
    net: ImageNet, program: Program, request_: Request, share: float
) -> None:
    whole = make_plan(lambda _: program, request_)
    capacity = int(whole.plan.arena_bytes * share)
    done = make_plan(lambda _: program, replace(request_, rooms=tuple(rooms(capacity, 1 << 20))))
    assert [r.name for r in done.plan.regions] == ["r0", "r1"]
    verify_plan(done.program, done.plan)
    if not request_.caller_io:
        inputs = net.feed(done.program)
        got = run_program(
            done.program, inputs, offsets_bytes=done.plan.offsets_bytes, arena_bytes=done.plan.arena_bytes
        )
        wanted = run_program(program, inputs)
        assert all(np.array_equal(got[name], wanted[name]) for name in wanted)


def streamed(*capacities: int) -> Planned:
    net = ImageNet(0)
    x = net.input((16, 6, 2))
    program = net.program(net.lut(net.conv(net.conv(net.conv(x, 4), 4, 3, 2), 6)))
    return pareto(lambda _: program, Request("stream", rooms=tuple(rooms(*capacities))))[-1]


def test_simulator_finds_a_buffer_in_the_wrong_region() -> None:
    done = streamed(150, 4000)
    verify_plan(done.program, done.plan)
    found = 0
    fast, slow = done.plan.regions
    for name, offset in slow.plan.offsets_bytes.items():
        moved = replace(fast.plan, offsets_bytes={**fast.plan.offsets_bytes, name: min(offset, 8)}, arena_bytes=8000)
        rest = {n: o for n, o in slow.plan.offsets_bytes.items() if n != name}
        regions = [replace(fast, plan=moved), replace(slow, plan=replace(slow.plan, offsets_bytes=rest))]
        try:
            verify_plan(done.program, joined(regions, "by hand"))
        except InternalError:
            found += 1
    assert found >= 1


def test_a_plan_that_streams_is_taken_when_the_regions_are_too_small_for_others() -> None:
    net = ImageNet(0)
    x = net.input((16, 6, 2))
    program = net.program(net.mean(net.conv(net.conv(net.conv(x, 4), 4, 3, 2), 6)))
    whole = make_plan(lambda _: program, Request("overlap")).plan.arena_bytes
    assert whole > 300
    done = make_plan(lambda _: program, Request(room_bytes=300, rooms=tuple(rooms(200, 100))))
    assert done.kind == "stream"
    assert done.plan.regions
    none = make_plan(lambda _: program, Request(room_bytes=20, rooms=tuple(rooms(10, 10))))
    assert not none.plan.regions


# The estimate of accesses


def instr_of(net: ImageNet, **changes: object) -> Instr:
    return replace(net.instrs[-1], **changes)  # type: ignore[arg-type]


def test_accesses_of_products_follow_from_the_multiplications() -> None:
    net = ImageNet(0)
    x = net.input((8, 8, 3))
    net.conv(x, 5, 3)
    macs = 8 * 8 * 5 * 3 * 3 * 3
    inside = (8 * 3 - 2) ** 2 * 3  # taps in the image, of all windows
    assert elements_touched(instr_of(net, macs=macs))["in"] == 5 * inside
    assert elements_touched(instr_of(net, macs=macs, variant="dsp"))["in"] == pytest.approx(5 * inside / 4, abs=1)
    assert elements_touched(instr_of(net, macs=macs))["out"] == 8 * 8 * 5
    scratch = Operand("scratch", "s", Access.OUT, TensorType((54,), DType.U8))
    packed = instr_of(net, macs=macs, variant="dsp", operands=(*net.instrs[-1].operands, scratch))
    found = elements_touched(packed)
    assert found["in"] == inside
    assert found["scratch"] == 2 * (macs / 5 + macs / 4)
    net.conv(x, 3, 3, depthwise=True)
    macs = 8 * 8 * 3 * 9
    assert elements_touched(instr_of(net, macs=macs, variant="dsp"))["in"] == inside
    assert elements_touched(instr_of(net, macs=macs, variant="v7m"))["in"] == pytest.approx(inside / 3, abs=1)


def test_accesses_of_pools_and_elements() -> None:
    net = ImageNet(0)
    x = net.input((8, 8, 3))
    y = net.max_pool(x)
    assert elements_touched(net.instrs[-1]) == {"in": 8 * 8 * 3, "out": 4 * 4 * 3}
    net.add(y, y)
    assert elements_touched(net.instrs[-1]) == dict.fromkeys(("a", "b", "out"), 4 * 4 * 3)
    assert elements_touched(net.instrs[-1], steps=4)["out"] == 4 * 4 * 4 * 3


def test_every_kernel_has_an_estimate_for_every_operand() -> None:
    """On the cases of the kernel tests: all operands, no negative count, an output no less than its elements."""
    for case in all_cases():
        assert elements_touched(replace(case.instr, macs=1000)), "layers have multiply-accumulates, which cases lack"
        found = elements_touched(case.instr)
        assert set(found) == {o.role for o in case.instr.operands}, case.instr.kernel
        assert min(found.values()) >= 0
        whole = case.instr.rows is None
        written = [o for o in case.instr.operands if o.access is Access.OUT and o.role != "scratch"]
        assert all(found[o.role] >= o.type.elements for o in written if whole), case.instr.kernel


def test_accesses_of_a_program_count_the_caller_and_leave_out_constants() -> None:
    net = ImageNet(0)
    x = net.input((8, 8, 3))
    y = net.lut(x)
    found = accesses(net.program(y))
    assert found == {x: 2 * 8 * 8 * 3, y: 2 * 8 * 8 * 3}
    assert accesses(replace(net.program(y), caller_io=True)) == {}


def test_streaming_does_not_change_what_is_accessed_much() -> None:
    net = ImageNet(0)
    x = net.input((16, 6, 2))
    program = net.program(net.lut(net.conv(net.lut(net.conv(net.conv(x, 4), 4, 3, 2)), 6)))
    whole = make_plan(lambda _: program, Request("overlap")).program
    rows = make_plan(lambda _: program, Request("stream")).program
    assert rows.segments
    assert sum(accesses(rows).values()) == pytest.approx(sum(accesses(whole).values()), rel=0.1)


# Boards and options


def test_boards_with_fast_memory_have_regions_that_leave_room_for_the_stack() -> None:
    for name, regions in (("mps3-an547", ["dtcm", "sram"]), ("nucleo-h743zi", ["dtcm", "axi"])):
        board = load_board(name)
        assert [r.region for r in board.arena_regions] == regions
        assert board.arena_region == regions[-1]
        assert board.stack_bytes is not None
        assert board.arena_regions[0].reserve_bytes > board.stack_bytes
        script = (board.folder / "link.ld").read_text()
        for region in regions:
            assert f"*(.bss.glow_arena.{region}) }} > {region}" in script
        assert script.index(".bss.glow_arena") < script.index("INCLUDE cortex_m.ld")


def test_wrong_regions_of_a_board_are_all_named(tmp_path: Path) -> None:
    lines = [
        "arena_regions = [",
        '{ region = "flash" },',
        '{ region = "ram", reserve_bytes = 1024 },',
        '{ region = "ram", reserve = 1 },',
        "]",
    ]
    text = VALID.replace("stack_bytes", "".join(lines) + "\nstack_bytes")
    with pytest.raises(BoardError) as caught:
        load_board(str(own_board(tmp_path, text)))
    shown = str(caught.value)
    assert 'arena_regions[0].region: "flash" is not one of "ram"' in shown
    assert 'arena_regions[1].reserve_bytes: "ram" has 1024 bytes in all' in shown
    assert 'arena_regions[2].region: "ram" is there already' in shown
    assert "arena_regions[2].reserve: unknown field" in shown


def test_rooms_come_from_the_board_in_its_order_or_from_the_user() -> None:
    board, host = load_board("mps3-an547"), load_board("host")
    reserve = board.arena_regions[0].reserve_bytes
    assert arena_rooms(board, False, ()) == ()
    assert arena_rooms(board, True, ()) == (("dtcm", 0x80000 - reserve), ("sram", 0x400000))
    assert arena_rooms(board, True, (("dtcm", 4096),)) == (("dtcm", 4096), ("sram", 0x400000))
    assert arena_rooms(board, False, (("sram", None), ("dtcm", 4096))) == (("dtcm", 4096), ("sram", 0x400000))
    assert arena_rooms(board, False, (("sram", 10),)) == (("sram", 10),)
    assert arena_rooms(host, False, (("slow", 9), ("fast", 8))) == (("slow", 9), ("fast", 8))


@pytest.mark.parametrize(
    ("board", "is_split", "wanted", "texts"),
    [
        (
            "mps3-an547", False, (("dtmc", 1), ("ddr", 5), ("sram", 1 << 30), ("sram", 2)),
            ['unknown region "dtmc"; did you mean "dtcm"?', 'unknown region "ddr"', '"sram" is given twice',
             "regions: dtcm (at most"],
        ),
        ("mps3-an547", False, (("sram", 1 << 30),), ['"sram" has 4194304 bytes, not 1073741824']),
        ("host", True, (), ['board "host" has no arena_regions', "--region fast="]),
        ("host", False, (("fast", None), ("slow", None)), ['region "fast" needs a size', 'region "slow" needs a size']),
    ],
)  # fmt: skip
def test_wrong_wishes_are_all_named(
    board: str, is_split: bool, wanted: tuple[tuple[str, int | None], ...], texts: list[str]
) -> None:
    with pytest.raises(InputError) as caught:
        arena_rooms(load_board(board), is_split, wanted)
    assert all(text in str(caught.value) for text in texts)


def test_options_are_names_with_bytes() -> None:
    assert parse_regions(None) == ()
    assert parse_regions(["dtcm=100", "sram"]) == (("dtcm", 100), ("sram", None))
    with pytest.raises(InputError) as caught:
        parse_regions(["dtcm=", "=5", "a=0", "b=1x", "c=7"])
    assert all(f"--region {text}" in str(caught.value) for text in ("dtcm=", "=5", "a=0", "b=1x"))
    assert "c=7" not in str(caught.value)


def test_names_of_regions_must_be_names_in_c() -> None:
    def parts(*names: str) -> list[ArenaPart]:
        return [ArenaPart(name, 1, frozenset()) for name in names]

    check_parts(parts("dtcm", "sram"))
    for names in (("a-b",), ("int",), ("ram", "RAM"), ("x", "x_bytes")):
        with pytest.raises(GlowcError, match="regions cannot be named so"):
            check_parts(parts(*names))


def test_maps_are_drawn_region_by_region() -> None:
    done = streamed(150, 4000)
    maps = plan_maps(done)
    assert [name for name, _, _ in maps] == ["r0", "r1"]
    assert sorted(b.name for _, _, blocks in maps for b in blocks) == sorted(b.name for b in done.blocks)
