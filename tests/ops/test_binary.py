"""Binary operators: floats against onnx.reference, int8 against the formulas and onnxruntime, the kernels."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from glowc.graph.numerics import F32
from glowc.graph.types import DType, QuantParams, quant
from glowc.ops.base import OpError
from glowc.ops.binary import TABLE, expression
from glowc.ops.strided import broadcast_strides, collapse
from glowc.program.ir import ParamValue
from tests.conftest import require_module
from tests.kernels.case import Case, make_case
from tests.kernels.params import axis_params
from tests.ops.one_node import check, graph_of, onnx_run

RNG = np.random.default_rng(2)
SHAPES = [
    ((2, 3, 4), (2, 3, 4)), ((2, 3, 4), ()), ((1, 4, 1), (3, 1, 5)), ((3, 4, 5), (4, 1)), ((5,), (2, 1, 5)),
    ((2, 3, 4, 5), (1, 3, 1, 1)), ((1,), (1,)),
]  # fmt: skip


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div", "Min", "Max", "Pow"])
@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_float_equals_onnx(op: str, shapes: tuple[tuple[int, ...], tuple[int, ...]], dtype: str) -> None:
    a, b = (RNG.uniform(0.25, 4, s).astype(dtype) for s in shapes)
    (y,) = check(op, [a, b])
    np.testing.assert_allclose(y, onnx_run(op, [a, b])[0], rtol=1e-6)


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div", "Min", "Max"])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_integers_equal_onnx(op: str, dtype: str) -> None:
    a, b = RNG.integers(-40, 40, (5, 7)).astype(dtype), RNG.integers(1, 9, (7,)).astype(dtype)
    (y,) = check(op, [a, b])
    if op != "Div":
        np.testing.assert_array_equal(y, onnx_run(op, [a, b])[0])
    else:
        np.testing.assert_array_equal(y, np.trunc(a / b))


def test_division_of_integers_by_zero_and_minus_one_is_defined() -> None:
    low = -(2**31)
    a, b = np.asarray([7, -7, low, low, 9], np.int32), np.asarray([0, 2, -1, 1, -1], np.int32)
    assert check("Div", [a, b])[0].tolist() == [0, -3, low, low, -9]


@pytest.mark.parametrize("op", ["Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_comparisons_give_bool(op: str, dtype: str) -> None:
    a, b = RNG.integers(-2, 3, (4, 5)).astype(dtype), RNG.integers(-2, 3, (5,)).astype(dtype)
    (y,) = check(op, [a, b])
    np.testing.assert_array_equal(y, onnx_run(op, [a, b])[0])


@pytest.mark.parametrize("op", ["And", "Or", "Xor"])
def test_logic(op: str) -> None:
    a, b = np.asarray([True, True, False, False]), np.asarray([True, False, True, False])
    np.testing.assert_array_equal(check(op, [a, b])[0], onnx_run(op, [a, b])[0])


@pytest.mark.parametrize("fmod", [0, 1])
@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_mod(fmod: int, dtype: str) -> None:
    a, b = RNG.integers(-40, 40, 60).astype(dtype), RNG.choice([-7, -3, -1, 1, 4], 60).astype(dtype)
    (y,) = check("Mod", [a, b], {"fmod": fmod})
    np.testing.assert_array_equal(y, np.fmod(a, b) if fmod else np.mod(a, b))


def test_floor_division_rounds_down() -> None:
    a, b = np.asarray([7, -7, 7, -7, 5], np.int32), np.asarray([2, 2, -2, -2, 0], np.int32)
    assert check("FloorDiv", [a, b])[0].tolist() == [3, -4, -4, 3, 0]


def test_prelu_and_where() -> None:
    x, slope = RNG.normal(size=(2, 3, 4)).astype(np.float32), np.asarray([[0.1], [0.2], [0.3]], np.float32)
    np.testing.assert_allclose(check("PRelu", [x, slope])[0], np.where(x < 0, x * slope, x))
    for shape in ((2, 3, 4), (3, 1), ()):
        pick = RNG.integers(0, 2, shape).astype(bool)
        (y,) = check("Where", [pick, x, -x[:1]])
        np.testing.assert_array_equal(y, np.where(pick, x, -x[:1]))


def test_where_of_codes_brings_both_to_the_output() -> None:
    pick, q = np.asarray([True, False, True, False]), quant(0.5, 3)
    a, b = np.asarray([1, 2, 3, 4], np.int8), np.asarray([10, 20, 30, 40], np.int8)
    (y,) = check("Where", [pick, a, b], quants=[None, q, quant(0.25, 0)], out_quants=[q])
    assert y.tolist() == [1, 13, 3, 23]


@pytest.mark.parametrize("op", ["Min", "Max"])
def test_three_inputs(op: str) -> None:
    xs = [RNG.normal(size=s).astype(np.float32) for s in ((3, 4), (4,), (3, 1))]
    np.testing.assert_array_equal(check(op, xs)[0], onnx_run(op, xs)[0])


def test_square_is_a_product() -> None:
    x = RNG.normal(size=9).astype(np.float32)
    np.testing.assert_array_equal(check("Pow", [x, np.float32(2).reshape(())], consts=[1])[0], x * x)


def test_fused_clamp() -> None:
    a, b = np.asarray([-3, 0, 3], np.float32), np.asarray([1, 1, 1], np.float32)
    assert check("Add", [a, b], {"act_min": 0.0})[0].tolist() == [0, 1, 4]
    qs, q = [quant(1, 0), quant(1, 0)], quant(0.5, -128)
    codes = [a.astype(np.int8), b.astype(np.int8)]
    y = check("Sub", codes, {"act_min": 0.0, "act_max": 1.0}, quants=qs, out_quants=[q])
    assert y[0].tolist() == [-128, -128, -126]


def all_pairs(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    codes = np.arange(256).astype(dtype) if dtype == "uint8" else np.arange(-128, 128).astype(dtype)
    return np.repeat(codes, 256), np.tile(codes, 256)


@pytest.mark.parametrize("zeros", [(-128, 127, 0), (127, -128, -128), (3, -5, 127)])
def test_int8_difference_is_the_formula(zeros: tuple[int, int, int]) -> None:
    a, b = all_pairs("int8")
    sa, sb, sy = F32(0.0123), F32(0.0456), F32(0.051)
    qs = [quant(s, z) for s, z in zip((sa, sb, sy), zeros, strict=True)]
    (y,) = check("Sub", [a, b], quants=qs[:2], out_quants=qs[2:])
    left, right = (a.astype(F32) - zeros[0]) * sa, (b.astype(F32) - zeros[1]) * sb
    real = (left - right) / sy
    np.testing.assert_array_equal(y, np.clip(np.rint(real) + zeros[2], -128, 127))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_int8_product_equals_onnxruntime(dtype: str) -> None:
    ort = require_module("onnxruntime")
    from onnx import helper

    a, b = all_pairs(dtype)
    low = 0 if dtype == "uint8" else -128
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    for _ in range(8):
        sa, sb = (F32(s) for s in RNG.uniform(0.001, 0.1, 2))
        sy = F32(sa * sb * RNG.uniform(10, 260))
        za, zb, zy = (int(z) for z in RNG.integers(low, low + 256, 3))
        names = ["a", "sa", "za", "b", "sb", "zb", "sy", "zy"]
        held = [("sa", 1, sa), ("za", kind, za), ("sb", 1, sb), ("zb", kind, zb), ("sy", 1, sy), ("zy", kind, zy)]
        graph = helper.make_graph(
            [helper.make_node("QLinearMul", names, ["y"], domain="com.microsoft")], "g",
            [helper.make_tensor_value_info(n, kind, [65536]) for n in "ab"],
            [helper.make_tensor_value_info("y", kind, [65536])],
            [helper.make_tensor(n, t, [], [v]) for n, t, v in held],
        )  # fmt: skip
        sets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=sets, ir_version=8)
        session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        (want,) = session.run(None, {"a": a, "b": b})
        (y,) = check_codes("Mul", a, b, [quant(sa, za), quant(sb, zb)], quant(sy, zy))
        np.testing.assert_array_equal(y, want)


def check_codes(op: str, a: np.ndarray, b: np.ndarray, qs: list[QuantParams], qy: QuantParams) -> list[np.ndarray]:
    """Unsigned codes are computed as signed ones, 128 less, that are rounded as the unsigned ones."""
    if a.dtype == np.int8:
        return check(op, [a, b], quants=qs, out_quants=[qy])
    less = [replace(q, zero_point=(q.zero_point[0] - 128,)) for q in (*qs, qy)]
    a, b = (x.view(np.int8) ^ np.int8(-128) for x in (a, b))
    (y,) = check(op, [a, b], {"unsigned": 1}, quants=less[:2], out_quants=less[2:])
    return [(y ^ np.int8(-128)).view(np.uint8)]


def test_mixed_element_kinds_are_an_error() -> None:
    with pytest.raises(OpError, match=r"f32\[2\], s32\[2\]"):
        graph_of("Add", [np.zeros(2, np.float32), np.zeros(2, np.int32)])


def access(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[dict[str, ParamValue], tuple[int, ...]]:
    out = np.broadcast_shapes(a, b)
    dims, (sa, sb) = collapse(out, broadcast_strides(a, out), broadcast_strides(b, out))
    p: dict[str, ParamValue] = {"rank": len(dims)}
    return p | axis_params("d", dims, 1) | axis_params("a", sa, 0) | axis_params("b", sb, 0), out


def kernel_cases() -> Iterator[Case]:
    six = ((2, 1, 2, 1, 2, 3), (1, 2, 1, 3, 1, 3))
    rows = (((3, 16), (16,)), ((13,), (4, 13)), ((5, 1, 19), (5, 2, 19)))
    for shapes in [*SHAPES, *(((n,), (n,)) for n in (2, 7, 16, 17)), six, *rows]:
        p, out = access(*shapes)
        for kind in (DType.S8, DType.S16):
            edge = [kind.qmin, kind.qmax, 0]
            for za, zb, zy in ((kind.qmin, kind.qmax, 0), (0, kind.qmin, kind.qmax), (5, -3, kind.qmin)):
                a, b = (RNG.integers(kind.qmin, kind.qmax, s, endpoint=True).astype(kind.numpy) for s in shapes)
                a.reshape(-1)[:3], b.reshape(-1)[:3] = edge[: a.size], edge[::-1][: b.size]
                q: dict[str, ParamValue] = {"a_zp": za, "b_zp": zb, "out_zp": zy}
                q |= {"out_min": max(kind.qmin, zy - 90), "out_max": kind.qmax}
                for sign in "+-":
                    s = {"a_scale": 0.0371, "b_scale": 0.011, "out_scale": 0.0402, "sign": sign}
                    yield make_case(f"add_{kind.value}", {"a": a, "b": b}, p | q | s, out={"out": (out, kind)})
                scale = 0.0081 if kind == DType.S8 else 0.00003
                m = {**p, **q, "scale": scale}
                yield make_case(f"mul_{kind.value}", {"a": a, "b": b}, m, out={"out": (out, kind)})
    yield from plain_cases()
    yield from centred_cases()
    yield from apart_cases()
    p, _ = access((65536,), (65536,))
    a, b = (v.reshape(-1).astype(np.int8) for v in np.meshgrid(np.arange(-128, 128), np.arange(-128, 128)))
    for sign in "+-":
        params: dict[str, ParamValue] = {
            **p, "a_zp": -128, "b_zp": 4, "out_zp": -128, "out_min": -128, "out_max": 127, "sign": sign,
            "a_scale": 0.023528477, "b_scale": 0.047917310, "out_scale": 0.035710983,
        }  # fmt: skip
        yield make_case("add_s8", {"a": a, "b": b}, params, out={"out": ((65536,), DType.S8)}, name="all pairs")


def centred_cases() -> Iterator[Case]:
    """Sums and products of int16 codes around 0: ties, both ends of the codes, sums that cancel."""
    for shapes in (((n,), (n,)) for n in (1, 4, 7, 16, 21, 31, 32, 50)):
        yield from centred_pairs(*shapes)
    yield from centred_pairs((3, 17), (17,))
    yield from centred_pairs((9,), (4, 9))


def centred_pairs(*shapes: tuple[int, ...]) -> Iterator[Case]:
    p, out = access(*shapes)
    a, b = (RNG.integers(-32768, 32768, s).astype(np.int16) for s in shapes)
    a.reshape(-1)[:2], b.reshape(-1)[:2] = (-32768, 32767)[: a.size], (-32768, 32767)[: b.size]
    q: dict[str, ParamValue] = {"a_zp": 0, "b_zp": 0, "out_zp": 0, "out_min": -32768, "out_max": 32767}
    for scales, sign, low in (
        ((0.5, 0.5, 1.0), "+", -32768),
        ((3e-5, 2.9e-5, 7.7e-6), "-", 0),
        ((2e-4, 1e-9, 3e-4), "+", -9),
    ):
        s = dict(zip(("a_scale", "b_scale", "out_scale"), scales, strict=True))
        yield make_case(
            "add_s16", {"a": a, "b": b}, {**p, **q, **s, "sign": sign, "out_min": low}, out={"out": (out, DType.S16)}
        )
        m = {**p, **q, "scale": scales[2] / 30, "out_min": low}
        yield make_case("mul_s16", {"a": a, "b": b}, m, out={"out": (out, DType.S16)})


def apart_cases() -> Iterator[Case]:
    """Sums of int16 codes that are not around 0, also with scales on both sides of those whose quotients take steps."""
    points = ((814, -4736, -1517), (-32768, 32767, 32767), (32767, -32768, -32768))
    for n, (za, zb, zy) in zip((33, 48, 95), points, strict=True):
        p, out = access((n,), (n,))
        a, b = (RNG.integers(-32768, 32768, n).astype(np.int16) for _ in range(2))
        for scale, low in ((0.7, -32768), (2.0**-40, 5), (2.0**-41, -32768), (1e-5, -32768)):
            s = {"a_scale": 0.5, "b_scale": 0.3, "out_scale": scale, "sign": "-"}
            q = {"a_zp": za, "b_zp": zb, "out_zp": zy, "out_min": low, "out_max": 32767}
            yield make_case("add_s16", {"a": a, "b": b}, {**p, **q, **s}, out={"out": (out, DType.S16)})


def plain_cases() -> Iterator[Case]:
    for shapes in (SHAPES[0], SHAPES[2], SHAPES[1]):
        p, out = access(*shapes)
        for kind in (DType.F32, DType.F64, DType.S32, DType.S64, DType.U8, DType.BOOL):
            for op, entry in TABLE.items():
                try:
                    expr = expression(op, kind)
                except OpError:
                    continue
                if (kind == DType.BOOL) != (op in ("and", "or", "xor")) or (op == "pow" and not kind.is_float):
                    continue
                a, b = (operand(s, kind) for s in shapes)
                to = DType.BOOL if entry.boolean else kind
                exact = op not in ("pow", "fmod", "mod")
                for clamp in (0, 1) if kind.is_float and op == "add" else (0,):
                    q = {"op": op, "expr": expr, "clamp": clamp, "act_min": -0.5, "act_max": math.inf}
                    yield make_case(
                        "binary", {"a": a, "b": b}, p | q, out={"out": (out, to)},
                        rtol=0 if exact else 1e-5, why="" if exact else "libm",
                    )  # fmt: skip


def operand(shape: tuple[int, ...], kind: DType) -> np.ndarray:
    if kind == DType.BOOL:
        return RNG.integers(0, 2, shape).astype(bool)
    if kind.is_float:
        return RNG.uniform(0.1, 3, shape).astype(kind.numpy)
    x = RNG.choice([kind.qmin, kind.qmax, 0, 1, 3, 7, -1 if kind.is_signed else 2, 100], shape)
    return np.asarray(x, dtype=kind.numpy)
