"""ArgMax, ArgMin, TopK, Hardmax, OneHot, CumSum, CumProd, ReverseSequence: against numpy; their kernels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from glowc.ops.base import OpError
from tests.kernels.case import Case
from tests.ops.one_node import check, graph_of, onnx_run
from tests.ops.program_cases import cases_of

RNG = np.random.default_rng(12)
X = RNG.integers(-3, 4, (3, 4, 5)).astype(np.float32)  # with equal elements


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_arg(op: str, axis: int, last: int, keepdims: int) -> None:
    attrs = {"axis": axis, "select_last_index": last, "keepdims": keepdims}
    np.testing.assert_array_equal(check(op, [X], attrs)[0], onnx_run(op, [X], attrs)[0])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "int64"])
@pytest.mark.parametrize("largest", [0, 1])
def test_top_k(dtype: str, largest: int) -> None:
    x = RNG.integers(0, 6, (3, 7, 2)).astype(dtype)
    values, where = check("TopK", [x], {"axis": 1, "k": 4, "largest": largest}, out_quants=(None, None))
    key = -x.astype(np.int64) if largest else x.astype(np.int64)
    want = np.argsort(key, 1, kind="stable")[:, :4]
    np.testing.assert_array_equal(where, want)
    np.testing.assert_array_equal(values, np.take_along_axis(x, want, 1))


def test_top_k_of_more_than_there_are_is_an_error() -> None:
    with pytest.raises(OpError, match="the 6 largest"):
        graph_of("TopK", [X], {"axis": 2, "k": 6}, out_quants=(None, None))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_hardmax(axis: int) -> None:
    np.testing.assert_array_equal(check("Hardmax", [X], {"axis": axis})[0], onnx_run("Hardmax", [X], {"axis": axis})[0])


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", ["int64", "int32", "float32"])
def test_one_hot(axis: int, dtype: str) -> None:
    i, values = np.asarray([[0, 2, -1], [4, 5, -6]]).astype(dtype), np.asarray([-1, 7], np.int32)
    want = onnx_run("OneHot", [i, np.asarray(5), values], {"axis": axis})[0]
    inside = np.expand_dims((i >= -5) & (i < 5), axis)  # the reference takes an index modulo the depth
    (y,) = check("OneHot", [i, values], {"axis": axis, "depth": 5})
    np.testing.assert_array_equal(y, np.where(inside, want, -1))


@pytest.mark.parametrize("op", ["CumSum", "CumProd"])
@pytest.mark.parametrize(("exclusive", "reverse"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_running(op: str, exclusive: int, reverse: int) -> None:
    x = RNG.integers(-3, 4, (2, 4, 3)).astype(np.int32)
    y = x[:, ::-1] if reverse else x
    done = np.cumsum(y, 1) if op == "CumSum" else np.cumprod(y, 1)
    if exclusive:
        done = np.concatenate([np.full((2, 1, 3), 0 if op == "CumSum" else 1), done[:, :-1]], 1)
    want = (done[:, ::-1] if reverse else done).astype(np.int32)
    np.testing.assert_array_equal(check(op, [x], {"axis": 1, "exclusive": exclusive, "reverse": reverse})[0], want)


@pytest.mark.parametrize(("time", "batch"), [(0, 1), (1, 0)])
def test_reverse_sequence(time: int, batch: int) -> None:
    lens, attrs = np.asarray([1, 3, 4, 2] if batch else [4, 2, 1]), {"time_axis": time, "batch_axis": batch}
    x = X if time else RNG.normal(size=(4, 4, 2)).astype(np.float32)
    (y,) = check("ReverseSequence", [x, lens], attrs)
    np.testing.assert_array_equal(y, onnx_run("ReverseSequence", [x, lens], attrs)[0])


def test_length_of_a_sequence_is_clamped() -> None:
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    assert check("ReverseSequence", [x, np.asarray([9, -9])])[0].tolist() == [[4, 1], [2, 3], [0, 5]]


def kernel_cases() -> Iterator[Case]:
    kinds = ("int8", "uint8", "int16", "int32", "int64", "float32", "float64")
    for dtype in kinds:
        x = RNG.integers(0, 7, (3, 4, 5)).astype(dtype)
        for op, last, axis in (("ArgMax", 0, 1), ("ArgMax", 1, 2), ("ArgMin", 0, 0), ("ArgMin", 1, 1)):
            yield from cases_of({"arg_reduce"}, op, [x], {"axis": axis, "select_last_index": last})
        for largest, k, axis in ((1, 1, 0), (1, 4, 1), (0, 3, 2)):
            yield from cases_of({"top_k"}, "TopK", [x], {"axis": axis, "k": k, "largest": largest}, outputs=2)
        for op in ("CumSum", "CumProd"):
            for exclusive, reverse, axis in ((0, 0, 0), (1, 0, 1), (0, 1, 2), (1, 1, 1)):
                attrs = {"axis": axis, "exclusive": exclusive, "reverse": reverse}
                yield from cases_of({"cumulate"}, op, [x], attrs)
    hot = {f"one_hot_b{n}" for n in (1, 2, 4, 8)}
    turned = {f"reverse_sequence_b{n}" for n in (1, 2, 4, 8)}
    for dtype in ("int8", "int16", "float32", "float64"):
        for index in ("int32", "int64", "float32", "uint8"):
            i = np.asarray([[0, 2, 4], [5, 200, 1]] if index == "uint8" else [[0, 2, -1], [4, 5, -6]]).astype(index)
            yield from cases_of(hot, "OneHot", [i, np.asarray([-1, 7]).astype(dtype)], {"axis": 1, "depth": 5})
        x = RNG.integers(-9, 9, (4, 4, 3)).astype(dtype)
        for time in (0, 1):
            attrs = {"time_axis": time, "batch_axis": 1 - time}
            yield from cases_of(turned, "ReverseSequence", [x, np.asarray([0, 3, 99, -5])], attrs)
