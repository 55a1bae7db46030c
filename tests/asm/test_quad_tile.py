"""Products of four pixels and pairs of channels against numpy, before and after registers have places."""

from __future__ import annotations

import numpy as np
import pytest

from glowc.asm.allocate import allocate
from glowc.asm.insn import CORE, FPU, SP, Insn, Loop, Register, instructions
from glowc.asm.isa import Memory
from glowc.asm.simulate import run
from glowc.asm.write import short
from glowc.graph.numerics import requantize
from glowc.kernels.dsp.ends import Factors, line
from glowc.kernels.dsp.quad_tile import STEPS, WAITING_WORDS, WIDE_STEPS, QuadTile, tile
from tests.asm.test_winograd_tile import limited

CASES, PAIRS, QUADS, ZERO, BEFORE = 24, 3, 3, 5, 96
"""Of several quads; bytes of the stream before its first pair."""
TILES = [QuadTile("dual", "scale", end, many) for end in ("u8", "v8", "n8", "s8") for many in (False, True)]
TILES += [QuadTile("dual", "multiplier", end, many) for end in ("r8", "v8", "n8", "s8") for many in (False, True)]
TILES += [QuadTile("dual", "line", end, many) for end in ("n8", "s8") for many in (False, True)]
TILES += [QuadTile(form, by) for form in ("bytes", "wide") for by in ("scale", "multiplier")]
TILES += [QuadTile(form, "sums") for form in ("dual", "bytes", "wide")]


def names(quad: QuadTile) -> str:
    return quad.name


def weights_of(rng: np.random.Generator, form: str, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return weights [case, pair, channel, step, two], and the words of the steps [case, pair, words]."""
    w = rng.integers(-255 if form == "wide" else -127, 256 if form == "wide" else 128, (CASES, PAIRS, 2, steps, 2))
    if form == "wide":
        return w, np.ascontiguousarray(w.transpose(0, 1, 3, 2, 4).astype(np.int16)).reshape(CASES, PAIRS, -1)
    even, odd = w[:, :, 0], w[:, :, 1]
    halves = 256 * even + (odd if form == "dual" else odd & 0xFF)
    return w, np.ascontiguousarray(halves.astype(np.int16)).reshape(CASES, PAIRS, -1)


def ends_of(
    rng: np.random.Generator, quad: QuadTile, bias: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Return what codes are made by [case, pair, 2 or 4], and the words of pairs before those of the steps."""
    first = bias.copy()
    if quad.form == "dual":
        first[..., 0] = 256 * bias[..., 0] + bias[..., 1]
    scales = np.exp(rng.uniform(-9, -6, bias.shape)).astype(np.float32)
    if quad.by in ("scale", "sums"):
        return scales, np.concatenate((scales.view(np.int32), first), axis=2)
    if quad.by == "multiplier":
        mul, shift = rng.integers(1 << 30, 1 << 31, bias.shape), rng.integers(-9, -3, bias.shape)
        factors = Factors(mul, shift)
        places = (factors.places << (0, 8)).sum(2, keepdims=True)
        return np.stack((mul, shift), axis=3), np.concatenate((places, factors.muls, first), axis=2)
    mul = rng.integers(1 << 26, 1 << 28, bias.shape)
    mul[:, 1] = scales[:, 1].view(np.int32)  # a pair without lines
    begin = bias << line().shift
    begin[:, 1, 1] = bias[:, 1, 1]
    return mul, np.stack((begin[..., 1], mul[..., 0], mul[..., 1], begin[..., 0]), axis=2)


def codes_of(quad: QuadTile, sums: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return the codes of sums [case, pair, channel, pixels]."""
    zero = -128 if quad.by == "scale" and quad.end in ("u8", "v8") else ZERO
    if quad.by == "multiplier":
        mul, shift = ends[..., 0, None], ends[..., 1, None]
        high = ((sums * mul >> 30) + 1) >> 1
        high = high - (high < 0) if quad.end in ("n8", "s8") else high
        return np.clip(((high >> (-shift - 1)) + 1 + 2 * zero) >> 1, -128, 127)
    by_scale = requantize(
        sums.transpose(0, 3, 1, 2), ends.astype(np.int32).view(np.float32)[:, None] if quad.by == "line" else
        ends[:, None], zero, -128, 127,
    ).transpose(0, 2, 3, 1)  # fmt: skip
    if quad.by == "scale":
        return np.asarray(by_scale)
    start = (zero << line().fraction) + (1 << line().fraction) // 2
    by_line = np.clip(((sums << line().shift) * ends[..., None] >> 32) + start >> line().fraction, -128, 127)
    return np.where(np.arange(PAIRS)[:, None, None] == 1, by_scale, by_line)


@pytest.mark.parametrize("waiting", [False, True])
@pytest.mark.parametrize("steps", [2, 14, STEPS + 2])
@pytest.mark.parametrize("quad", TILES, ids=names)
def test_codes(quad: QuadTile, steps: int, *, waiting: bool) -> None:
    rng = np.random.default_rng(steps)
    quads = QUADS if quad.many else 1
    x = rng.integers(-255, 256, (CASES, quads, steps, 4, 2)).astype(np.int16)
    x[:2] = 255
    w, words = weights_of(rng, quad.form, steps)
    w_sums = np.einsum("nqsxt,npcst->npcqx", x.astype(np.int64), w).reshape(CASES, PAIRS, 2, 4 * quads)
    bias = rng.integers(-(2**14), 2**14, (CASES, PAIRS, 2))
    ends, head = ends_of(rng, quad, bias)
    sums = w_sums + bias[..., None]
    stream = np.concatenate((head.astype(np.int32), words.view(np.int32)), axis=2).reshape(CASES, -1)
    stream = np.pad(stream, ((0, 0), (BEFORE // 4, 0)))
    wide = quad.form == "wide"
    chunk = (WAITING_WORDS // 2 if wide else WAITING_WORDS) if waiting else WIDE_STEPS if wide else STEPS
    skip, size = chunk - 1 - (steps - 2) % chunk, 16 * steps
    zero = {"multiplier": 1 + 2 * ZERO, "line": (ZERO << 10) + (1 << 9)}.get(quad.by, ZERO)
    limits = [zero, 0xE0E0E0E0, 0x40404040]
    pitch = 2 * PAIRS
    fields = [0, BEFORE, 0, 0, 0, 0, PAIRS, size, skip, *limits]
    if quad.many:
        fields = [0, BEFORE, 0, pitch, 4 * pitch, QUADS, PAIRS, size, skip, *limits]
    call = np.tile(np.asarray(fields, np.int64).astype(np.uint32), (CASES, 1))
    memories = {"call": call, "acts": x.reshape(CASES, -1).view(np.uint32), "stream": stream.view(np.uint32)}
    memories |= {f"out{pixel}": np.zeros((CASES, 64), np.uint32) for pixel in range(4)}
    found = ran(quad, memories, waiting=waiting)
    if quad.by == "sums":
        got = found["out1"].words[:, : 8 * PAIRS].view(np.int32).reshape(CASES, PAIRS, 2, 4)
        assert np.array_equal(got, sums)
        return
    want = codes_of(quad, sums, ends)
    assert len(np.unique(want)) > 40
    want = limited(want, quad.end) if quad.by != "scale" or quad.end != "v8" else np.minimum(want, 64)
    if quad.many:
        out = found["out0"].words.view(np.int8)[:, : QUADS * 4 * pitch].reshape(CASES, 4 * QUADS, PAIRS, 2)
        assert np.array_equal(out.transpose(0, 2, 3, 1), want)
    else:
        outs = [found[f"out{pixel}"].words.view(np.int8)[:, :pitch].reshape(CASES, PAIRS, 2) for pixel in range(4)]
        assert np.array_equal(np.stack(outs, axis=3), want)


def ran(quad: QuadTile, memories: dict[str, np.ndarray], *, waiting: bool) -> dict[str, Memory]:
    """Return the memories after a call, which is the same after registers have places."""
    listing, argument = tile(quad, waiting=waiting)
    placed = short(allocate(listing, {argument: 0}, fpu=32))
    results = []
    for code, name in ((listing, argument), (placed, Register(CORE, 0, virtual=False))):
        found = {name: Memory(array.copy()) for name, array in memories.items()}
        zero = np.zeros(CASES, np.uint32)
        with np.errstate(over="ignore"):
            run(code, {name: zero, SP: zero}, found)
        results.append(found)
    for name in memories:
        assert np.array_equal(results[0][name].words, results[1][name].words), name
    return results[0]


@pytest.mark.parametrize("waiting", [False, True])
@pytest.mark.parametrize("quad", TILES, ids=names)
def test_pairs_of_the_fpu_are_adjacent_and_steps_have_long_instructions(quad: QuadTile, *, waiting: bool) -> None:
    listing, argument = tile(quad, waiting=waiting)
    placed = short(allocate(listing, {argument: 0}, fpu=32))
    for insn in instructions(placed):
        numbers = [r.number for r in (*insn.writes, *insn.reads) if r.bank == FPU]
        if insn.op == "vmov_pair":
            assert numbers == [numbers[0], numbers[0] + 1]
    (loop,) = (item for item in loops(placed) if item.entry is not None)
    steps = loop.body[loop.before : loop.begins.stop]
    long = ("ldr_moving", "ldrd_moving", "ldm", "smlad", "sxtb16", "vmov")
    assert {insn.op for insn in steps if isinstance(insn, Insn)} <= set(long)


def loops(listing: tuple[object, ...]) -> list[Loop]:
    """Return all loops."""
    own = [item for item in listing if isinstance(item, Loop)]
    return [*own, *(loop for item in own for loop in loops(item.body))]
