"""Weights whose zero point leaves no int8, for the kernels that add up windows (packing_shift)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from glowc.kernels.common.sums import shifted
from tests.kernels.case import Case
from tests.ops.test_conv import geometry
from tests.ops.test_fully_connected import layer


def kernel_cases() -> Iterator[Case]:
    """Every path of a convolution and every block of outputs, zero points at both ends; column dilation."""
    rng = np.random.default_rng(17)
    edge: dict[str, Any] = {"pads": (1, 2, 2, 1)}
    ring: dict[str, Any] = {"rows": (1, 4), "in_ring": 5, "out_ring": 3}
    for c, out_c, w_zp in itertools.product((8, 16, 27, 40), (3, 8, 10, 13, 20), (-128, 127)):
        base: dict[str, Any] = {"c": c, "out_c": out_c, "w_zp": w_zp, "extreme": c == 16}
        yield geometry(rng, h=3, w=8, **base, k=(1, 1), batch=2, label=f"points from {w_zp}")
        yield geometry(rng, h=3, w=3, **base, k=(1, 1), y_zp=-128, label=f"points over rows from {w_zp}")
    for c, k, stride in itertools.product((3, 6, 8, 20, 32), ((3, 3), (1, 7), (2, 2), (1, 9)), (1, 2, 3)):
        more: dict[str, Any] = {"c": c, "out_c": 12, "k": k, "stride": (stride, stride), "w_zp": -9}
        yield geometry(rng, h=5, w=14, **more, **edge, batch=2, label=f"shifted {k}")
        yield geometry(rng, h=9, w=12, **more, **ring, descending=1, clamp=(-90, 70), label=f"shifted {k}, ring")
    for c, stride, w_zp in itertools.product((3, 8, 12, 24, 32), (1, 2), (0, 6)):
        for k, dilation in (((3, 3), (2, 2)), ((1, 5), (1, 3)), ((3, 2), (1, 4))):
            apart: dict[str, Any] = {"c": c, "out_c": 11, "k": k, "dilation": dilation, "stride": (stride, stride)}
            yield geometry(rng, h=7, w=18, **apart, **edge, w_zp=w_zp, label=f"columns {dilation} apart")
            yield geometry(rng, h=9, w=20, **apart, **ring, w_zp=w_zp, planar=c == 3, label="columns apart, ring")
    for k, n, w_zp in itertools.product((3, 16, 49, 64), (1, 4, 10, 21, 37), (-128, 5, 127)):
        yield layer(rng, k, n, rows=1 + n % 2, w_zp=w_zp, extreme=n == 10)


@pytest.mark.parametrize("w_zp", [-128, -7, 3, 127])
def test_codes_and_shift_are_the_weights(w_zp: int) -> None:
    weights = np.random.default_rng(0).integers(-128, 128, (6, 40)).astype(np.int8)
    weights[0], weights[1], weights[2, :2] = 127, -128, (-128, 127)
    codes, shift = shifted(weights, w_zp)
    assert codes.dtype == np.int8
    assert np.array_equal(codes + shift[:, None], weights.astype(int) - w_zp)
    assert codes[:2].min() > -128


def test_without_a_zero_point_weights_stay() -> None:
    weights = np.array([[-128, 126], [127, 0]], np.int8)
    codes, shift = shifted(weights, 0)
    assert np.array_equal(codes, weights)
    assert not shift.any()
