"""Codes on cores without SIMD of layers that end as TensorFlow Lite does (runtime_c/thumb/glow_fixed_thumb.h)."""

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from glowc.graph.fixed_point import scaled
from glowc.kernels.thumb.fold import fold_fixed
from glowc.program.ir import Instr

RNG = np.random.default_rng(3)
MOST = (1 << 24) - 1  # of a sum's magnitude
ALWAYS = -(1 << 31)


def sums_of(shift: int) -> np.ndarray:
    """Return sums whose doublings fit 32 bits: small ones, any, and the largest."""
    most = min(MOST, (1 << 31 >> max(shift, 0)) - 1)
    near = np.arange(-min(most, 3000), min(most, 3000) + 1)
    return np.concatenate((near, RNG.integers(-most, most + 1, 2000), [most, -most]))


def code_of(sums: np.ndarray, mul: int, shift: int) -> np.ndarray:
    """Return what glow_thumb_q31 makes of sums, without zero point, of its plain C."""
    right, left = max(-shift, 0), min(max(shift, 0), 12)
    most = 4096 >> left
    sums = np.clip(sums, -most, most) << left if left else sums
    twice = 2 * sums * mul
    high = (twice >> 32) + ((twice & 0xFFFFFFFF) >> 31)
    half, negative = (1 << right >> 1, -1) if right else (0, 0)
    return np.clip((high + half + ((high >> 31) & negative)) >> right, -128, 127)


@pytest.mark.parametrize("shift", range(-31, 20))
def test_codes_are_those_of_the_definition(shift: int) -> None:
    for mul in (1 << 30, (1 << 31) - 1, *RNG.integers(1 << 30, 1 << 31, 6).tolist()):
        sums = sums_of(shift)
        exact = np.clip(scaled(sums, np.array(mul), np.array(shift)), -128, 127)
        assert (code_of(sums, mul, shift) == exact).all()


def last(bias: int, shift: int) -> int:
    """Return what a layer has after its biases, whose sums are up to `bias` + 128."""
    wishes = {"w_zp": 0, "in_zp": 0, "out_zp": 7, "out_min": -128, "out_max": 127}
    instr = cast("Instr", SimpleNamespace(int_=wishes.get))
    constants = {"bias": np.array([bias]), "mul": np.array([1 << 30]), "shift": np.array([shift])}
    return int(fold_fixed(np.ones((1, 1)), constants, instr)["bias"][-1])


@pytest.mark.parametrize(("most", "shift"), [(MOST, -9), (MOST, 0), ((1 << 23) - 1, 8), ((1 << 16) - 1, 15)])
def test_what_does_not_fit_is_computed_by_the_definition(most: int, shift: int) -> None:
    assert last(most - 128, shift) == 0
    assert last(most - 127, shift) == ALWAYS
