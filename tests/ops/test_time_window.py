"""TimeWindow: shifts its steps along any axis; the push kernels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from glowc.graph.graph import Node
from glowc.graph.types import DType, TensorType
from glowc.ops.base import OpError
from glowc.ops.registry import get_op
from tests.kernels.case import Case, make_case
from tests.ops.one_node import check

RNG = np.random.default_rng(5)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize(("length", "new"), [(5, 1), (5, 4), (4, 4), (9, 3)])
@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_the_oldest_steps_leave(axis: int, length: int, new: int, dtype: str) -> None:
    shape = [2, 3, 4]
    shape[axis] = length
    start = RNG.integers(-100, 100, shape).astype(dtype)
    shape[axis] = new
    x = RNG.integers(-100, 100, shape).astype(dtype)
    (y,) = check("TimeWindow", [x, start], {"axis": axis}, consts=(1,))
    both = np.concatenate([start, x], axis)
    np.testing.assert_array_equal(y, np.take(both, range(new, length + new), axis))


def test_more_new_steps_than_the_window_has_are_refused() -> None:
    node = Node("n", "TimeWindow", ("x", "start"), ("y",), {"axis": 1})
    with pytest.raises(OpError, match=r"new steps s8\[1,4\] of a window s8\[1,3\]"):
        get_op("TimeWindow").infer(node, (TensorType((1, 4), DType.S8), TensorType((1, 3), DType.S8)))


def kernel_cases() -> Iterator[Case]:
    for dtype in ("int8", "int16", "float32", "float64"):
        for outer, keep, fresh in ((1, 1, 1), (1, 30, 2), (1, 2, 30), (3, 7, 4), (1, 0, 5), (2, 64, 16), (1, 17, 33)):
            window = RNG.integers(-100, 100, outer * (keep + fresh)).astype(dtype)
            x = RNG.integers(-100, 100, outer * fresh).astype(dtype)
            params = {"outer": outer, "keep": keep, "fresh": fresh}
            yield make_case(f"push_b{x.itemsize}", {"window": window, "in": x}, params)
