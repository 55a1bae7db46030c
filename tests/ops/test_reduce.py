"""Reductions: floats against onnx.reference, int8 means against the formula; the kernels."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest

from glowc.graph.numerics import F32
from glowc.graph.types import DType, TensorType, quant
from glowc.ops.base import OpError
from glowc.ops.reduce import OPS, TABLE, _words
from tests.kernels.case import Case, make_case
from tests.ops.one_node import check, onnx_run

RNG = np.random.default_rng(5)
OLD = {op.name for op in OPS} - {"ReduceSum"}


@pytest.mark.parametrize("op", [op.name for op in OPS])
@pytest.mark.parametrize("axes", [(1, 2), (0,), (3,), (0, 2), (1, 3), (-1, -2), (0, 1, 2, 3)])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_float_equals_onnx(op: str, axes: tuple[int, ...], keepdims: int) -> None:
    x = RNG.uniform(0.5, 2, (2, 3, 4, 5)).astype(np.float32)
    (y,) = check(op, [x], {"axes": axes, "keepdims": keepdims}, rtol=1e-6)
    (want,) = onnx_run(op, [x, np.asarray(axes, np.int64)], {"keepdims": keepdims})
    np.testing.assert_allclose(y, want, rtol=2e-5)


def test_axes_of_length_one_need_no_copy() -> None:
    x = RNG.normal(size=(2, 1, 3, 1)).astype(np.float32)
    np.testing.assert_allclose(check("ReduceSum", [x], {"axes": (0, 3)})[0], x.sum((0, 3), keepdims=True), rtol=1e-6)
    np.testing.assert_allclose(check("ReduceL2", [x], {"axes": (1,)})[0], np.abs(x), rtol=1e-6)


def test_no_axes_mean_all() -> None:
    x = RNG.normal(size=(2, 3)).astype(np.float64)
    np.testing.assert_allclose(check("ReduceMean", [x], {"keepdims": 0})[0], x.mean())


@pytest.mark.parametrize("zeros", [(-128, 127), (127, -128), (5, -9)])
@pytest.mark.parametrize("axes", [(1, 2), (2, 3), (1, 3)])
def test_int8_mean_is_the_formula(axes: tuple[int, ...], zeros: tuple[int, int]) -> None:
    x = RNG.integers(-128, 127, (2, 5, 6, 7), endpoint=True).astype(np.int8)
    sx, sy = F32(0.0235), F32(0.0041)
    (y,) = check("ReduceMean", [x], {"axes": axes}, quants=[quant(sx, zeros[0])], out_quants=[quant(sy, zeros[1])])
    n = math.prod(x.shape[a] for a in axes)
    acc = (x.astype(np.int64) - zeros[0]).sum(axes, keepdims=True)
    real = acc.astype(F32) * (sx / (sy * F32(n)))
    np.testing.assert_array_equal(y, np.clip(np.rint(real) + zeros[1], -128, 127))


def test_int8_maximum_compares_codes() -> None:
    x, q = RNG.integers(-128, 127, (3, 8)).astype(np.int8), quant(0.1, 4)
    (y,) = check("ReduceMax", [x], {"axes": (1,), "keepdims": 0}, quants=[q], out_quants=[q])
    np.testing.assert_array_equal(y, x.max(1))


def test_int8_product_is_an_error() -> None:
    q = quant(0.1, 4)
    with pytest.raises(OpError, match="no integer form of ReduceProd"):
        check("ReduceProd", [np.zeros((2, 2), np.int8)], {"axes": (1,)}, quants=[q], out_quants=[q])


def kernel_cases() -> Iterator[Case]:
    libm = "libm's exp, log and sqrt differ between C libraries by units in the last place"
    most = ((1, 1 << 15, end) for end in (0, 1))  # sums of 32 bits, the others need more than 24
    for inner, n, end in (*itertools.product((1, 4, 8, 13), (300,), (0, 1)), *most):
        codes = (-32768, 32767)
        p = {"outer": 2, "n": n, "inner": inner, "in_zp": codes[end], "out_zp": 7, "scale": 0.4 / n}
        x = np.full((2, n, inner), codes[1 - end], np.int16)
        x[1] = RNG.integers(-32768, 32768, x[1].shape)
        out = {"out": ((2, inner), DType.S16)}
        yield make_case("reduce_mean_s16", {"in": x}, {**p, "out_min": -32768, "out_max": 32000}, out=out)
    for outer, n, inner in ((1, 1, 1), (1, 49, 3), (3, 17, 1), (2, 16, 16), (2, 5, 7)):
        dims = {"outer": outer, "n": n, "inner": inner}
        for kind in (DType.S8, DType.S16):
            x = RNG.integers(kind.qmin, kind.qmax, (outer, n, inner), endpoint=True).astype(kind.numpy)
            for in_zp, out_zp in ((kind.qmin, kind.qmax), (kind.qmax, kind.qmin), (3, -5)):
                p = {**dims, "in_zp": in_zp, "out_zp": out_zp, "out_min": kind.qmin, "out_max": kind.qmax - 4}
                out = {"out": ((outer, inner), kind)}
                yield make_case(f"reduce_mean_{kind.value}", {"in": x}, {**p, "scale": 1.7 / n}, out=out)
        for op in TABLE:
            for kind in (DType.F32, DType.F64, DType.S8) if op in ("max", "min") else (DType.F32, DType.F64):
                x = RNG.uniform(0.5, 1.5, (outer, n, inner)) * (50 if kind == DType.S8 else 1)
                words = {
                    "op": op,
                    **dict(zip(("init", "step", "finish"), _words(op, TensorType((1,), kind)), strict=True)),
                }
                p = {**dims, **words, "clamp": int(op == "sum" and kind.is_float), "act_min": -1.0, "act_max": 6.0}
                tolerance = 1e-5 if op in ("l2", "log_sum", "log_sum_exp") else 0.0
                yield make_case(
                    "reduce", {"in": x.astype(kind.numpy)}, p, out={"out": ((outer, inner), kind)}, rtol=tolerance,
                    atol=tolerance, why=libm if tolerance else "",
                )  # fmt: skip
