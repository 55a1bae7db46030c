"""Winograd's functions against the formula in numpy, before and after they are ordered and registers have places."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from glowc.asm.allocate import allocate
from glowc.asm.insn import CORE, SP, Register
from glowc.asm.isa import Memory
from glowc.asm.order import ordered, orders_of
from glowc.asm.simulate import run
from glowc.asm.write import short
from glowc.graph.numerics import requantize
from glowc.kernels.dsp.ends import Factors
from glowc.kernels.dsp.pixel_tile import CORTEX_M7
from glowc.kernels.dsp.winograd_tile import LINE, LOW, Call, blocks, input_rows, steps_of, turned

CASES, IN_C, CHANNELS = 40, 8, 3
COLUMN = (2, 0, 1, 3)  # where column j of the products stands
G = np.asarray([[2, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 2]])
B = np.asarray([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]])
A = np.asarray([[1, 1, 1, 0], [0, 1, -1, -1]])


def words(array: np.ndarray) -> np.ndarray:
    """Return what the memory of each case holds, as words."""
    return np.ascontiguousarray(array.reshape(CASES, -1)).view(np.uint32)


def ran(
    call: Call, arguments: Mapping[int, int], memories: Mapping[str, np.ndarray], core: str = CORTEX_M7
) -> dict[str, Memory]:  # fmt: skip
    """Return the memories after a call, which is the same in the order for a core, after registers have places."""
    listing, registers = call
    results = []
    placed = [Register(CORE, number, virtual=False) for number in range(len(registers))]
    fixed = {r: n for n, r in enumerate(registers)}
    last = allocate(ordered(listing, orders_of(core)), fixed) if core else short(allocate(listing, fixed, LOW))
    for code, names in ((listing, registers), (allocate(listing, fixed), placed), (last, placed)):
        state = {SP: np.zeros(CASES, np.uint32)}
        state |= {r: np.full(CASES, arguments.get(n, 0), np.uint32) for n, r in enumerate(names)}
        found = {name: Memory(array.copy()) for name, array in memories.items()}
        run(code, state, found)
        results.append(found)
    for name in memories:
        assert all(np.array_equal(results[0][name].words, other[name].words) for other in results[1:]), name
    return results[0]


def halfwords(memory: Memory) -> np.ndarray:
    """Return a memory as int16, a row a case."""
    return memory.words.view(np.int16)


def test_products_of_weights() -> None:
    g = np.random.default_rng(1).integers(-128, 128, (CASES, 3, 3, IN_C))
    g[:2], g[2:4] = -128, 127
    stored = g.reshape(CASES, 9, IN_C // 4, 4).transpose(0, 2, 1, 3).astype(np.int8)
    memories = {"weights": words(stored), "products": np.zeros((CASES, IN_C // 4 * 128), np.uint32)}
    found = halfwords(ran(turned(), {2: 9 * IN_C}, memories)["products"])
    u = np.einsum("ia,nabc,jb->nijc", G, g, G)
    place = found.reshape(CASES, IN_C // 4, 4, 4, 2, 4, 2)  # group, column, row, half, output channel, one of two
    for c in range(IN_C):
        for j in range(4):
            assert np.array_equal(place[:, c // 4, COLUMN[j], :, c % 2, 0, c % 4 // 2], u[:, :, j, c])


@pytest.mark.parametrize("sign", [1, -1])
def test_products_of_inputs(sign: int) -> None:
    rows = np.random.default_rng(2).integers(-128, 128, (2, CASES, 6, IN_C)).astype(np.int8)
    rows[0, :2], rows[1, :2] = 127, -128
    rows[0, 2:4], rows[1, 2:4] = -128, -128
    memories = {"one": words(rows[0]), "other": words(rows[1])}
    memories["inputs"] = np.zeros((CASES, IN_C // 4 * 64), np.uint32)
    found = halfwords(ran(input_rows(sums=sign > 0), {3: IN_C}, memories)["inputs"])
    d = rows[0].astype(int) + sign * rows[1].astype(int)
    place = found.reshape(CASES, IN_C // 4, 4, 4, 2, 2, 2)  # group, column, row (the first is written), half, tile
    for tile in (0, 1):
        v = np.einsum("jx,nxc->njc", B, d[:, 2 * tile : 2 * tile + 4])
        for c in range(IN_C):
            for j in range(4):
                assert np.array_equal(place[:, c // 4, COLUMN[j], 0, c % 2, tile, c % 4 // 2], v[:, j, c])


def called(inputs: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return the memories of a call of `blocks` but for the endings, and the sums of each case."""
    rng = np.random.default_rng(inputs)
    x = rng.integers(-512, 513, (CASES, inputs // 4, 16, 2, 2, 2)).astype(np.int16)  # group, product, half, tile, two
    w = rng.integers(-1152, 1153, (CASES, inputs // 4, 16, 2, 4, 2)).astype(np.int16)
    x[:2], w[:2] = 512, -1152
    m = np.einsum("ngphti,ngphoi->npot", x.astype(np.int64), w.astype(np.int64))  # product, channel, tile
    m = m.reshape(CASES, 4, 4, 4, 2)[:, COLUMN][:, :, :, :CHANNELS]  # columns in order, rows
    four = (np.einsum("yi,njiot,xj->notyx", A, m, A) + (1 << 31)) % (1 << 32) - (1 << 31)
    fields = [0, 0, 0, 0, 0, 0, 4, 8 * CHANNELS, 8 * CHANNELS, 5, 0xE0E0E0E0, 0x40404040, 0]
    call = np.tile(np.asarray([*fields, 64 * inputs, 0, 0], np.int64).astype(np.uint32), (CASES, 1))
    memories = {"call": call, "inputs": words(x), "weights": words(w)}
    memories |= {name: np.zeros((CASES, 4), np.uint32) for name in ("upper", "lower")}
    return memories | {"sums": np.zeros((CASES, 128), np.uint32)}, four


def limited(codes: np.ndarray, end: str) -> np.ndarray:
    """Return codes in the limits that an ending has."""
    low, high = (-32, 64) if end in ("s8", "v8") else (-128, 127)
    return np.clip(codes, low, high)


@pytest.mark.parametrize(
    ("inputs", "single"), [(4, True), (16, True), (4, False), (16, False), (20, False), (64, False)]
)
@pytest.mark.parametrize(("end", "fixed"), [(e, False) for e in ("n8", "s8")] + [(e, True) for e in ("n8", "s8")])
def test_blocks(inputs: int, end: str, *, single: bool, fixed: bool) -> None:
    memories, four = called(inputs)
    rng = np.random.default_rng(9)
    bias = rng.integers(-(2**20), 2**20, (CASES, CHANNELS)).astype(np.int32)
    sums = (bias[:, :, None, None, None] + (four >> 2) + (1 << 31)) % (1 << 32) - (1 << 31)
    zero = 5
    if fixed:
        mul, shift = rng.integers(1 << 30, 1 << 31, CHANNELS), rng.integers(-16, -9, CHANNELS)
        factors = Factors(mul, shift)
        last = np.tile(factors.muls.astype(np.int32), (CASES, 1))
        memories["shifts"] = words(np.tile(np.append(factors.places, 0).astype(np.int8), (CASES, 1)))
        memories["call"][:, 9] = 1 + 2 * zero
        high = ((sums * mul[:, None, None, None] >> 30) + 1) >> 1
        places = -shift[:, None, None, None]
        want = (high + (1 << (places - 1)) - (high < 0) >> places) + zero  # a half away from zero
    else:
        scale = np.exp(rng.uniform(-12, -8, CHANNELS)).astype(np.float32)
        last = np.tile(scale.view(np.int32), (CASES, 1))
        want = requantize(sums.transpose(0, 2, 3, 4, 1), scale, zero, -128, 127).transpose(0, 4, 1, 2, 3)
    memories["ends"] = words(np.stack((bias, last), axis=2))
    steps, core = steps_of(inputs), "" if single else CORTEX_M7
    found = ran(blocks(steps, end, single=single, fixed=fixed, lines=False), {}, memories, core)
    check_codes(found, want, end)


@pytest.mark.parametrize(
    ("inputs", "single"), [(4, True), (16, True), (4, False), (16, False), (20, False), (64, False)]
)
@pytest.mark.parametrize("end", ["n8", "s8"])
def test_blocks_by_lines(inputs: int, end: str, *, single: bool) -> None:
    memories, four = called(inputs)
    rng = np.random.default_rng(9)
    bias = rng.integers(-(2**20), 2**20, (CASES, CHANNELS)).astype(np.int32)
    four = four + 4 * bias[:, :, None, None, None]
    scale = np.exp(rng.uniform(-12, -8, (CASES, CHANNELS))).astype(np.float32)
    lined = rng.integers(2, size=scale.shape) == 1
    mul = np.where(lined, np.rint(scale * 2.0**36).astype(np.int64), scale.view(np.int32).astype(np.int64) - (1 << 31))
    zero, one = 5, 1 << LINE.fraction
    memories["call"][:, 9] = one * zero + one // 2
    memories["ends"] = words(np.stack((4 * bias, mul.astype(np.int32)), axis=2))
    line = (four * mul[:, :, None, None, None] >> 32) + one * zero + one // 2 >> LINE.fraction
    real = np.stack([requantize(four[n].transpose(1, 2, 3, 0) >> 2, scale[n], zero, -128, 127) for n in range(CASES)])
    want = np.where(lined[:, :, None, None, None], np.clip(line, -128, 127), real.transpose(0, 4, 1, 2, 3))
    found = ran(blocks(steps_of(inputs), end, single=single, fixed=False, lines=True), {}, memories, "")
    check_codes(found, want, end)


def check_codes(found: Mapping[str, Memory], want: np.ndarray, end: str) -> None:
    """Compare the codes of two rows of four pixels with those of each case, channel, tile, row and column."""
    for row, name in enumerate(("upper", "lower")):
        codes = found[name].words.view(np.int8).reshape(CASES, 4, 4)[:, :, :CHANNELS]  # pixel, channel
        expected = limited(np.asarray(want), end)[:, :, :, row].transpose(0, 2, 3, 1).reshape(CASES, 4, CHANNELS)
        assert len(np.unique(expected)) > 50
        assert np.array_equal(codes, expected)


def test_rounds_are_whole_groups_that_divide_the_inputs() -> None:
    found = {n: steps_of(n) for n in (4, 8, 16, 20, 24, 28, 32, 64)}
    assert found == {4: 2, 8: 4, 16: 8, 20: 2, 24: 6, 28: 2, 32: 8, 64: 8}
