"""Fully connected layers of eight outputs at a time on SMLAD: their blocks, and which layers take them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from glowc.board import load_board
from glowc.kernels.base import KernelVariant, plan_in, prepare, prepared_instr
from glowc.kernels.choice import candidates
from glowc.kernels.dsp.eight import by_eight
from glowc.kernels.dsp.fully_connected import FcPlan
from glowc.kernels.dsp.stream import products_by_twos
from glowc.kernels.registry import variants_of
from glowc.ops.registry import all_ops  # noqa: F401
from tests.kernels.case import Case
from tests.ops.test_dsp_forms import spoiled
from tests.ops.test_fixed_layers import fixed_cases
from tests.ops.test_fully_connected import layer

KERNELS = "dsp"

ENDS = ((3, None), (-128, None), (-128, (-128, 60)), (-4, (-20, 90)))
SIZES = ((4, 8), (8, 16), (12, 24), (16, 8), (20, 32), (36, 16), (128, 24))  # groups that enter the loop everywhere
TAILS = ((5, 8), (10, 16), (131, 8), (12, 12), (24, 28), (33, 44), (64, 20))


def plain_cases() -> Iterator[Case]:
    """Weights of one form, of others, and of both; sums at 24 bits."""
    rng = np.random.default_rng(53)
    for (k, n), (y_zp, clamp) in zip((*SIZES, *TAILS), itertools.cycle(ENDS)):
        for x_zp in (-128, 127, 5):
            yield layer(rng, k, n, x_zp=x_zp, y_zp=y_zp, clamp=clamp)
        yield layer(rng, k, n, x_zp=-128, extreme=True)
    for kinds in (("inside",), ("large", "none"), ("negated",), ("signed",), ("none", "none", "none", "clash")):
        yield spoiled(layer(rng, 272, 16, x_zp=-128), kinds)
    yield layer(rng, 20, 8, w_zp=11)
    yield from (layer(rng, k, 16, w_zp=w_zp) for k, w_zp in ((16, 20), (43, -90), (517, 127)))
    yield layer(rng, 40, 20, w_zp=-90)


def kernel_cases() -> Iterator[Case]:
    """The same with a float32 scale and with TensorFlow Lite's multiplier and shift."""
    for index, case in enumerate(plain_cases()):
        yield case
        yield from fixed_cases(case, index)


def eight(kernel: str = "fc_s8") -> KernelVariant:
    return next(v for v in variants_of(kernel) if v.name == "dsp_eight")


@pytest.mark.parametrize(("board", "taken"), [("mps2-an386", True), ("mps2-an500", False), ("mps2-an505", True)])
def test_eight_outputs_are_not_for_cpus_that_issue_two_at_a_time(board: str, taken: bool) -> None:
    """They have rounds of steps that divide those of a layer; with a multiplier and a shift others are offered too."""
    case = layer(np.random.default_rng(2), 128, 8)
    fixed = next(fixed_cases(case, 1))
    features = load_board(board).cpu.features
    assert (eight() in candidates(case.instr, features, case.arrays.keys())) == taken
    assert eight("fc_s8q31") in candidates(fixed.instr, features, fixed.arrays.keys())


@pytest.mark.parametrize(
    ("inputs", "outputs", "taken"),
    [(4, 8, True), (3, 8, False), (6, 8, True), (8, 12, True), (8, 4, False), (8, 14, False), (640, 128, True)],
)
def test_eight_outputs_are_for_a_block_at_least(inputs: int, outputs: int, taken: bool) -> None:
    assert eight().accepts(layer(np.random.default_rng(2), inputs, outputs).instr) == taken


@pytest.mark.parametrize(("kinds", "taken"), [(("inside",), True), (("large", "none"), False), (("clash",), False)])
def test_blocks_of_eight_are_dual(kinds: tuple[str, ...], taken: bool) -> None:
    """Weights of 4 bits have records either way, of blocks of the size that the layer has."""
    case = spoiled(layer(np.random.default_rng(2), 272, 16, x_zp=-128), kinds)
    prepared = prepare(eight(), case.arrays, case.instr)
    assert (plan_in(prepared, FcPlan).outputs == 8) == taken
    assert eight().records is not None
    found = eight().records(prepared_instr(case.instr, prepared))
    assert (None if found is None else (found.count, found.body)) == ((2, 8 * 68) if taken else None)


def test_words_of_two_blocks_lie_by_pairs_of_outputs() -> None:
    blocks = np.arange(2 * 16).reshape(2, 16)  # biases 0-3, two groups 4-11, scales 12-15
    expected = [*range(4), *range(16, 20)]
    for group in (4, 8):
        for first in (group, group + 16):
            expected += [first, first + 2, first + 1, first + 3]
    assert by_eight(blocks.reshape(-1), 1, 2).tolist() == [*expected, *range(12, 16), *range(28, 32)]


@pytest.mark.parametrize("low", [-255, 0])
def test_crossed_sums_are_those_of_the_products(low: int) -> None:
    """Inputs less their zero point and any int8 weights stay in the halfwords that SXTAB16 adds."""
    rng = np.random.default_rng(6)
    x, w = rng.choice([low, low + 255], (1, 64)), rng.choice([-128, 127], (5, 64))
    first, second = x[:, 1::2] + w[:, 0::2], x[:, 0::2] + w[:, 1::2]
    assert max(abs(first).max(), abs(second).max()) < 1 << 15
    crossed = (first * second).sum(1) - products_by_twos(w) - products_by_twos(x)
    assert np.array_equal(crossed, (x * w).sum(1))
