"""Softmax and LogSoftmax: floats against onnx.reference, int8 against the formula; the kernels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from glowc.board import load_board
from glowc.graph.exp_factors import exp_entries, exp_factors
from glowc.graph.numerics import F32, softmax_exp_table, softmax_steps
from glowc.graph.types import DType, quant
from glowc.kernels.common.softmax import is_once
from glowc.lower.lowering import lower_graph
from glowc.ops.base import OpError
from glowc.ops.interp import run_graph
from glowc.ops.softmax import softmax_codes, wide_tables
from glowc.passes.base import PassCtx
from glowc.passes.quant.u8_to_s8 import U8ToS8
from tests.conftest import require_module
from tests.kernels.case import Case, make_case
from tests.ops.one_node import check, graph_of, onnx_run

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
    rng = np.random.default_rng(n)
    for scale in (0.004, 0.03, 0.2):
        x = np.clip(rng.normal(0, 40, (60_000 // n, n)), -128, 127).astype(np.int8)
        table = softmax_exp_table(scale, n)
        y = softmax_codes(x[:, :, None], table, softmax_steps(out_scale), -128, DType.S8)[:, :, 0]
        apart = np.abs(y.astype(np.int64) - ort_softmax(x, scale, out_scale))
        # From 1.32 on onnxruntime divides in double: another code at a tie, one in four million.
        assert apart.max() <= 1
        assert apart.sum() <= 1


def test_u8_is_the_shifted_int8() -> None:
    x = RNG.integers(0, 255, (4, 12)).astype(np.uint8)
    graph = graph_of("Softmax", [x], {"axis": 1}, quants=[quant(0.1, 9)], out_quants=[quant(1 / 256, 0)])
    (u,) = run_graph(U8ToS8().run(graph, PassCtx()), {"x0": x}).values()
    s = (x.astype(np.int64) - 128).astype(np.int8)
    (y,) = check("Softmax", [s], {"axis": 1}, quants=[quant(0.1, 9 - 128)], out_quants=[quant(1 / 256, -128)])
    np.testing.assert_array_equal(u.astype(np.int64) - 128, y)


@pytest.mark.parametrize(("scale", "spread"), [(0.0003, 9000), (0.002, 3000), (1e-5, 30000)])
def test_int16_is_at_most_one_step_from_exact(scale: float, spread: int) -> None:
    x = np.clip(RNG.normal(0, spread, (50, 12)), -32768, 32767).astype(np.int16)
    (y,) = check("Softmax", [x], quants=[quant(scale, 0)], out_quants=[quant(2.0**-15, 0)])
    e = np.exp((x.astype(np.float64) - x.max(1, keepdims=True)) * np.float32(scale))
    exact = np.clip(e / e.sum(1, keepdims=True) * 2**15, -32768, 32767)
    assert np.abs(y - exact).max() < 0.51


def test_int8_logarithm_is_an_error() -> None:
    q = quant(0.1, 0)
    with pytest.raises(OpError, match="no integer form of LogSoftmax"):
        check("LogSoftmax", [np.zeros((1, 4), np.int8)], quants=[q], out_quants=[q])


@pytest.mark.parametrize("scale", [1e-4, 0.004, 1 / 17, 0.1, 0.1718849539756775, 0.3, 0.487, 0.5, 0.55, 0.9, 2.0, 5.0])
@pytest.mark.parametrize("n", [1, 2, 10, 12, 1000, 1023])
def test_products_of_two_entries_are_the_table_bit_for_bit(scale: float, n: int) -> None:
    factors = exp_factors(scale, n)
    assert factors is not None
    assert factors.nbytes == 136
    assert exp_entries(factors).tobytes() == softmax_exp_table(scale, n).tobytes()


def test_scales_whose_exponents_leave_the_range_have_no_products() -> None:
    assert exp_factors(8.0, 10) is None


@pytest.mark.parametrize(
    ("shape", "scale", "kernel", "nbytes"),
    [((1, 10), 0.1, "softmax_s8p", 136), ((3, 341), 0.1, "softmax_s8p", 136),
     ((4, 256), 0.1, "softmax_s8", 1024), ((1, 10), 8.0, "softmax_s8", 1024)],
)  # fmt: skip
def test_small_tensors_have_the_small_table(shape: tuple[int, int], scale: float, kernel: str, nbytes: int) -> None:
    x = np.zeros(shape, np.int8)
    graph = graph_of("Softmax", [x], quants=[quant(scale, 0)], out_quants=[quant(1 / 256, -128)])
    program = lower_graph(graph, load_board("mps2-an385").cpu)
    assert [i.kernel for i in program.instrs] == [kernel]
    assert sum(c.nbytes for c in program.consts.values()) == nbytes


@pytest.mark.parametrize(
    ("scale", "out_scale", "once"),
    [(0.05, 1 / 256, True), (0.206, 1 / 256, False), (0.03, 1 / 255, True), (0.004, 1 / 255, False)],
)
def test_quotients_take_a_second_step_where_a_sum_could_need_it(scale: float, out_scale: float, once: bool) -> None:
    assert is_once(softmax_exp_table(scale, 64), softmax_steps(out_scale), -128) == once


def kernel_cases() -> Iterator[Case]:
    libm = "libm's exp and log differ between C libraries by units in the last place"
    sizes = ((1, 1, 1), (1, 10, 1), (3, 13, 1), (5, 8, 1), (3, 12, 1), (2, 7, 5), (1, 100, 1), (40, 32, 1))
    for outer, n, inner in sizes:
        dims, shape = {"outer": outer, "n": n, "inner": inner}, (outer, n, inner)
        sets = ((0.0001, 1 / 256, -128), (0.1, 1 / 256, -128), (2.0, 0.01, 127), (0.05, 0.003, 0))
        for scale, out_scale, zero in sets:
            x = RNG.integers(-128, 127, shape, endpoint=True).astype(np.int8)
            p = {**dims, "out_zp": zero, "steps": float(softmax_steps(out_scale))}
            known = {"softmax_s8": softmax_exp_table(scale, n), "softmax_s8p": exp_factors(scale, n)}
            for kernel, table in known.items():
                assert table is not None
                yield make_case(kernel, {"in": x, "table": table}, p, out={"out": (shape, DType.S8)})
        wide_sets = ((0.0003, 2.0**-15, 0), (1e-6, 2e-5, -5), (0.1, 1e-6, -32768), (0.0015, 2.0**-15, 0))
        for scale, out_scale, zero in wide_sets:  # the last: many exponentials are denormal
            x = RNG.integers(-32768, 32768, shape).astype(np.int16)
            p = {**dims, "out_zp": zero, "steps": float(F32(1) / F32(out_scale))}
            wide = {"in": x, "table": wide_tables(scale)}
            yield make_case("softmax_s16w", wide, p, out={"out": (shape, DType.S16)})
    for scale, out_scale in ((0.206, 1 / 256), (0.004, 1 / 255)):  # quotients take two steps
        for n in (3, 4, 9, 15, 16, 17, 31, 33, 64):
            x = RNG.integers(-128, 127, (3, n), endpoint=True).astype(np.int8)
            p = {"outer": 3, "n": n, "inner": 1, "out_zp": -128, "steps": float(softmax_steps(out_scale))}
            arrays = {"in": x, "table": softmax_exp_table(scale, 64)}
            yield make_case("softmax_s8", arrays, p, out={"out": (x.shape, DType.S8)})
    for scale in (0.3, 0.5, 0.55, 0.9, 5.0):  # ever more entries that are denormal or 0
        x = np.arange(128, -128, -1, dtype=np.int64).clip(-128, 127).astype(np.int8)[None]
        table = exp_factors(scale, x.size)
        assert table is not None
        p = {"outer": 1, "n": x.size, "inner": 1, "out_zp": -128, "steps": float(softmax_steps(1e-6))}
        yield make_case("softmax_s8p", {"in": x, "table": table}, p, out={"out": (x.shape, DType.S8)})
        for kind in (DType.F32, DType.F64):
            for log in (0, 1):
                x = (RNG.normal(size=shape) * 8).astype(kind.numpy)
                yield make_case(
                    f"softmax_{kind.value}", {"in": x}, {**dims, "log": log}, out={"out": (shape, kind)},
                    rtol=1e-5, atol=1e-6, why=libm,
                )  # fmt: skip
