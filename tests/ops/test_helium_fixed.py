"""glowc/kernels/mve/fixed.py: multiplications in integers that give the codes of the definition for every sum."""

from __future__ import annotations

import numpy as np
import pytest

from glowc.kernels.common.factors import Ends
from glowc.kernels.mve.fixed import fixed_form


def _codes(sums: np.ndarray, scale: np.float32, zp: int, bounds: tuple[int, int]) -> np.ndarray:
    return np.asarray(np.clip(np.rint(sums.astype(np.float32) * scale) + zp, *bounds))


@pytest.mark.parametrize("bounds", [(-128, 127), (-3, 90), (5, 5)])
@pytest.mark.parametrize("zp", [-128, 0, 127])
def test_every_sum_gives_the_code_of_the_definition(zp: int, bounds: tuple[int, int]) -> None:
    rng = np.random.default_rng(zp + 128)
    proved = 0
    for scale in np.float32(2.0) ** rng.uniform(-10, -5, 12).astype(np.float32):
        weights, bias = rng.integers(-128, 128, (9, 1)).astype(np.int8), rng.integers(-90000, 90000, 1)
        form = fixed_form(weights, bias, Ends.of({"scale": np.asarray([scale])}, 1), zp, bounds)
        if form is None:
            continue
        proved += 1
        ends = weights.astype(np.int64) * [[-128, 127]]
        sums = np.arange(ends.min(1).sum(), ends.max(1).sum() + 1)
        scaled = sums * 2048 + int(form[0][0])
        assert np.abs(scaled).max() < 1 << 31
        got = np.clip(((scaled * int(form[1][0]) >> 31) + 32768) >> 16, *bounds)
        np.testing.assert_array_equal(got, _codes(sums + bias, scale, zp, bounds))
    assert proved > 6


@pytest.mark.parametrize(("scale", "bias"), [(0.5, 0), (2.0**-20, 1 << 23), (2.0**-8, 1 << 25), (0.0, 0)])
def test_scales_and_biases_out_of_range_have_none(scale: float, bias: int) -> None:
    weights, ends = np.full((9, 1), 3, np.int8), Ends.of({"scale": np.asarray([scale], np.float32)}, 1)
    assert fixed_form(weights, np.asarray([bias]), ends, 0, (-128, 127)) is None
