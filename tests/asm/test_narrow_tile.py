"""Weights of few bits times inputs against numpy, before and after registers have places."""

from __future__ import annotations

import numpy as np
import pytest

from glowc.asm.allocate import allocate
from glowc.asm.insn import CORE, SP, Register
from glowc.asm.isa import Memory
from glowc.asm.simulate import run
from glowc.asm.write import short
from glowc.kernels.dsp.narrow_tile import tile

CASES, UNITS = 16, 3


@pytest.mark.parametrize(("bits", "paired"), [(4, False), (4, True), (2, True)])
def test_sums(bits: int, *, paired: bool) -> None:
    rng = np.random.default_rng(bits)
    x = rng.integers(-128, 128, (CASES, UNITS, 4, 2)).astype(np.int16)
    words = rng.integers(0, 2**32, (CASES, UNITS * (bits if paired else 4)), dtype=np.uint32)
    palette = rng.integers(-128, 128, (CASES, 1 << bits)).astype(np.int64)
    if paired:
        codes = (words[..., None] >> np.arange(0, 32, bits, dtype=np.uint32)) & np.uint32((1 << bits) - 1)
        weights = np.take_along_axis(palette, codes.reshape(CASES, -1).astype(np.int64), 1)
    else:
        shifts = np.arange(0, 16, 4, dtype=np.uint32)[:, None] + np.array([0, 16], np.uint32)
        weights = ((words[..., None, None] >> shifts) & np.uint32(15)).astype(np.int64)
    want = np.einsum("nukt,nuokt->no", x.astype(np.int64), weights.reshape(CASES, UNITS, 4, 4, 2))
    pairs = (palette[:, :, None] << 16) + (palette[:, None, :] & 0xFFFF)
    listing, arguments = tile(bits, paired=paired)
    for code, registers in (
        (listing, arguments),
        (
            short(allocate(listing, {r: n for n, r in enumerate(arguments)})),
            [Register(CORE, n, virtual=False) for n in range(4)],
        ),
    ):
        memories = {
            "acts": Memory(x.reshape(CASES, -1).view(np.uint32)), "stream": Memory(words),
            "pairs": Memory((pairs.reshape(CASES, -1) & 0xFFFFFFFF).astype(np.uint32)),
            "call": Memory(np.zeros((CASES, 32), np.uint32)), "sums": Memory(np.zeros((CASES, 4), np.uint32)),
        }  # fmt: skip
        given = zip(registers, (0, 0, UNITS, 0), strict=True)
        state = {r: np.full(CASES, value, np.uint32) for r, value in given} | {SP: np.zeros(CASES, np.uint32)}
        with np.errstate(over="ignore"):
            run(code, state, memories)
        assert np.array_equal(memories["sums"].words.view(np.int32), want)
