"""Elementwise functions: floats against onnx.reference, int8 against the formula, the `unary` kernel."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

from glowc.graph.attrs import AttrValue
from glowc.graph.numerics import F32, lut_s8
from glowc.graph.types import DType, quant
from glowc.ops.base import OpError
from glowc.ops.unary import INTEGERS, OPS, real_function
from glowc.ops.unary_table import FUNCTIONS
from tests.kernels.case import Case, make_case
from tests.kernels.params import words
from tests.ops.one_node import check, graph_of, onnx_run, ort_run

X = np.linspace(-9, 9, 73, dtype=np.float32)
ATTRS: dict[str, dict[str, AttrValue]] = {
    "Clip": {"min": -1.5, "max": 2.25}, "LeakyRelu": {"alpha": 0.3}, "Elu": {"alpha": 1.5}, "Celu": {"alpha": 0.7},
    "HardSigmoid": {"alpha": 0.4, "beta": 0.6}, "ThresholdedRelu": {"alpha": 0.75},
    "Selu": {"alpha": 1.2, "gamma": 1.1},
}  # fmt: skip
POSITIVE = {"Log", "Sqrt", "Acosh"}
UNIT = {"Asin", "Acos", "Atanh"}
NOT_IN_REFERENCE = {"QuickGelu", "RoundHalf", "RoundBfloat16", "Swish", "Not", "BitwiseNot"}


def domain(op: str, x: np.ndarray) -> np.ndarray:
    if op in POSITIVE:
        return np.abs(x) + x.dtype.type(1.125)
    return x / x.dtype.type(9.5) if op in UNIT else np.where(x == 0, x.dtype.type(0.5), x) if op == "Reciprocal" else x


@pytest.mark.parametrize("op", [op.name for op in OPS if op.name not in NOT_IN_REFERENCE])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_float_equals_onnx(op: str, dtype: str) -> None:
    x, attrs = domain(op, X.astype(dtype)), ATTRS.get(op, {})
    (y,) = check(op, [x], attrs)
    if op == "Clip":
        want = np.clip(x, attrs["min"], attrs["max"])  # type: ignore[arg-type]
    elif op == "Mish":
        want = x * np.tanh(np.log1p(np.exp(x)))
    else:
        (want,) = onnx_run(op, [x], attrs)
    np.testing.assert_allclose(y, want, rtol=1e-5, atol=2e-6)


def test_gelu_by_tanh() -> None:
    (y,) = check("Gelu", [X], {"approximate": "tanh"})
    np.testing.assert_allclose(y, onnx_run("Gelu", [X], {"approximate": "tanh"})[0], rtol=1e-5, atol=1e-6)


HALVES = [
    1e-9, 2.98e-8, 2.99e-8, 6.1e-5, 6.0976e-5, 1.0004883, 1.0004884, 126.7, 2049, 2051, 65519, 65520, 1e9, np.inf,
    np.nan,
]  # fmt: skip


def test_rounding_to_half_is_numpys() -> None:
    x = np.asarray([*HALVES, *(-v for v in HALVES), 0.0], np.float32)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(check("RoundHalf", [x])[0], x.astype(np.float16).astype(np.float32))


@pytest.mark.parametrize("op", ["Sign", "HardSigmoid"])
def test_function_of_nan_is_nan(op: str) -> None:
    x = np.asarray([np.nan, np.inf, -np.inf, 0, 0.3, -0.3], np.float32)
    np.testing.assert_array_equal(check(op, [x])[0], ort_run(op, [x]))


def test_quick_gelu() -> None:
    (y,) = check("QuickGelu", [X])
    np.testing.assert_array_equal(check("Swish", [X], {"alpha": 1.702})[0], y)
    np.testing.assert_allclose(y, X / (1 + np.exp(-1.702 * X)), rtol=1e-5, atol=1e-6)


def test_round_goes_half_to_even() -> None:
    (y,) = check("Round", [np.asarray([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5], np.float32)])
    assert y.tolist() == [-2, -2, 0, 0, 2, 2]


@pytest.mark.parametrize("op", [op.name for op in OPS if op.int8])
@pytest.mark.parametrize(("zx", "zy"), [(-128, 127), (0, 0), (127, -128)])
def test_int8_is_the_table_and_u8_its_shift(op: str, zx: int, zy: int) -> None:
    codes, attrs = np.arange(-128, 128, dtype=np.int8), ATTRS.get(op, {})
    qx, qy = quant(0.03, zx), quant(0.05, zy)
    (y,) = check(op, [codes], attrs, quants=[qx], out_quants=[qy])
    (u,) = check_u8(op, codes, attrs, zx, zy)
    np.testing.assert_array_equal(u.astype(np.int64) - 128, y)


def check_u8(op: str, codes: np.ndarray, attrs: dict[str, AttrValue], zx: int, zy: int) -> list[np.ndarray]:
    from tests.ops.one_node import reference

    x = (codes.astype(np.int64) + 128).astype(np.uint8)
    graph = graph_of(op, [x], attrs, quants=[quant(0.03, zx + 128)], out_quants=[quant(0.05, zy + 128)])
    return reference(graph, [x])


def test_int8_relu_is_the_formula() -> None:
    codes, qx, qy = np.arange(-128, 128, dtype=np.int8), quant(0.1, 5), quant(0.07, -128)
    (y,) = check("Relu", [codes], quants=[qx], out_quants=[qy])
    want = np.clip(np.rint(np.maximum((codes.astype(F32) - 5) * F32(0.1), F32(0)) / F32(0.07)) - 128, -128, 127)
    np.testing.assert_array_equal(y, want)
    np.testing.assert_array_equal(y, lut_s8(real_function("relu", 0, 0), qx, qy))


def test_int16_is_dequantised_and_quantised() -> None:
    x, qx, qy = np.arange(-32768, 32768, 97, dtype=np.int16), quant(0.001, 100), quant(0.00005, -32768)
    (y,) = check("Sigmoid", [x], quants=[qx], out_quants=[qy], atol=1)
    real = 1 / (1 + np.exp(-0.001 * (x.astype(np.float64) - 100)))
    assert np.abs(y - np.clip(np.rint(real / 0.00005) - 32768, -32768, 32767)).max() <= 1
    (y,) = check("Relu", [x], quants=[qx], out_quants=[quant(0.002, -3)])
    real = np.maximum((x.astype(F32) - 100) * F32(0.001), F32(0))
    np.testing.assert_array_equal(y, np.clip(np.rint(real / F32(0.002)) - 3, -32768, 32767))


def test_function_of_plain_integers_is_an_error_unless_exact() -> None:
    x = np.asarray([-2147483648, -5, 0, 7, 2147483647], np.int32)
    for op in ("Relu", "Abs", "Neg", "Sign"):
        (y,) = check(op, [x])
        np.testing.assert_array_equal(y, onnx_run(op, [x])[0])
    (y,) = check("Clip", [x], {"min": -4.0, "max": 6.0})
    assert y.tolist() == [-4, -4, 0, 6, 6]
    with pytest.raises(OpError, match="not quantized"):
        check("Exp", [x])


def test_not() -> None:
    (y,) = check("Not", [np.asarray([True, False])])
    assert y.tolist() == [False, True]
    with pytest.raises(OpError, match="Not of"):
        graph_of("Not", [X])


def test_bounds_at_run_time_are_an_error() -> None:
    with pytest.raises(OpError, match="run time"):
        graph_of("Clip", [X, np.float32(0.0).reshape(()), None])


def kernel_cases() -> Iterator[Case]:
    special = np.asarray([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, 88.0, -88.0, 1e-30, 1e30, -1e30])
    libm = "libm's functions differ between C libraries by units in the last place"
    for op in OPS:
        if op.name in ("Not", "BitwiseNot"):
            continue
        key = "gelu_tanh" if op.name == "Gelu" else _key(op.name)
        a, b = (*(float(F32(ATTRS.get(op.name, {}).get(k, d))) for k, d in FUNCTIONS[key].params), 0.0, 0.0)[:2]
        for dtype in (DType.F32, DType.F64):
            x = domain(op.name, np.concatenate([X, special if op.name not in UNIT else X[:3]]).astype(dtype.numpy))
            if op.name in ("Sin", "Cos", "Tan"):
                x = np.clip(x, -9, 9)
            params = {"n": x.size, **words(key, dtype, a, b)}
            yield make_case("unary", {"in": x}, params, out={"out": (x.shape, dtype)}, rtol=2e-5, atol=1e-6, why=libm)
    bools = np.asarray([True, False, True])
    yield make_case("unary", {"in": bools}, {"n": 3, **words("not", DType.BOOL, 0, 0)}, out={"out": ((3,), DType.BOOL)})
    for key in sorted(INTEGERS - {"not"}):
        for dtype in (DType.S8, DType.S16, DType.S32, DType.S64, DType.U8):
            x = np.asarray([dtype.qmin, dtype.qmin + 1, 0, 1, 5, dtype.qmax - 1, dtype.qmax], dtype.numpy)
            params = {"n": x.size, **words(key, dtype, -3.0, 4.0 if key == "clip" else math.inf)}
            yield make_case("unary", {"in": x}, params, out={"out": (x.shape, dtype)})


def _key(op: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in op).lstrip("_")
