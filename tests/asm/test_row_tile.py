"""A row times blocks of four outputs, against the formula in numpy, before and after it is ordered."""

from __future__ import annotations

import numpy as np
import pytest

from glowc.kernels.dsp.row_tile import INPUTS, steps_of, tile
from tests.asm.test_pixel_tile import assert_ordered
from tests.asm.test_winograd_tile import CASES, ran, words

BLOCKS, ROUNDS = 3, 2


def word(sums: np.ndarray) -> np.ndarray:
    """Return sums as a register has them."""
    return np.asarray((sums + 2**31) % 2**32 - 2**31)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("steps", [4, 5, 8])
def test_codes_are_those_of_one_factor(steps: int, exact: bool) -> None:
    """Of random words: also those of weights that no layer has."""
    rng, inputs = np.random.default_rng(steps), INPUTS * steps * ROUNDS
    x = rng.integers(-128, 128, (CASES, inputs // 4, 4))
    stream = rng.integers(0, 2**32, (CASES, BLOCKS, 4 + inputs), dtype=np.uint32)
    mul, end, more, places = 0x123456, 5 << 12, 77, 12
    lead = np.broadcast_to(np.asarray([mul, end, more, places], np.uint32), (CASES, 4))
    products = (x[..., 0] * x[..., 1] + x[..., 2] * x[..., 3]).sum(1)
    halves = stream[:, :, 4:].view(np.int16).astype(np.int64).reshape(CASES, BLOCKS, inputs // 4, 2, 2, 2)
    odds = halves.astype(np.int8).astype(np.int64)
    acts = x[:, None, :, (0, 2, 1, 3)].reshape(CASES, 1, -1, 2, 1, 2)
    even = (halves * acts).sum((2, 3, 5)) + stream[..., :2]
    odd = ((acts[:, :, :, ::-1] + odds).prod(3)).sum((2, 4)) + stream[..., 2:4] - products[:, None, None]
    whole = (word(even - odd) >> 7, 2 * odd) if exact else (even - odd, 256 * odd + more)
    scaled = [(word(sums) * mul + (exact << 31) >> 32) - (exact & (word(sums) < 0)) for sums in whole]
    codes = np.clip(np.stack(scaled, axis=3) + end >> places, -128, 127).astype(np.int8)
    call = np.zeros((CASES, 12), np.uint32)
    call[:, 4], call[:, 5], call[:, 7] = BLOCKS, inputs // 4, products
    memories = {
        "call": call, "acts": words(x.astype(np.int8)), "out0": np.zeros((CASES, BLOCKS), np.uint32),
        "stream": words(np.concatenate((lead, stream.reshape(CASES, -1)), axis=1)),
    }  # fmt: skip
    listing, argument = tile(steps, exact=exact)
    found = ran((listing, (argument,)), {}, memories)["out0"]
    assert np.array_equal(found.words, words(codes))
    assert len(np.unique(codes)) > 100


@pytest.mark.parametrize("exact", [False, True])
def test_step_and_ending_have_an_order(exact: bool) -> None:
    assert_ordered(tile(8, exact=exact)[0])


def test_rounds_are_of_eight_steps_wherever_layers_have_them() -> None:
    assert {inputs: steps_of(inputs) for inputs in (32, 40, 64, 72, 88, 128, 640)} == {
        32: 4, 40: 5, 64: 8, 72: 3, 88: 1, 128: 8, 640: 8,
    }  # fmt: skip
