"""Kernel cases of products and sums with an operand that repeats along the rows, along the last axis, or along both."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from glowc.graph.types import DType
from tests.kernels.case import Case, make_case
from tests.kernels.params import axis_params

SHAPES = (
    ((3, 4, 21), (84, 21, 1), (21, 0, 1)),  # rows that repeat within an image
    ((5, 29), (29, 1), (1, 0)),  # a code for each row
    ((5, 16), (1, 0), (16, 1)),
    ((40,), (1,), (0,)),  # one code for all
    ((7,), (1,), (1,)),
)


def kernel_cases() -> Iterator[Case]:
    """Products and both sums."""
    rng = np.random.default_rng(12)
    for (dims, left, right), (a_zp, b_zp, out_zp) in itertools.product(SHAPES, ((-128, 127, -7), (3, -5, 127))):
        n = int(np.prod(dims))
        loops = axis_params("d", dims, 1) | axis_params("a", left, 0) | axis_params("b", right, 0)
        params = loops | {"rank": len(dims)}
        arrays = {
            name: rng.integers(-128, 128, 1 + sum((d - 1) * step for d, step in zip(dims, steps, strict=True))).astype(
                np.int8
            )
            for name, steps in (("a", left), ("b", right))
        }
        codes = {"a_zp": a_zp, "b_zp": b_zp, "out_zp": out_zp, "out_min": -90, "out_max": 127}
        out = {"out": ((n,), DType.S8)}
        for scale in (0.0625, 0.0123):
            yield make_case("mul_s8", arrays, params | codes | {"scale": scale}, out=out)
        scales = {"a_scale": 0.05, "b_scale": 0.031, "out_scale": 0.07}
        for sign in "+-":
            yield make_case("add_s8", arrays, params | codes | scales | {"sign": sign}, out=out)
        for half in (0, 128):
            fused = {"half": half, "out_min": -128, "out_max": 111, "a_ratio": 0.5, "b_ratio": 0.25, "fixed": 2.5}
            yield make_case("add_s8f", arrays, params | fused, out=out)
