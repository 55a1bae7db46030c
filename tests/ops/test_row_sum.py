"""A global mean by rows: the sums and their end, alone and together equal to the pooling that they stand for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from glowc.graph.types import DType
from glowc.program.kernel import get_kernel
from tests.kernels.case import Case, interpret, make_case

RNG = np.random.default_rng(11)


def sums(x: np.ndarray, zero: int, ring: int | None = None) -> Case:
    kind = {"int8": "s8", "int16": "s16"}[x.dtype.name]
    rows, width, channels = x.shape
    params = {"in_w": width, "in_c": channels, "in_row": width * channels, "in_ring": ring or rows, "in_zp": zero}
    return make_case(f"sum_rows_{kind}", {"in": x}, params, rows=(0, rows), out={"acc": ((channels,), DType.S32)})


def codes(acc: np.ndarray, kind: DType, scale: float) -> Case:
    params = {"n": acc.size, "out_zp": -3, "out_min": kind.qmin, "out_max": kind.qmax - 1, "scale": scale}
    return make_case(f"requant_sums_{kind.value}", {"in": acc}, params, out={"out": (acc.shape, kind)})


def kernel_cases() -> Iterator[Case]:
    for dtype, kind in ((np.int8, DType.S8), (np.int16, DType.S16)):
        for shape in ((1, 1, 1), (5, 3, 4), (8, 8, 17)):
            yield sums(RNG.integers(-128, 128, shape).astype(dtype), -7)
        extremes = np.array([0, 1, -1, 2**31 - 1, -(2**31), 12345, 100], np.int32)
        yield codes(extremes, kind, 0.01)
        yield codes(RNG.integers(-(10**5), 10**5, 33).astype(np.int32), kind, 0.0007)


@pytest.mark.parametrize("shape", [(1, 1, 1), (4, 3, 2), (7, 5, 6)])
def test_rows_one_by_one_in_a_ring_give_the_same_sums(shape: tuple[int, int, int]) -> None:
    x = RNG.integers(-128, 128, shape).astype(np.int8)
    whole = interpret(sums(x, 5))["acc"]
    np.testing.assert_array_equal(whole, (x.astype(np.int64) - 5).sum((0, 1)))
    acc, one = np.full(shape[2], 77, np.int32), sums(x[:1], 5, ring=1).instr
    for y in range(shape[0]):
        arrays = {"in": x[y : y + 1], "acc": acc}
        get_kernel(one.kernel).run(arrays, one.params, (y, y + 1))
    np.testing.assert_array_equal(acc, whole)
