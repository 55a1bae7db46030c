"""Softmax and LogSoftmax: floats against onnx.reference, int8 against the formula; the kernels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from glowc.graph.numerics import F32, softmax_exp_table, softmax_steps
from glowc.graph.types import DType, quant
from glowc.ops.base import OpError
from glowc.ops.softmax import softmax_codes
from tests.conftest import require_module
from tests.kernels.case import Case, make_case
from tests.ops.one_node import check, graph_of, onnx_run, reference

RNG = np.random.default_rng(6)


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_float_equals_onnx(op: str, axis: int, dtype: str) -> None:
    x = (RNG.normal(size=(3, 4, 5)) * 10).astype(dtype)
    (y,) = check(op, [x], {"axis": axis}, rtol=1e-6)
    np.testing.assert_allclose(y, onnx_run(op, [x], {"axis": axis})[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("scale", [0.001, 0.06, 0.9])
@pytest.mark.parametrize("axis", [1, 2])
def test_int8_is_the_formula(scale: float, axis: int) -> None:
    x = RNG.integers(-128, 127, (2, 10, 6), endpoint=True).astype(np.int8)
    qx, qy = quant(scale, 17), quant(1 / 256, -128)
    (y,) = check("Softmax", [x], {"axis": axis}, quants=[qx], out_quants=[qy])
    rows = np.moveaxis(x, axis, -1).reshape(-1, x.shape[axis]).astype(np.int64)
    want = []
    for row in rows:
        e = [softmax_exp_table(scale, len(row))[int(row.max() - q)] for q in row]
        total = F32(0)
        for v in e:
            total = F32(total + v)
        want.append([int(np.clip(np.rint(F32(F32(v * F32(256)) / total)) - 128, -128, 127)) for v in e])
    np.testing.assert_array_equal(np.moveaxis(y, axis, -1).reshape(-1, x.shape[axis]), want)


def ort_softmax(x: np.ndarray, sx: float, sy: float) -> np.ndarray:
    """Return com.microsoft QLinearSoftmax of int8 codes along the last axis."""
    ort = require_module("onnxruntime")
    names = ["x", "sx", "zx", "sy", "zy"]
    node = helper.make_node("QLinearSoftmax", names, ["y"], domain="com.microsoft", axis=-1, opset=13)
    consts = (np.float32(sx), np.int8(3), np.float32(sy), np.int8(-128))
    held = [onnx.numpy_helper.from_array(np.asarray(a), n) for n, a in zip(names[1:], consts, strict=True)]
    infos = [helper.make_tensor_value_info(n, TensorProto.INT8, x.shape) for n in ("x", "y")]
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph([node], "g", infos[:1], infos[1:], held)
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"x": x})[0])


@pytest.mark.parametrize("out_scale", [1 / 256, 1 / 255, 0.0031, 0.01, 0.3])
@pytest.mark.parametrize("n", [2, 10, 32, 257])
def test_int8_gives_the_bytes_of_onnxruntime(n: int, out_scale: float) -> None:
    if 1 / out_scale > 148 * n:
        pytest.skip("onnxruntime overflows float32 here and gives 127 for large probabilities")
    for scale in (0.004, 0.03, 0.2):
        x = np.clip(RNG.normal(0, 40, (60_000 // n, n)), -128, 127).astype(np.int8)
        table = softmax_exp_table(scale, n)
        y = softmax_codes(x[:, :, None], table, softmax_steps(out_scale), -128, DType.S8)[:, :, 0]
        np.testing.assert_array_equal(y, ort_softmax(x, scale, out_scale))


def test_u8_is_the_shifted_int8() -> None:
    x = RNG.integers(0, 255, (4, 12)).astype(np.uint8)
    graph = graph_of("Softmax", [x], {"axis": 1}, quants=[quant(0.1, 9)], out_quants=[quant(1 / 256, 0)])
    (u,) = reference(graph, [x])
    s = (x.astype(np.int64) - 128).astype(np.int8)
    (y,) = check("Softmax", [s], {"axis": 1}, quants=[quant(0.1, 9)], out_quants=[quant(1 / 256, -128)])
    np.testing.assert_array_equal(u.astype(np.int64) - 128, y)


def test_int8_logarithm_is_an_error() -> None:
    q = quant(0.1, 0)
    with pytest.raises(OpError, match="no integer form of LogSoftmax"):
        check("LogSoftmax", [np.zeros((1, 4), np.int8)], quants=[q], out_quants=[q])


def kernel_cases() -> Iterator[Case]:
    libm = "libm's exp and log differ between C libraries by units in the last place"
    for outer, n, inner in ((1, 1, 1), (1, 10, 1), (3, 12, 1), (2, 7, 5), (1, 100, 1)):
        dims, shape = {"outer": outer, "n": n, "inner": inner}, (outer, n, inner)
        sets = ((0.0001, 1 / 256, -128), (0.1, 1 / 256, -128), (2.0, 0.01, 127), (0.05, 0.003, 0))
        for scale, out_scale, zero in sets:
            x = RNG.integers(-128, 127, shape, endpoint=True).astype(np.int8)
            ops = {"in": x, "table": softmax_exp_table(scale, n)}
            p = {**dims, "out_zp": zero, "steps": float(softmax_steps(out_scale))}
            yield make_case("softmax_s8", ops, p, out={"out": (shape, DType.S8)})
        for kind in (DType.F32, DType.F64):
            for log in (0, 1):
                x = (RNG.normal(size=shape) * 8).astype(kind.numpy)
                yield make_case(
                    f"softmax_{kind.value}", {"in": x}, {**dims, "log": log}, out={"out": (shape, kind)},
                    rtol=1e-5, atol=1e-6, why=libm,
                )  # fmt: skip
