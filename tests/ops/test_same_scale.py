"""Float32 scales in place of TensorFlow Lite's multiplier and shift: every sum of a layer gets the same code."""

from __future__ import annotations

import numpy as np
import pytest

from glowc.graph.fixed_point import multipliers
from glowc.kernels.shapes import Codes
from glowc.ops.integer import FixedEnding
from glowc.ops.same_scale import same_scale, sums_between

CODES = Codes(in_zp=-3, w_zp=0, out_zp=7, out_min=-128, out_max=127, scale_step=1)
BOUNDS = CODES.out_zp, CODES.out_min, CODES.out_max


def ending(*factors: float) -> FixedEnding:
    return FixedEnding(*multipliers(factors))


def between(least: int, greatest: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    return np.full(count, least), np.full(count, greatest)


def test_every_sum_has_the_same_code() -> None:
    factors = np.random.default_rng(5).uniform(0.5, 40, 300)
    fixed, (low, high) = ending(*factors), between(-4000, 4000, 300)
    found = same_scale(fixed, low, high, CODES)
    assert found is not None
    every = np.arange(-4000, 4001)[:, None]
    assert np.array_equal(found.codes(every, *BOUNDS), fixed.codes(every, *BOUNDS))


def test_halves_of_both_signs_have_no_scale() -> None:
    assert same_scale(ending(0.5), *between(-9, 9, 1), CODES) is None
    assert same_scale(ending(0.5), *between(0, 9, 1), CODES) is not None


def test_sums_that_leave_32_bits_when_shifted_have_no_scale() -> None:
    for least, found in ((-(1 << 29) + 1, True), (-(1 << 29), False)):
        assert (same_scale(ending(3.2371), *between(least, 9, 1), CODES) is not None) is found


def test_one_scale_serves_all_outputs_or_none() -> None:
    low, high = np.array([-500, -20]), np.array([500, 700])
    found = same_scale(ending(0.7123), low, high, CODES)
    assert found is not None
    assert found.scale.size == 1
    assert same_scale(ending(0.5), np.array([0, -20]), high, CODES) is None


@pytest.mark.parametrize("axis", [0, 2])
def test_sums_reach_what_inputs_of_one_sign_give(axis: int) -> None:
    weights = np.moveaxis(np.array([[[1, -2], [3, 0]], [[0, 0], [-1, -1]]], np.int8), 0, axis)
    low, high = sums_between(weights, np.array([10, 20]), CODES, axis)
    assert low.tolist() == [10 - 4 * 125 - 2 * 130, 20 - 2 * 130]
    assert high.tolist() == [10 + 4 * 130 + 2 * 125, 20 + 2 * 125]
