"""IsNaN, IsInf, BitCast: against numpy; the kernel `predicate`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from glowc.ops.base import OpError
from tests.kernels.case import Case
from tests.ops.one_node import check, graph_of
from tests.ops.program_cases import cases_of

X = np.asarray([0.0, -1.5, np.nan, np.inf, -np.inf, 3e38])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_is_nan_and_is_inf(dtype: str) -> None:
    x = X.astype(dtype)
    np.testing.assert_array_equal(check("IsNaN", [x])[0], np.isnan(x))
    np.testing.assert_array_equal(check("IsInf", [x])[0], np.isinf(x))
    np.testing.assert_array_equal(check("IsInf", [x], {"detect_negative": 0})[0], np.isposinf(x))
    np.testing.assert_array_equal(check("IsInf", [x], {"detect_positive": 0})[0], np.isneginf(x))
    assert not check("IsInf", [x], {"detect_positive": 0, "detect_negative": 0})[0].any()


def test_is_nan_of_integers_is_an_error() -> None:
    with pytest.raises(OpError, match="needs a float"):
        graph_of("IsNaN", [np.zeros(2, np.int32)])


def test_bit_cast() -> None:
    x = np.asarray([0.0, -1.5, 2.5e9], np.float32)
    np.testing.assert_array_equal(check("BitCast", [x], {"to": 6})[0], x.view(np.int32))
    with pytest.raises(OpError, match="the bits of f32"):
        graph_of("BitCast", [x], {"to": 7})


def kernel_cases() -> Iterator[Case]:
    for dtype in ("float32", "float64"):
        x = X.astype(dtype)
        yield from cases_of({"predicate"}, "IsNaN", [x])
        for up in (0, 1):
            for down in (0, 1):
                yield from cases_of({"predicate"}, "IsInf", [x], {"detect_positive": up, "detect_negative": down})
