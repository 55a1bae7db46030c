"""Codes on cores without SIMD of layers that end as TensorFlow Lite does: the product with a scale, but near a tie."""

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from glowc.graph.fixed_point import scaled
from glowc.kernels.thumb.fold import fold_fixed
from glowc.program.ir import Instr

RNG = np.random.default_rng(3)
POINT, REACH = 7, 40000


def wrong(mul: int, shift: int, share: float = 1.0) -> tuple[int, float]:
    """Return how many codes are wrong, and the share of sums near a tie, with so much of the distance from it."""
    instr = cast(
        "Instr", SimpleNamespace(int_={"w_zp": 0, "in_zp": 0, "out_zp": POINT, "out_min": -128, "out_max": 127}.get)
    )
    weights = np.full((1, 2), REACH // 256)
    constants = {"bias": np.zeros(1), "mul": np.array([mul]), "shift": np.array([shift])}
    folded = fold_fixed(weights, constants, instr)
    factor, near = int(folded["mul"][:1].view(np.float32)[0] * 2.0**32), int(int(folded["bias"][1]) * share)
    if factor == 0:
        return 0, 1.0  # all by the definition
    sums = np.arange(-REACH, REACH)
    product = sums * factor
    fraction = product % (1 << 32)
    codes = np.clip((product >> 32) + (fraction >> 31) + POINT, -128, 127)
    far = np.abs(fraction - (1 << 31)) >= near
    exact = np.clip(scaled(sums, mul, shift) + POINT, -128, 127)
    return int(((codes != exact) & far).sum()), 1 - float(far.mean())


@pytest.mark.parametrize("shift", range(-12, -1))
def test_codes_far_from_a_tie_are_those_of_the_definition(shift: int) -> None:
    for mul in (1 << 30, (1 << 31) - 1, *RNG.integers(1 << 30, 1 << 31, 6).tolist()):
        assert wrong(mul, shift)[0] == 0


def test_less_distance_from_a_tie_is_not_enough() -> None:
    assert any(wrong(mul, -8, 0.9)[0] for mul in RNG.integers(1 << 30, 1 << 31, 8).tolist())


def test_few_codes_are_near_a_tie() -> None:
    assert wrong(1_400_000_000, -9)[1] < 0.01


def test_a_channel_with_a_small_shift_does_not_slow_others_down() -> None:
    instr = cast(
        "Instr", SimpleNamespace(int_={"w_zp": 0, "in_zp": 0, "out_zp": 0, "out_min": -128, "out_max": 127}.get)
    )
    constants = {"bias": np.zeros(9), "mul": np.full(9, 1 << 30), "shift": np.array([-2, *[-9] * 8])}
    folded = fold_fixed(np.ones((9, 4)), constants, instr)
    assert folded["mul"][0] == 0
    assert (folded["mul"][1:9] != 0).all()
    assert folded["bias"][-1] < 1 << 23
