"""Append and Attend: rows of a cache at a position, and attention to those that are there; their kernels."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from glowc.graph.graph import Node
from glowc.graph.types import DType, TensorType
from glowc.ops.base import OpError
from glowc.ops.registry import get_op
from tests.kernels.case import Case, make_case
from tests.ops.one_node import check

RNG = np.random.default_rng(11)
WHY = "exp and sums in another order"
WHY_CODES = "queries and shares of 16 bits: on average a hundredth of what codes of 8 bits do"


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize(("position", "first"), [(0, 0), (3, 3), (6, 5), (100, 5), (-1, 0)])
def test_new_rows_are_put_where_the_position_says(axis: int, position: int, first: int) -> None:
    shape = [2, 3, 4]
    shape[axis] = 7
    cache = RNG.standard_normal(shape).astype(np.float32)
    shape[axis] = 2
    new = RNG.standard_normal(shape).astype(np.float32)
    (y,) = check("Append", [cache, new, np.array([position], np.int32)], {"axis": axis})
    want = cache.copy()
    want.swapaxes(0, axis)[first : first + 2] = new.swapaxes(0, axis)
    np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("position", [0, 2, 6, 50])
def test_attention_sees_the_rows_up_to_the_position(causal: int, position: int) -> None:
    q, k, v = (RNG.standard_normal(s).astype(np.float32) for s in ((4, 3, 8), (2, 9, 8), (2, 9, 4)))
    first = min(position, 6)
    attrs = {
        "group": 2, "rows": 9, "value": 4, "causal": causal, "scale": 0.25, "k_steps": (72, 8), "v_steps": (36, 4),
    }  # fmt: skip
    (y,) = check("Attend", [q, k, v, np.array([position], np.int32)], attrs)
    for h, i in itertools.product(range(4), range(3)):
        seen = first + (i + 1 if causal else 3)
        shares = np.exp(k[h // 2, :seen] @ q[h, i] * 0.25)
        np.testing.assert_allclose(y[h, i], shares @ v[h // 2, :seen] / shares.sum(), rtol=1e-4, atol=1e-6)


def test_rows_that_do_not_fit_are_refused() -> None:
    node = Node("n", "Append", ("cache", "new", "position"), ("y",), {"axis": 1})
    cache, new = TensorType((1, 3), DType.F32), TensorType((1, 4), DType.F32)
    with pytest.raises(OpError, match=r"new rows f32\[1,4\] of a cache f32\[1,3\]"):
        get_op("Append").infer(node, (cache, new, TensorType((1,), DType.S32)))
    with pytest.raises(OpError, match=r"position f32\[1\]: needs one s32"):
        get_op("Append").infer(node, (cache, cache, TensorType((1,), DType.F32)))


def attention(sizes: tuple[int, ...], position: int, kind: DType, *, causal: int = 1, rows_first: bool = False) -> Case:
    """Return one attend_f32; `rows_first`: a row of the cache has the elements of all heads."""
    heads, group, queries, key, value, most = sizes
    kept = heads // group

    def cache(n: int) -> np.ndarray:
        if kind is DType.S8:
            return RNG.integers(-127, 128, (kept, most, n)).astype(np.int8)
        return RNG.standard_normal((kept, most, n)).astype(np.float32)

    def steps(n: int) -> tuple[int, int]:
        return (n, kept * n) if rows_first else (most * n, n)

    arrays = {
        "q": RNG.standard_normal((heads, queries, key)).astype(np.float32) * np.float32(2),
        "k": cache(key), "v": cache(value), "position": np.array([position], np.int32),
    }  # fmt: skip
    names = ("k_head", "k_row", "v_head", "v_row")
    params = {
        "heads": heads, "group": group, "queries": queries, "key": key, "value": value, "most": most, "causal": causal,
        **dict(zip(names, (*steps(key), *steps(value)), strict=True)),
        "scale": 0.01 if kind is DType.S8 else 0.5, "v_scale": 0.02 if kind is DType.S8 else 1.0,
    }  # fmt: skip
    out = {"out": ((heads, queries, value), DType.F32)}
    if kind is DType.S8:
        scores = 0.01 * 127 * key**0.5 * float(np.abs(arrays["q"]).max()) / (1 << 16)
        return make_case("attend_f32", arrays, params, out=out, atol=0.02 * 127 * (scores + 4e-5), why=WHY_CODES)
    return make_case("attend_f32", arrays, params, out=out, atol=1e-5, rtol=1e-4, why=WHY)


def kernel_cases() -> Iterator[Case]:
    """Every number of rows around four, groups, queries, both kinds and layouts of caches."""
    for position, kind in itertools.product((0, 1, 2, 3, 4, 9, 40), (DType.F32, DType.S8)):
        yield attention((4, 2, 1, 8, 8, 12), position, kind)
    for group, kind in itertools.product((1, 2, 3, 6, 8), (DType.F32, DType.S8)):
        yield attention((24, group, 2, 5, 12, 9), 4, kind, rows_first=True)
    for sizes in ((4, 2, 1, 8, 4, 300), (2, 1, 2, 16, 8, 131), (6, 3, 1, 24, 4, 130), (2, 2, 1, 4, 12, 260)):
        for position in (127, 128, 258):
            yield attention(sizes, position, DType.S8, rows_first=position == 128)
    unknown = attention((4, 2, 1, 8, 8, 12), 5, DType.S8)
    unknown.arrays["q"][1, 0, 3] = np.nan
    yield unknown
    for causal, queries in itertools.product((0, 1), (1, 3, 8)):
        yield attention((2, 1, queries, 16, 8, 8), 3, DType.F32, causal=causal)
        yield attention((2, 2, queries, 3, 5, 8), 0, DType.S8, causal=causal)
    for dtype, (outer, most, fresh, inner) in itertools.product(
        ("int8", "int16", "float32", "float64"), ((1, 5, 1, 1), (3, 7, 2, 5), (2, 4, 4, 3), (1, 9, 1, 16))
    ):
        for position in (0, 2, 7, -3):
            cache = RNG.integers(-100, 100, outer * most * inner).astype(dtype)
            new = RNG.integers(-100, 100, outer * fresh * inner).astype(dtype)
            params = {"outer": outer, "most": most, "fresh": fresh, "inner": inner}
            arrays = {"cache": cache, "in": new, "position": np.array([position], np.int32)}
            yield make_case(f"append_b{cache.itemsize}", arrays, params)
