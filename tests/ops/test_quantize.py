"""QuantizeLinear, DequantizeLinear, Requantize, FlipSign: against the formulas, and their kernels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from glowc.graph.numerics import F32, dequantize, lut_s8, quantize
from glowc.graph.types import DType, QuantParams, quant
from glowc.ops.base import OpError
from tests.kernels.case import Case, make_case
from tests.ops.one_node import check, graph_of, onnx_run, reference

RNG = np.random.default_rng(3)
KINDS = [DType.S8, DType.U8, DType.S16, DType.U16]
REALS = np.asarray([0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 126.5, 127.5, -128.5, 1e9, -1e9, 3e38, np.inf, -np.inf, np.nan,
                    40000.5, -32768.5], np.float32)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_quantize_equals_onnx(kind: DType) -> None:
    x = np.concatenate([REALS[:10], RNG.normal(0, 3, 100).astype(np.float32)])
    for zero in (kind.qmin, kind.qmax, (kind.qmin + kind.qmax) // 2):
        scale = F32(0.031)
        (y,) = check("QuantizeLinear", [x], {"dtype": kind.value}, out_quants=[quant(scale, zero)])
        (want,) = onnx_run("QuantizeLinear", [x, scale.reshape(()), np.asarray(zero, kind.numpy)])
        np.testing.assert_array_equal(y, want)
        (back,) = check("DequantizeLinear", [y], quants=[quant(scale, zero)])
        np.testing.assert_array_equal(back, onnx_run("DequantizeLinear", [y, scale.reshape(()), y.dtype.type(zero)])[0])


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_per_axis(axis: int) -> None:
    x = RNG.normal(0, 3, (3, 4, 5)).astype(np.float32)
    n = x.shape[axis]
    q = QuantParams(tuple(float(F32(0.02 * (i + 1))) for i in range(n)), tuple(range(-n, 0)), axis)
    (y,) = check("QuantizeLinear", [x], {"dtype": "s8"}, out_quants=[q])
    np.testing.assert_array_equal(y, quantize(x, q, DType.S8))
    (z,) = check("DequantizeLinear", [y], quants=[q])
    np.testing.assert_array_equal(z, dequantize(y, q))


def test_nan_becomes_the_lowest_code() -> None:
    (y,) = check("QuantizeLinear", [np.asarray([np.nan], np.float32)], {"dtype": "s8"}, out_quants=[quant(1, 5)])
    assert y.tolist() == [-128]


def test_bias_codes_are_dequantised_exactly() -> None:
    x = np.asarray([-(2**31), 2**31 - 1, 2**24 + 1, 0], np.int32)
    (y,) = check("DequantizeLinear", [x], quants=[quant(0.001, 0)])
    np.testing.assert_array_equal(y, x.astype(F32) * F32(0.001))


@pytest.mark.parametrize("to", KINDS)
@pytest.mark.parametrize("source", KINDS)
def test_requantize(source: DType, to: DType) -> None:
    x = RNG.integers(source.qmin, source.qmax, 500, endpoint=True).astype(source.numpy)
    qx, qy = quant(0.013, source.qmin + 3), quant(0.021, to.qmax - 9)
    (y,) = check("Requantize", [x], {"dtype": to.value}, quants=[qx], out_quants=[qy])
    real = (x.astype(np.int64) - (source.qmin + 3)).astype(F32) * F32(0.013)
    np.testing.assert_array_equal(y, np.clip(np.rint(real / F32(0.021)) + to.qmax - 9, to.qmin, to.qmax))


def test_flip_sign_is_its_own_inverse() -> None:
    for dtype, other in (("uint8", "int8"), ("uint16", "int16")):
        x = np.asarray([0, 1, 127, 128, 255], dtype)
        (y,) = check("FlipSign", [x])
        np.testing.assert_array_equal(y.astype(np.int64), x.astype(np.int64) - np.iinfo(other).max - 1)
        np.testing.assert_array_equal(check("FlipSign", [y])[0], x)


def test_assign_quant_keeps_the_bytes() -> None:
    x = np.arange(-4, 4, dtype=np.int8)
    np.testing.assert_array_equal(check("AssignQuant", [x], out_quants=[quant(0.5, 1)])[0], x)


def test_quantising_integers_is_an_error() -> None:
    with pytest.raises(OpError, match=r"s32\[2\]"):
        graph_of("QuantizeLinear", [np.zeros(2, np.int32)], out_quants=[quant(1, 0)])


def test_the_default_kind_is_u8() -> None:
    graph = graph_of("QuantizeLinear", [REALS], out_quants=[quant(1, 128)])
    assert reference(graph, [REALS])[0].dtype == np.uint8


def kernel_cases() -> Iterator[Case]:
    for n in (1, 7, 16, 33, 256, 301):
        x = RNG.integers(-128, 127, n, endpoint=True).astype(np.int8)
        x[:2] = [-128, 127][: x[:2].size]
        lut = lut_s8(lambda v: v * v, quant(0.1, 3), quant(0.2, -100))
        yield make_case("lut_s8", {"in": x, "lut": lut}, {"n": n}, out={"out": ((n,), DType.S8)})
        for a, b in ((DType.S8, DType.U8), (DType.U8, DType.S8), (DType.S16, DType.U16), (DType.U16, DType.S16)):
            codes = RNG.integers(a.qmin, a.qmax, n, endpoint=True).astype(a.numpy)
            yield make_case("flip_sign", {"in": codes}, {"n": n}, out={"out": ((n,), b)})
    codes_of = {k: np.asarray([k.qmin, k.qmax, 0, 1, 100, k.qmin + 1, 17], k.numpy) for k in (*KINDS, DType.S32)}
    for kind, codes in codes_of.items():
        for zero in (kind.qmin, kind.qmax, 7) if kind != DType.S32 else (0, 5):
            reals, p = REALS, {"n": REALS.size, "zp": zero, "scale": 0.037}
            yield make_case("quantize", {"in": reals}, p, out={"out": (reals.shape, kind)})
            p = {"n": codes.size, "zp": zero, "scale": 0.037}
            yield make_case("dequantize", {"in": codes}, p, out={"out": (codes.shape, DType.F32)})
            for to in codes_of:
                q = {"n": codes.size, "in_zp": zero, "out_zp": 0 if to == DType.S32 else to.qmax, "in_scale": 0.037}
                case = {"in": codes}, {**q, "out_scale": 0.0219}
                yield make_case("requantize", *case, out={"out": (codes.shape, to)})
        for scale in (0.037, 0.25, 1.0, 3e-5, 700.0, 1e-20):
            codes_and_half = np.float32(scale) * np.arange(-300, 300, 0.5, np.float32)
            near = np.concatenate([np.nextafter(codes_and_half, np.float32(end)) for end in (-1e38, 1e38)])
            reals = np.concatenate((codes_and_half, near, np.float32(min(scale, 1.0)) * REALS))
            p = {"n": reals.size, "zp": kind.qmin + 9, "scale": scale}
            yield make_case("quantize", {"in": reals}, p, out={"out": (reals.shape, kind)}, name="near ties")
        scale, zp = np.asarray([0.5, 0.031, 3.0], np.float32), np.asarray([0, 1, kind.qmax // 2], np.int32)
        for outer, inner in ((1, 1), (2, 1), (1, 5), (3, 4)):
            dims, shape = {"outer": outer, "channels": 3, "inner": inner}, (outer, 3, inner)
            reals = RNG.normal(0, 50, shape).astype(np.float32)
            ops = {"in": reals, "scale": scale, "zp": zp}
            yield make_case("quantize_axis", ops, dims, out={"out": (shape, kind)})
            ops = {"in": np.resize(codes, shape), "scale": scale, "zp": zp}
            yield make_case("dequantize_axis", ops, dims, out={"out": (shape, DType.F32)})
    yield from _width_cases()


def _width_cases() -> Iterator[Case]:
    """int8 to int16 and back: scales with a form in integers and without, zero points, all codes, lengths."""
    up, down = (DType.S8, DType.S16), (DType.S16, DType.S8)
    for number, (kinds, from_zp, to_zp, in_scale, out_scale) in enumerate((
        (up, -128, 0, 0.0235, 0.0235 / 128), (up, 3, 0, 0.05, 3.1e-4), (up, 127, -700, 0.01, 1.7e-4),
        (up, 0, 5, 1.0, 0.75), (up, -7, 32767, 0.3, 1e-3), (up, 0, 0, 2.0, 1e-9), (up, 4, 0, 1e-6, 1.0),
        (up, -128, 0, 1.0, 1 / 256), (down, 0, -128, 2.1e-4, 0.0271), (down, 0, 3, 0.0235 / 128, 0.0235),
        (down, 900, 127, 1e-4, 0.02), (down, 0, 0, 1e-5, 1.0), (down, -32768, 0, 3e-4, 0.03), (down, 0, -5, 1.0, 1.0),
        (down, 0, 9, 0.5, 1e-9), (down, 0, 0, 1 / 256, 1.0),
    )):  # fmt: skip
        p = {"in_zp": from_zp, "out_zp": to_zp, "in_scale": in_scale, "out_scale": out_scale}
        codes = np.arange(kinds[0].qmin, kinds[0].qmax + 1).astype(kinds[0].numpy)
        for n in (codes.size, *((1, 3, 4, 7, 8, 9, 15, 17, 33) if number in (1, 8) else ())):
            x = RNG.permutation(codes)[:n]
            yield make_case("requantize", {"in": x}, {**p, "n": n}, out={"out": ((n,), kinds[1])}, name="widths")
