"""Tiles before and after their instructions are ordered and given registers; orders and tables of cores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from glowc.asm.allocate import PLACES, allocate
from glowc.asm.block import Block
from glowc.asm.cores import DualIssue
from glowc.asm.insn import CORE, FPU, SP, Insn, Listing, Loop, Register, instructions
from glowc.asm.isa import Memory
from glowc.asm.order import Orders, dependences, interleaved, is_order, ordered, orders_of
from glowc.asm.simulate import run
from glowc.asm.write import short, text
from glowc.errors import InternalError
from glowc.kernels.dsp.pixel_tile import CORTEX_M7, PixelTile, steps_of, tile
from glowc.machine.cycles.mca import MCA, MODELS, block_cycles
from tests.asm.test_isa import insns
from tests.conftest import require_tool

ENDS = [(end, False) for end in ("u8", "v8", "n8", "s8")] + [(end, True) for end in ("r8", "v8", "n8", "s8")]
TILES = [PixelTile("dual", end, fixed, steps) for end, fixed in ENDS for steps in (0, 2, 8, 14)]
TILES += [PixelTile(form, "s8", fixed) for form in ("bytes", "wide") for fixed in (False, True)]
ENTERED = [PixelTile(form) for form in ("dual", "bytes", "wide")]
CASES, ROUNDS, BLOCKS, ROUND = 200, 2, 3, 8


def memories(pixels: PixelTile) -> dict[str, Memory]:
    """Return the call, inputs, stream and places for codes of random cases; some with the largest values."""
    rng = np.random.default_rng(pixels.steps)
    skip = 0 if pixels.steps else 2
    inputs = 2 * ((pixels.steps or ROUND) * ROUNDS - skip)
    acts = rng.integers(-255, 256, (CASES, 2 * inputs)).astype(np.int16)
    acts[:8] = rng.choice([-255, 255], (8, 2 * inputs))
    blocks = []
    for _ in range(BLOCKS):
        weights = rng.integers(0, 2**32, (CASES, inputs * (2 if pixels.form == "wide" else 1)), dtype=np.uint32)
        bias = rng.integers(-(2**20), 2**20, (CASES, 4)).astype(np.int32).view(np.uint32)
        scales = np.exp(rng.uniform(-14, -6, (CASES, 4))).astype(np.float32).view(np.uint32)
        if pixels.fixed:
            places = rng.integers(0, 12, (CASES, 4)).astype(np.uint8).view(np.uint32)
            scales = np.concatenate((places, rng.integers(0, 2**32, (CASES, 4), dtype=np.uint32)), axis=1)
        blocks.append(np.concatenate((bias, weights, scales), axis=1))
    fields = {16: BLOCKS, 20: inputs // 4, 24: 7, 32: skip, 36: 0x90909090, 40: 0x50505050}
    call = np.zeros((CASES, 16), np.uint32)
    for at, value in fields.items():
        call[:, at // 4] = value
    words = {"call": call, "acts": acts.view(np.uint32), "stream": np.concatenate(blocks, axis=1)}
    words |= {f"out{pixel}": np.zeros((CASES, BLOCKS), np.uint32) for pixel in (0, 1)}
    return {name: Memory(np.ascontiguousarray(array)) for name, array in words.items()}


def codes(listing: Listing, argument: Register, pixels: PixelTile) -> np.ndarray:
    """Return what a function writes."""
    found, zero = memories(pixels), np.zeros(CASES, np.uint32)
    with np.errstate(over="ignore"):
        run(listing, {argument: zero, SP: zero}, found)
    return np.stack([found[f"out{pixel}"].words for pixel in (0, 1)])


@pytest.mark.parametrize("pixels", TILES, ids=str)
def test_order_and_registers_change_no_code(pixels: PixelTile) -> None:
    listing, argument = tile(pixels, ROUND)
    placed = allocate(ordered(listing, orders_of(CORTEX_M7)) if pixels.steps else listing, {argument: 0})
    want = codes(listing, argument, pixels)
    assert len(np.unique(want)) > (CASES if pixels.form == "dual" else CASES // 8)
    assert np.array_equal(codes(short(placed), Register(CORE, 0, virtual=False), pixels), want)


@pytest.mark.parametrize("pixels", ENTERED, ids=str)
def test_steps_have_long_instructions(pixels: PixelTile) -> None:
    listing, argument = tile(pixels, ROUND)
    (outer,) = (item for item in short(allocate(listing, {argument: 0})) if isinstance(item, Loop))
    (loop,) = (item for item in outer.body if isinstance(item, Loop))
    steps = loop.body[loop.before : loop.begins.stop]
    assert {i.op for i in steps if isinstance(i, Insn)} <= {"ldr_moving", "ldrd_moving", "smlad", "sxtb16"}


@pytest.mark.parametrize(("end", "fixed"), ENDS)
def test_every_run_and_step_of_a_tile_has_an_order(end: str, *, fixed: bool) -> None:
    assert_ordered(tile(PixelTile("dual", end, fixed, steps=8))[0])


def assert_ordered(listing: Listing) -> None:
    """Check that the step of the inner loop, and what ends the outer one, have an order."""
    orders = orders_of(CORTEX_M7)
    (outer,) = (item for item in listing if isinstance(item, Loop))
    (inner,) = (item for item in outer.body if isinstance(item, Loop))
    last = outer.body[-1]
    assert isinstance(last, Insn)
    assert last.group in orders.runs
    assert inner.step[0].group in orders.steps


def test_rounds_are_of_eight_steps_wherever_layers_have_them() -> None:
    assert {groups: steps_of(groups) for groups in (2, 4, 7, 8, 10, 13, 16, 36)} == {
        2: 4, 4: 8, 7: 7, 8: 8, 10: 10, 13: 2, 16: 8, 36: 8,
    }  # fmt: skip


def products() -> Loop:
    (outer,) = (item for item in tile(PixelTile("dual", "u8", steps=4))[0] if isinstance(item, Loop))
    (inner,) = (item for item in outer.body if isinstance(item, Loop))
    return inner


def test_an_order_that_breaks_a_dependence_is_refused() -> None:
    step, found = products(), orders_of(CORTEX_M7).steps["two inputs of two pixels, four channels"]
    assert is_order(list(step.step), range(len(step.step)))
    backwards = replace(found, places=tuple(max(found.places) - place for place in found.places))
    with pytest.raises(InternalError, match="no times of these instructions"):
        interleaved(step, backwards)
    with pytest.raises(InternalError, match="no order of these instructions"):
        ordered(step.step, Orders({step.step[0].group: tuple(reversed(range(len(step.step))))}, {}))


def test_steps_begin_one_into_the_other() -> None:
    loop = products()
    mixed = interleaved(loop, orders_of(CORTEX_M7).steps[loop.step[0].group])
    assert sorted(map(repr, mixed.body)) == sorted(map(repr, loop.body))
    assert mixed.body != loop.body
    assert mixed.body[-1] == loop.body[-1]


def test_registers_that_run_out_are_told() -> None:
    b = Block()
    base = b.core()
    words = [b.load(base, 4 * k, "words") for k in range(len(PLACES[CORE]) + 1)]
    for word in words:
        b.change("add", word, imm=(1,))
    with pytest.raises(InternalError, match="ldr: 1 registers of bank r, 0 are free"):
        allocate(b.listing(), {base: 0})


def test_pairs_of_the_fpu_are_adjacent() -> None:
    placed = instructions(allocate(*_with_argument(tile(PixelTile("dual", "s8", steps=8)))))
    pairs = [[r.number for r in i.writes] for i in placed if i.op == "vmov_pair" and i.writes[0].bank == FPU]
    assert pairs
    assert all(second == first + 1 for first, second in pairs)


def _with_argument(found: tuple[Listing, Register]) -> tuple[Listing, dict[Register, int]]:
    return found[0], {found[1]: 0}


def blocks() -> Iterator[list[Insn]]:
    """Yield blocks of random instructions."""
    rng = np.random.default_rng(8)
    left_out = {"cmp", "ldm", "vldm", "ldrd", "str", "strb", "strb_by", "str_moving", "vmov"}
    left_out |= {"cmp_zero", "adds", "adds_two", "subs", "movs", "strd", "strb_moving"}  # in no order that was found
    left_out |= {"ldr_moving", "ldrd_moving", "ldm_still", "strh", "strh_at", "strh_by", "neg", "mla", "count"}
    left_out |= {"cmp_least"}
    known = [i for i in insns() if i.op not in left_out]
    for length in (2, 2, 2, 3, 3, 4, 6, 10, 20):
        for _ in range(8):
            yield [_moved(known[rng.integers(len(known))], rng) for _ in range(length)]


def _moved(insn: Insn, rng: np.random.Generator) -> Insn:
    """Return an instruction with other registers, the same ones where it changes one in place."""
    shift = {CORE: int(rng.integers(0, 5)), FPU: 2 * int(rng.integers(0, 3))}
    named = {r: replace(r, number=r.number + shift[r.bank]) for r in (*insn.reads, *insn.writes) if r.bank in shift}
    return insn.placed(named)


def steady(block: list[Insn]) -> float:
    """Return the cycles of a block that comes after itself, by the table of the core."""
    core, begun = DualIssue(), 0
    for turn in range(40):
        begun = core.time if turn == 20 else begun
        for insn in block:
            core.issue(insn)
    return (core.time - begun) / 20


def test_the_table_of_cortex_m7_is_what_llvm_says() -> None:
    require_tool(MCA)
    all_blocks = dict(enumerate(blocks()))
    told = block_cycles({k: [text(i) for i in block] for k, block in all_blocks.items()}, MODELS[CORTEX_M7])
    errors = [abs(steady(block) - told[k]) / told[k] for k, block in all_blocks.items()]
    assert np.mean(errors) < 0.05
    assert np.quantile(errors, 0.9) < 0.2


def test_dependences_are_those_of_registers_memory_and_branches() -> None:
    b = Block()
    base, word = b.core(), b.core()
    b.emit("ldr", (word,), (base,), 0, memory="a")
    b.keep(word, 0)
    other = b.kept(0)
    b.change("add", word, imm=(1,))
    b.repeat_until(word, other)
    assert dependences([i for i in b.listing() if isinstance(i, Insn)]) == [
        set(),
        {0},
        {1},
        {0, 1},
        {2, 3},
        {0, 1, 2, 3, 4},
    ]
