"""GatherElements, GatherND, ScatterElements, ScatterND: against onnx.reference; their kernels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from glowc.ops.base import OpError
from tests.kernels.case import Case
from tests.ops.one_node import check, graph_of, onnx_run
from tests.ops.program_cases import cases_of

RNG = np.random.default_rng(11)
X = RNG.normal(size=(3, 4, 5)).astype(np.float32)


def indices(shape: tuple[int, ...], n: int, dtype: str = "int64") -> np.ndarray:
    return RNG.integers(-n, n, shape).astype(dtype)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_gather_elements(axis: int, dtype: str) -> None:
    i = indices((2, 3, 4), X.shape[axis], dtype)
    want = np.take_along_axis(X[tuple(slice(None) if a == axis % 3 else slice(n) for a, n in enumerate(i.shape))],
                              np.where(i < 0, i + X.shape[axis], i).astype(np.int64), axis)  # fmt: skip
    np.testing.assert_array_equal(check("GatherElements", [X, i], {"axis": axis})[0], want)


def test_index_out_of_range_is_clamped() -> None:
    x = np.arange(4, dtype=np.float32)
    assert check("GatherElements", [x, np.asarray([9, -9])], {"axis": 0})[0].tolist() == [3, 0]
    assert check("GatherND", [x, np.asarray([[9], [-9]])])[0].tolist() == [3, 0]
    put = np.asarray([5.0, 6.0], np.float32)
    assert check("ScatterElements", [x, np.asarray([9, -9]), put], {"axis": 0})[0].tolist() == [6, 1, 2, 5]


@pytest.mark.parametrize(("shape", "batch"), [((2, 2), 0), ((2, 1), 0), ((3, 2, 1), 1), ((3, 4, 1), 2), ((2, 3), 0)])
def test_gather_nd(shape: tuple[int, ...], batch: int) -> None:
    i = RNG.integers(0, 3, shape)
    attrs = {"batch_dims": batch}
    np.testing.assert_array_equal(check("GatherND", [X, i], attrs)[0], onnx_run("GatherND", [X, i], attrs)[0])


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "min", "max"])
@pytest.mark.parametrize("dtype", ["float32", "int32", "int64", "uint8"])
def test_scatter_elements(reduction: str, dtype: str) -> None:
    x = RNG.integers(1, 9, (3, 4, 5)).astype(dtype)
    i, u = indices((2, 4, 3), 4), RNG.integers(1, 4, (2, 4, 3)).astype(dtype)
    attrs = {"axis": 1, "reduction": reduction}
    want = x.copy()
    for at in np.ndindex(i.shape):
        place = (at[0], int(i[at]), at[2])
        step = {"none": lambda a, b: b, "add": np.add, "mul": np.multiply, "min": min, "max": max}[reduction]
        want[place] = step(want[place], u[at])
    np.testing.assert_array_equal(check("ScatterElements", [x, i, u], attrs)[0], want)


@pytest.mark.parametrize("reduction", ["none", "add", "max"])
def test_scatter_nd(reduction: str) -> None:
    i, u = np.asarray([[2, 1], [0, 3], [2, 1]]), RNG.normal(size=(3, 5)).astype(np.float32)
    attrs = {"reduction": reduction}
    np.testing.assert_allclose(check("ScatterND", [X, i, u], attrs)[0], onnx_run("ScatterND", [X, i, u], attrs)[0])


def test_wrong_shapes_are_errors() -> None:
    with pytest.raises(OpError, match="along axis 0"):
        graph_of("GatherElements", [X, indices((3, 5, 5), 3)], {"axis": 0})
    with pytest.raises(OpError, match="scatter of"):
        graph_of("ScatterND", [X, indices((2, 2), 3), np.zeros((2, 4), np.float32)])
    with pytest.raises(OpError, match="reduction 'avg'"):
        graph_of("ScatterND", [X, indices((2, 2), 3), np.zeros((2, 5), np.float32)], {"reduction": "avg"})


def kernel_cases() -> Iterator[Case]:
    far = np.asarray([0, 3, -1, -4, 4, 99, -99])
    for dtype in ("int8", "int16", "float32", "float64"):
        x = RNG.integers(-99, 99, (3, 4, 5)).astype(dtype)
        for axis, index in ((0, "int32"), (1, "int64"), (2, "int32")):
            i = RNG.choice(far, (2, 3, 4)).astype(index)
            yield from cases_of({"pick_b1", "pick_b2", "pick_b4", "pick_b8"}, "GatherElements", [x, i], {"axis": axis})
    for index in ("int32", "int64"):
        for shape, batch in (((2, 2), 0), ((6, 3), 0), ((3, 2, 1), 1), ((3, 4, 5, 1), 2)):
            i = RNG.choice(far, shape).astype(index)
            yield from cases_of({"nd_index"}, "GatherND", [X, i], {"batch_dims": batch})
    for dtype in ("int8", "uint8", "int16", "int32", "int64", "float32", "float64"):
        for reduction in ("none", "add", "mul", "min", "max"):
            x, attrs = RNG.integers(1, 99, (3, 4, 5)).astype(dtype), {"axis": 1, "reduction": reduction}
            i, u = RNG.choice(far, (2, 4, 3)), RNG.integers(1, 9, (2, 4, 3)).astype(dtype)
            yield from cases_of({"scatter"}, "ScatterElements", [x, i, u], attrs)
    i = RNG.choice(far, (3, 2)).astype(np.int32)
    yield from cases_of({"scatter"}, "ScatterND", [X, i, RNG.normal(size=(3, 5)).astype(np.float32)])
