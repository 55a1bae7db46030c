"""Two pixels times four channels on Helium: codes in any order of the instructions, cycles of the order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from glowc.asm.allocate import allocate
from glowc.asm.insn import CORE, SP, Insn, Listing, Register, instructions
from glowc.asm.isa import P0, Memory
from glowc.asm.order import orders_of
from glowc.asm.schedule import cycles, scheduled, tried
from glowc.asm.simulate import run
from glowc.asm.write import text
from glowc.kernels.common.factors import Ends
from glowc.kernels.mve.pair_tile import CORTEX_M55, Run, Unrolled
from glowc.kernels.mve.stream import stream
from glowc.machine.cycles.mca import MCA, MODELS, block_cycles
from tests.conftest import require_tool

CASES, GROUPS, LINE, ZERO, LIMITS = 2, 3, 1 << 10, -7, (-20, 30)
CHANNELS, MODEL = 4 * GROUPS, MODELS[CORTEX_M55]
PLACES = np.stack((np.arange(4), np.arange(4) + CHANNELS), axis=1).reshape(-1).astype(np.int16)
BOUNDS = [np.full(8, limit, np.int16) for limit in LIMITS]


def core(number: int) -> Register:
    return Register(CORE, number, virtual=False)


def memory(values: np.ndarray) -> Memory:
    """Return the memory of all cases, with room behind it."""
    flat = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    return Memory(np.tile(np.pad(flat, (0, 64 + -flat.size % 4)).view(np.uint32), (CASES, 1)))


def drawn(rng: np.random.Generator, by: str, inputs: int) -> tuple[np.ndarray, np.ndarray, Ends]:
    """Return weights [channel, inputs], biases and ends of all groups."""
    weights = rng.integers(-127, 128, (CHANNELS, inputs)).astype(np.int8)
    bias, none = rng.integers(-3000, 3000, CHANNELS).astype(np.int32), np.zeros(0)
    if by == "scaled":
        return weights, bias, Ends(rng.uniform(1e-4, 1e-2, CHANNELS).astype(np.float32).view(np.int32), None, none)
    if by == "line":
        return weights, LINE * bias, Ends(rng.integers(-(1 << 26), -(1 << 22), CHANNELS).astype(np.int32), None, none)
    shifts = rng.integers(-9, -5, CHANNELS).astype(np.int8)
    return weights, bias, Ends(rng.integers(1 << 30, (1 << 31) - 1, CHANNELS).astype(np.int32), shifts, none)


def codes_of(products: np.ndarray, bias: np.ndarray, ends: Ends, by: str, *, clamped: bool) -> np.ndarray:
    """Return the codes of products[.., channel], by the meaning of each end."""
    words, sums = ends.words.astype(np.int64), products + bias
    if by == "scaled":
        found = np.rint(sums.astype(np.float32) * ends.words.view(np.float32)).astype(np.int64) + ZERO
    elif by == "line":
        found = (bias - LINE * products) * words >> 47
    else:
        assert ends.shifts is not None
        high, places = 2 * sums * words + (1 << 31) >> 32, -ends.shifts.astype(np.int64)
        found = (high - (high < 0) * (by == "fixed") + (1 << places >> 1) >> places) + ZERO
    return np.clip(found, *(LIMITS if clamped else (-128, 127)))


def made(insns: tuple[Insn, ...], *, is_ordered: bool) -> Listing:
    return allocate(scheduled(insns, orders_of(CORTEX_M55)) if is_ordered else insns, {})


def state_of(by: str, tail: int) -> dict[Register, np.ndarray]:
    """Return registers: all 0 but what the first one of a number holds, and bytes of a tail."""
    state = {core(number): np.zeros(CASES, np.uint32) for number in (*range(13), 14)}
    number = -LINE if by == "line" else ZERO
    return state | {
        SP: np.zeros(CASES, np.uint32), P0: np.full(CASES, (1 << tail) - 1, np.uint32),
        core(3): np.full(CASES, number & 0xFFFFFFFF, np.uint32), core(7): np.full(CASES, -LINE & 0xFFFFFFFF, np.uint32),
    }  # fmt: skip


@pytest.mark.parametrize("by", ["scaled", "line", "fixed", "rectified"])
@pytest.mark.parametrize("inputs", range(8, 49, 8))
@pytest.mark.parametrize(("clamped", "is_ordered"), [(False, False), (False, True), (True, True)])
def test_runs_give_the_codes_of_sums(by: str, inputs: int, *, clamped: bool, is_ordered: bool) -> None:
    rng, pairs = np.random.default_rng(inputs), 3
    weights, bias, ends = drawn(rng, by, inputs)
    x = rng.integers(-128, 128, (2 * pairs, inputs)).astype(np.int8)
    pitch = 8 if inputs == 8 else -(-inputs // 16) * 16
    run_of = Run(inputs=inputs, end="scaled" if by == "line" else by, clamped=clamped)
    first, *ways = run_of.runs
    step, last = ways[2:] if by == "line" else ways[:2]
    memories = {
        "r1": memory(np.pad(x, ((0, 0), (0, pitch - inputs)))), "out": memory(np.zeros((2 * pairs, CHANNELS), np.int8)),
        "r5": memory(stream(weights[:, None], bias, ends, 0)), "sp": memory(np.concatenate((PLACES, *BOUNDS))),
    }  # fmt: skip
    for group in range(GROUPS):
        state = state_of(by, 16)
        state[core(5)] += np.uint32(group * (4 * inputs + 8 * 4 + 4 * (ends.shifts is not None)))
        state[core(7)] = np.full(CASES, 2 * CHANNELS, np.uint32)
        state[core(9)] += np.uint32(4 * group)
        for part in (first, *[step] * (pairs - 1), last):
            state = run(made(part, is_ordered=is_ordered), state, memories)
    want = codes_of(x.astype(np.int64) @ weights.T.astype(np.int64), bias, ends, by, clamped=clamped)
    got = memories["out"].words.view(np.int8)[:, : want.size].reshape(CASES, *want.shape)
    assert (got == want).all()


@pytest.mark.parametrize("by", Unrolled.BY)
@pytest.mark.parametrize(("segments", "length"), [(1, 36), (1, 64), (1, 116), (2, 24), (3, 48), (4, 16), (5, 32)])
@pytest.mark.parametrize(("clamped", "is_ordered"), [(False, False), (False, True), (True, True)])
def test_segments_give_the_codes_of_sums(
    by: str, segments: int, length: int, *, clamped: bool, is_ordered: bool
) -> None:  # fmt: skip
    rng, code = np.random.default_rng(length), Unrolled(segments=segments, run=length, clamped=clamped)
    weights, bias, ends = drawn(rng, by, segments * length)
    x = rng.integers(-128, 128, (2, segments, length)).astype(np.int8)
    first, line, scaled, last_line, last_scaled = code.runs
    step, last = (line, last_line) if by == "line" else (scaled, last_scaled)
    places = np.arange(2 * segments).reshape(2, segments) * length
    memories = {
        "x": memory(x), "out": memory(np.zeros((2, CHANNELS), np.int8)),
        "r5": memory(stream(weights.reshape(CHANNELS, segments, -1), bias, ends, 0, None, code.cuts)),
        "sp": memory(np.concatenate((np.full(8, ZERO, np.int16), *BOUNDS))),
        "segments": memory(np.concatenate((np.zeros(12), places.T.reshape(-1))).astype(np.int32)),
        "call": memory(np.concatenate((np.zeros(14, np.int16), PLACES))),
    }  # fmt: skip
    state = state_of(by, code.tail or 16)
    state[core(3)], state[core(5)] = (np.full(CASES, n & 0xFFFFFFFF, np.uint32) for n in (places[1, 0], -code.left))
    for part in (first, *[step] * (GROUPS - 1), last):
        state = run(made(part, is_ordered=is_ordered), state, memories)
    want = codes_of(x.reshape(2, -1).astype(np.int64) @ weights.T.astype(np.int64), bias, ends, by, clamped=clamped)
    got = memories["out"].words.view(np.int8)[:, : want.size].reshape(CASES, *want.shape)
    assert (got == want).all()


def steps() -> Iterator[tuple[Insn, ...]]:
    """Yield what is repeated of some tiles."""
    for inputs, end in ((16, "scaled"), (32, "fixed"), (48, "rectified")):
        yield Run(inputs=inputs, end=end, clamped=False).runs[1]
    for segments, length in ((1, 64), (3, 24), (3, 32)):
        yield from Unrolled(segments=segments, run=length, clamped=False).runs[1:3]


@pytest.mark.parametrize("step", list(steps()), ids=lambda step: step[0].group)
def test_what_is_repeated_has_an_order_that_waits_little(step: tuple[Insn, ...]) -> None:
    require_tool(MCA)
    orders = orders_of(CORTEX_M55)
    assert step[0].group in {*orders.tries, *orders.runs}
    found = scheduled(step, orders)
    lines = [line for i in instructions(allocate(found, {})) for line in text(i).splitlines()]
    took = block_cycles({0: [*lines, "bne #-4"]}, MODEL)
    assert took[0] < 1.3 * len(step)
    assert cycles(found) == pytest.approx(took[0], rel=0.03)


def test_a_run_without_registers_for_an_order_keeps_its_own() -> None:
    run_of = Run(inputs=48, end="fixed", clamped=True).runs[1]
    assert tried(run_of, ()) == (-1, run_of)
