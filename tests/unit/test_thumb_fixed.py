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


SUMS = np.concatenate((np.arange(-3000, 3001), RNG.integers(-MOST, MOST + 1, 2000), [MOST, -MOST]))


def code_of(sums: np.ndarray, mul: int, shift: int) -> np.ndarray:
    """Return what glow_thumb_q31 makes of sums, without zero point, of its plain C."""
    right, twice = -shift, 2 * sums * mul
    high = (twice >> 32) + ((twice & 0xFFFFFFFF) >> 31)
    return np.clip((high + (1 << right >> 1) + (high >> 31)) >> right, -128, 127)


@pytest.mark.parametrize("shift", range(-31, 0))
def test_codes_are_those_of_the_definition(shift: int) -> None:
    for mul in (1 << 30, (1 << 31) - 1, *RNG.integers(1 << 30, 1 << 31, 6).tolist()):
        exact = np.clip(scaled(SUMS, np.array(mul), np.array(shift)), -128, 127)
        assert (code_of(SUMS, mul, shift) == exact).all()


@pytest.mark.parametrize(("most", "last"), [(MOST, 0), (MOST + 1, -(1 << 31))])
def test_larger_sums_are_computed_by_the_definition(most: int, last: int) -> None:
    wishes = {"w_zp": 0, "in_zp": 0, "out_zp": 7, "out_min": -128, "out_max": 127}
    instr = cast("Instr", SimpleNamespace(int_=wishes.get))
    constants = {"bias": np.array([most - 128]), "mul": np.array([1 << 30]), "shift": np.array([-9])}
    assert fold_fixed(np.ones((1, 1)), constants, instr)["bias"][-1] == last
