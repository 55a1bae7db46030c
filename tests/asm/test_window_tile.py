"""Depthwise windows on Helium: sums and codes in any order of the instructions, cycles of the order."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest

from glowc.asm.allocate import allocate
from glowc.asm.cores import CORES
from glowc.asm.insn import CORE, SP, VECTOR, Insn, Register
from glowc.asm.isa import P0, Memory
from glowc.asm.order import ordered, orders_of
from glowc.asm.simulate import run
from glowc.kernels.mve.depthwise import nine_taps
from glowc.kernels.mve.window_tile import CORTEX_M55, ENDS, LINE, MOST, NINE_BYTES, lines, nine, nine_lines, row
from glowc.machine.cycles.mca import MCA, MODELS, block_cycles
from tests.conftest import require_tool

CASES, CHANNELS, TURNS = 8, 16, 50


def extremes(rng: np.random.Generator, taps: int, low: int) -> np.ndarray:
    """Return codes of all cases, of which the first are the least and the largest."""
    codes = rng.integers(low, 128, (CASES, taps, CHANNELS))
    codes[:2] = low
    codes[1] = 127
    return codes.astype(np.int8)


@pytest.mark.parametrize("taps", [1, 2, 3, 5, 8, MOST])
@pytest.mark.parametrize("is_ordered", [False, True], ids=["as made", "in its order"])
def test_sums_are_those_of_products(taps: int, *, is_ordered: bool) -> None:
    rng = np.random.default_rng(taps)
    x, w = extremes(rng, taps, -128), extremes(rng, taps, -127)
    listing = ordered(row(taps, 16), orders_of(CORTEX_M55)) if is_ordered else row(taps, 16)
    begin = rng.integers(-(2**20), 2**20, (CASES, 4, 4)).astype(np.int32)
    state = {Register(VECTOR, k, virtual=False): begin[:, k].view(np.uint32) for k in range(4)}
    state |= {Register(CORE, number, virtual=False): np.zeros(CASES, np.uint32) for number in (7, 9)}
    state[Register(CORE, 12, virtual=False)] = np.full(CASES, 1 << 15, np.uint32)
    memories = {name: Memory(codes.reshape(CASES, -1).view(np.uint32)) for name, codes in (("r7", x), ("r9", w))}
    after = run(allocate(listing, {}), state, memories)
    products = (x.astype(np.int64) * w).sum(1)
    for k, first in enumerate((0, 2, 1, 3)):
        got = after[Register(VECTOR, k, virtual=False)].view(np.int32)
        assert np.array_equal(got, begin[:, k] + products[:, first::4]), k
    assert (after[Register(CORE, 7, virtual=False)] == 16 * taps).all()


def codes_of(sums: np.ndarray, ends: np.ndarray, end: str, zp: int) -> np.ndarray:
    """Return the codes of sums[cases, channels], which begin as those of the end do."""
    if end == "line":
        return np.clip((2 * sums * ends >> 32) >> LINE.fraction, -128, 127)
    return np.clip(np.rint(sums.astype(np.float32) * ends.view(np.float32)) + zp, -128, 127).astype(np.int64)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize(("clamped", "some"), [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("is_ordered", [False, True], ids=["as made", "in its order"])
def test_codes_of_nine_taps_are_those_of_sums(end: str, *, clamped: bool, some: bool, is_ordered: bool) -> None:
    rng, blocks, zp = np.random.default_rng(9), 2, -7
    channels = blocks * CHANNELS
    x = np.concatenate([extremes(rng, 9, -128)[:, :, None] for _ in range(blocks)], axis=2)
    w = rng.integers(-127, 128, (9, channels)).astype(np.int8)
    begins = rng.integers(-3000, 3000, channels).astype(np.int32)
    if end == "line":
        ends, number = rng.integers(1 << 20, 1 << 24, channels).astype(np.int32), 1 << LINE.shift
    else:
        ends, number = rng.uniform(1e-3, 1e-2, channels).astype(np.float32).view(np.int32), zp
    window, stored = nine(end, clamped=clamped, some=some)
    listing = (*(ordered(window, orders_of(CORTEX_M55)) if is_ordered else window), *stored)
    constants = np.tile(nine_taps(w, begins, ends, channels).view(np.uint32), (CASES, 1))
    lanes = 1 + np.arange(CASES) * 2
    limits = np.repeat(np.array([-20, 30], np.int8), 16).view(np.uint32)
    state = {Register(CORE, k, virtual=False): np.zeros(CASES, np.uint32) for k in (*range(11), 11, 12)}
    state[SP] = np.zeros(CASES, np.uint32)
    state[Register(CORE, 11, virtual=False)] = np.full(CASES, number & 0xFFFFFFFF, np.uint32)
    state[Register(CORE, 12, virtual=False)] = np.full(CASES, 1 << 15, np.uint32)
    state[P0] = ((1 << lanes) - 1 if some else np.full(CASES, 0xFFFF)).astype(np.uint32)
    memories = {f"r{k}": Memory(x[:, k].reshape(CASES, -1).view(np.uint32)) for k in range(9)}
    memories |= {"r9": Memory(constants), "sp": Memory(np.tile(limits, (CASES, 1)))}
    memories["out"] = Memory(np.zeros((CASES, channels // 4), np.uint32))
    placed = allocate(listing, {})
    for _ in range(1 if some else blocks):
        state = run(placed, state, memories)
    products = (x.reshape(CASES, 9, -1).astype(np.int64) * w).sum(1)
    sums = products * number + begins if end == "line" else products + begins
    want = codes_of(sums, ends.astype(np.int64) if end == "line" else ends, end, zp)
    want = np.clip(want, -20, 30) if clamped else want
    if some:
        want = np.where(np.arange(channels) < lanes[:, None], want, 0)
    got = np.ascontiguousarray(memories["out"].words).view(np.int8)
    assert np.array_equal(got, want)
    assert (state[Register(CORE, 9, virtual=False)] == NINE_BYTES * (1 if some else blocks)).all()


@pytest.mark.parametrize("end", ENDS)
def test_nine_taps_have_an_order_that_waits_little(end: str) -> None:
    require_tool(MCA)
    found = nine_lines(end, clamped=False, some=False)
    assert block_cycles({0: list(found)}, MODELS[CORTEX_M55])[0] < 1.1 * len(found)


@pytest.mark.parametrize("taps", range(2, MOST + 1))
def test_each_row_has_an_order_that_waits_little(taps: int) -> None:
    require_tool(MCA)
    insns = row(taps, 16)
    assert insns[0].group in orders_of(CORTEX_M55).runs
    took = block_cycles({0: list(lines(taps, 16))}, MODELS[CORTEX_M55])[0]
    assert took < 1.25 * len(insns)
    core = CORES[CORTEX_M55]()
    for insn in ordered(insns, orders_of(CORTEX_M55)) * TURNS:
        core.issue(cast("Insn", insn))
    assert core.time / TURNS == pytest.approx(took, rel=0.02)
