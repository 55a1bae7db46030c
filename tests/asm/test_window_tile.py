"""The products of a row of a depthwise window on Helium: sums in any order of the instructions, cycles of the order."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest

from glowc.asm.allocate import allocate
from glowc.asm.cores import CORES
from glowc.asm.insn import CORE, VECTOR, Insn, Register
from glowc.asm.isa import Memory
from glowc.asm.order import ordered, orders_of
from glowc.asm.simulate import run
from glowc.kernels.mve.window_tile import CORTEX_M55, MOST, lines, row
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
