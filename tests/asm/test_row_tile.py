"""A row times blocks of outputs against the formula in numpy, before and after instructions are ordered and placed."""

from __future__ import annotations

import numpy as np
import pytest

from glowc.asm.allocate import allocate
from glowc.asm.insn import CORE, SP, Insn, Loop, Register
from glowc.asm.isa import Memory
from glowc.asm.order import ordered, orders_of
from glowc.asm.simulate import run
from glowc.asm.write import short
from glowc.graph.numerics import requantize
from glowc.kernels.dsp.common_factor import EXACT, LONG, SHORT
from glowc.kernels.dsp.ends import Factors
from glowc.kernels.dsp.pixel_tile import CORTEX_M7
from glowc.kernels.dsp.row_tile import RowTile, steps_of, tile
from tests.asm.test_pixel_tile import assert_ordered
from tests.asm.test_quad_tile import loops

CASES, BLOCKS, ZERO, MORE = 24, 3, 5, 77
ENDS = (("scale", "n8"), ("multiplier", "r8"), ("multiplier", "n8"), ("short", "n8"), ("exact", "n8"))
TILES = [RowTile("dual", by, end, outputs, rest) for by, end in ENDS for outputs in (4, 8) for rest in (0, 2)]
TILES += [RowTile(form, by, rest=rest) for form in ("bytes", "wide") for by, _ in ENDS[:2] for rest in (0, 1)]
TILES += [RowTile("dual", by, end, steps=steps) for by, end in ENDS for steps in (4, 8)]
FOUR = (0, 2, 1, 3)  # channels as their sums lie


def words_of(row: RowTile, w: np.ndarray) -> np.ndarray:
    """Return the words [case, block, words] of weights [case, block, output, group, input]."""
    halves = w.reshape(*w.shape[:3], -1, 2, 2).swapaxes(-1, -2)  # inputs 0 and 2, then 1 and 3
    if row.form == "wide":
        return np.ascontiguousarray(halves.transpose(0, 1, 3, 4, 2, 5).astype(np.int16)).view(np.int32)
    even, odd = halves[:, :, 0::2], halves[:, :, 1::2]
    both = 256 * even + (odd if row.form == "dual" else odd & 0xFF)  # [case, block, pair, group, half, two]
    order = (0, 1, 3, 4, 2, 5) if row.outputs == 4 else (0, 1, 3, 2, 4, 5)
    return np.ascontiguousarray(both.transpose(order).astype(np.int16)).view(np.int32)


def first_of(row: RowTile, w: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Return what sums begin with, as blocks of four have them."""
    first = bias.copy()
    if row.form == "dual":
        first[..., 0::2] = 256 * bias[..., 0::2] + bias[..., 1::2] + MORE * (row.by in ("short", "exact"))
        first[..., 1::2] -= (w[..., 0::2] * w[..., 1::2]).sum((3, 4))[..., 1::2]
    fours = first.reshape(CASES, BLOCKS, -1, 4)[..., FOUR]
    return np.asarray(fours.reshape(CASES, BLOCKS, -1))


def ends_of(
    row: RowTile, rng: np.random.Generator, sums: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Return the codes of sums, the words that blocks end with, and those that the stream begins with."""
    none = np.zeros((CASES, 0), np.int32)
    if row.by == "scale":
        scales = np.exp(rng.uniform(-9, -6, sums.shape)).astype(np.float32)
        return requantize(sums, scales, ZERO, -128, 127), scales.view(np.int32), none
    if row.by == "multiplier":
        mul, shift = rng.integers(1 << 30, 1 << 31, sums.shape), rng.integers(-11, -6, sums.shape)
        high = ((sums * mul >> 30) + 1) >> 1
        high = high - (high < 0) * (row.end == "n8")
        factors = Factors(mul, shift)
        places = (factors.places.reshape(CASES, BLOCKS, -1, 4) << (0, 8, 16, 24)).sum(3, keepdims=True)
        words = np.concatenate((places, factors.muls.reshape(CASES, BLOCKS, -1, 4)), axis=3).reshape(CASES, BLOCKS, -1)
        return np.clip(((high >> (-shift - 1)) + 1 + 2 * ZERO) >> 1, -128, 127), words, none
    exact = np.arange(CASES) % 2 == 1 if row.by == "exact" and not row.steps else np.full(CASES, row.by == "exact")
    places = np.where(exact, SHORT, np.where(np.arange(CASES) % 2 == 1, LONG, SHORT) if row.by == "short" else SHORT)
    mul, end = rng.integers(1 << 20, 1 << 22, CASES) << (places - SHORT) + 7 * exact, ZERO << places
    lead = np.stack((mul, end, np.full(CASES, MORE), places + EXACT * exact), axis=1)
    mul, end, places, exact = (a[:, None, None] for a in (mul, end, places, exact))
    scaled = np.where(exact, (2 * sums * mul + (1 << 31) >> 32) - (sums < 0), (256 * sums + MORE) * mul >> 32)
    return np.clip(scaled + end >> places, -128, 127), np.zeros((CASES, BLOCKS, 0), np.int32), lead


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("rounds", [1, 2])
@pytest.mark.parametrize("row", TILES, ids=lambda row: str(row.name))
def test_codes(row: RowTile, rounds: int, *, single: bool) -> None:
    """Also where the loop is entered in its middle."""
    rng = np.random.default_rng(rounds)
    groups = row.round * rounds - (0 if row.steps else rounds)
    x = rng.integers(-128, 128, (CASES, groups, 4))
    x[0] = -128
    rest = rng.integers(-2000, 2000, (CASES, row.rest, 4))
    limit = 255 if row.form == "wide" else 127
    w = rng.integers(-limit, limit + 1, (CASES, BLOCKS, row.outputs, groups + row.rest, 4))
    bias = rng.integers(-(2**14), 2**14, (CASES, BLOCKS, row.outputs))
    sums = np.einsum("ngi,nbogi->nbo", np.concatenate((x, rest), axis=1), w) + bias
    want, tails, lead = ends_of(row, rng, sums)
    blocks = [first_of(row, w, bias), words_of(row, w).reshape(CASES, BLOCKS, -1), tails]
    stream = np.concatenate((lead, np.concatenate(blocks, axis=2).reshape(CASES, -1)), axis=1)
    call = np.zeros((CASES, 12), np.int64)
    call[:, 4:9] = BLOCKS, groups, 1 + 2 * ZERO if row.by == "multiplier" else ZERO, 0, rounds if not row.steps else 0
    halves = np.ascontiguousarray(rest[..., FOUR].astype(np.int16)).reshape(CASES, -1)
    memories = {
        "call": call, "acts": x.astype(np.int8).reshape(CASES, -1).view(np.uint32), "stream": stream,
        "rest": halves.view(np.uint32) if row.rest else np.zeros((CASES, 1)),
        "out0": np.zeros((CASES, BLOCKS * row.outputs // 4)),
    }  # fmt: skip
    listing, argument = tile(row, single=single)
    placed = short(allocate(ordered(listing, orders_of(CORTEX_M7)) if row.steps else listing, {argument: 0}))
    for code, name in ((listing, argument), (placed, Register(CORE, 0, virtual=False))):
        found = {name: Memory((array.astype(np.int64) % 2**32).astype(np.uint32)) for name, array in memories.items()}
        zero = np.zeros(CASES, np.uint32)
        with np.errstate(over="ignore"):
            run(code, {name: zero, SP: zero}, found)
        codes = found["out0"].words.view(np.int8).reshape(want.shape)
        assert np.array_equal(codes, want)
    assert len(np.unique(want)) > 40


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("row", [row for row in TILES if not row.steps], ids=lambda row: str(row.name))
def test_steps_have_long_instructions(row: RowTile, *, single: bool) -> None:
    listing, argument = tile(row, single=single)
    (loop,) = (item for item in loops(short(allocate(listing, {argument: 0}))) if item.entry is not None)
    steps = loop.body[loop.before : loop.begins.stop]
    long = {"ldr_moving", "ldr_wide", "ldrd_moving", "ldm", "smlad", "sxtb16", "sxtab16"}
    assert {insn.op for insn in steps if isinstance(insn, Insn)} <= long


@pytest.mark.parametrize(("by", "end"), ENDS)
def test_step_and_ending_have_an_order(by: str, end: str) -> None:
    assert_ordered(tuple(item for item in tile(RowTile("dual", by, end, steps=8))[0] if not is_short(item)))


def is_short(item: object) -> bool:
    """True for the loop over inputs alone."""
    return isinstance(item, Loop) and not any(isinstance(inner, Loop) for inner in item.body)


def test_rounds_are_of_eight_steps_wherever_layers_have_them() -> None:
    assert {inputs: steps_of(inputs) for inputs in (32, 40, 64, 72, 88, 128, 640)} == {
        32: 4, 40: 5, 64: 8, 72: 3, 88: 1, 128: 8, 640: 8,
    }  # fmt: skip
