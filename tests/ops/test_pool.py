"""MaxPool and AveragePool: against onnx.reference and the integer formula; the kernels with rings and row ranges."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pytest

from glowc.graph.attrs import AttrValue
from glowc.graph.numerics import F32
from glowc.graph.types import DType, quant
from glowc.kernels.registry import variants_of
from glowc.ops.base import OpError
from glowc.program.ir import Instr, ParamValue
from tests.kernels.case import Case, make_case
from tests.ops.one_node import check, graph_of, onnx_run, reference

RNG = np.random.default_rng(4)
GRID: list[dict[str, AttrValue]] = [
    {"kernel_shape": (2, 2), "strides": (2, 2)},
    {"kernel_shape": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1)},
    {"kernel_shape": (3, 2), "strides": (1, 2), "pads": (0, 1, 1, 0)},
    {"kernel_shape": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1), "ceil_mode": 1},
    {"kernel_shape": (2, 2), "strides": (3, 3), "ceil_mode": 1},
    {"kernel_shape": (1, 1)},
    {"kernel_shape": (7, 8)},
    {"kernel_shape": (2, 2), "dilations": (2, 3), "strides": (1, 1)},
]


def nhwc(op: str, x: np.ndarray, attrs: Mapping[str, AttrValue], **more: object) -> np.ndarray:
    """Evaluate in NCHW, and compare the lowered NHWC form with it."""
    graph = graph_of(op, [x], attrs, **more)  # type: ignore[arg-type]
    (want,) = reference(graph, [x])
    (got,) = check(op, [np.ascontiguousarray(x.transpose(0, 2, 3, 1))], {**attrs, "layout": "nhwc"}, **more)  # type: ignore[arg-type]
    np.testing.assert_array_equal(got.transpose(0, 3, 1, 2), want)
    return want


@pytest.mark.parametrize("attrs", GRID)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_max_pool_equals_onnx(attrs: dict[str, AttrValue], dtype: str) -> None:
    x = RNG.normal(size=(2, 3, 7, 8)).astype(dtype)
    y = nhwc("MaxPool", x, attrs)
    np.testing.assert_array_equal(y, onnx_run("MaxPool", [x], attrs)[0])


def window_sums(x: np.ndarray, attrs: Mapping[str, AttrValue], include: bool) -> tuple[np.ndarray, np.ndarray]:
    """Plain loops: sum and count; pad cells count when `include`, cells after the padding never."""
    (kh, kw), pads = attrs["kernel_shape"], attrs.get("pads", (0, 0, 0, 0))  # type: ignore[misc]
    (sh, sw), (dh, dw) = attrs.get("strides", (1, 1)), attrs.get("dilations", (1, 1))  # type: ignore[misc]
    n, c, h, w = x.shape
    shape = graph_of("AveragePool", [x], attrs).types["y0"].shape
    sums, counts = np.zeros(shape, np.float64), np.ones(shape, np.float64)
    for oy, ox in itertools.product(range(shape[2]), range(shape[3])):
        total, count = np.zeros((n, c)), 0
        for ky, kx in itertools.product(range(kh), range(kw)):  # type: ignore[arg-type]
            r, q = oy * sh + ky * dh - pads[0], ox * sw + kx * dw - pads[1]  # type: ignore[operator,index]
            inside = 0 <= r < h and 0 <= q < w
            if inside:
                total += x[:, :, r, q]
            count += inside or (include and -pads[0] <= r < h + pads[2] and -pads[1] <= q < w + pads[3])  # type: ignore[index]
        sums[:, :, oy, ox], counts[:, :, oy, ox] = total, max(count, 1)
    return sums, counts


@pytest.mark.parametrize("attrs", GRID)
@pytest.mark.parametrize("include", [0, 1])
def test_average_pool(attrs: dict[str, AttrValue], include: int) -> None:
    x = RNG.normal(size=(2, 3, 7, 8)).astype(np.float32)
    y = nhwc("AveragePool", x, {**attrs, "count_include_pad": include})
    total, count = window_sums(x, attrs, include == 1)
    np.testing.assert_allclose(y, total / count, rtol=1e-5, atol=1e-6)
    if "ceil_mode" not in attrs:
        want = onnx_run("AveragePool", [x], {**attrs, "count_include_pad": include})[0]
        np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
def test_one_axis(op: str) -> None:
    x = RNG.normal(size=(2, 3, 9)).astype(np.float32)
    attrs: dict[str, AttrValue] = {"kernel_shape": (3,), "strides": (2,), "pads": (1, 0)}
    want = onnx_run(op, [x], attrs)[0]
    (y,) = check(op, [np.ascontiguousarray(x.transpose(0, 2, 1))], {**attrs, "layout": "nhwc"})
    np.testing.assert_allclose(y.transpose(0, 2, 1), want, rtol=1e-6)


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "VALID"])
def test_auto_pad(auto_pad: str) -> None:
    x = RNG.normal(size=(1, 2, 7, 6)).astype(np.float32)
    attrs: dict[str, AttrValue] = {"kernel_shape": (3, 2), "strides": (2, 2), "auto_pad": auto_pad}
    y = nhwc("MaxPool", x, attrs)
    np.testing.assert_array_equal(y, onnx_run("MaxPool", [x], attrs)[0])
    if auto_pad == "SAME_UPPER":  # lower is upper seen in a mirror
        mirrored = nhwc("MaxPool", np.ascontiguousarray(x[:, :, ::-1, ::-1]), {**attrs, "auto_pad": "SAME_LOWER"})
        assert mirrored.shape == y.shape
        one: dict[str, AttrValue] = {**attrs, "strides": (1, 1)}
        upper = nhwc("MaxPool", x, one)
        lower = nhwc("MaxPool", np.ascontiguousarray(x[:, :, ::-1, ::-1]), {**one, "auto_pad": "SAME_LOWER"})
        np.testing.assert_array_equal(lower[:, :, ::-1, ::-1], upper)


@pytest.mark.parametrize("zeros", [(-128, 127), (127, -128), (3, -7)])
@pytest.mark.parametrize("attrs", GRID[:5])
def test_int8_average_is_the_formula(attrs: dict[str, AttrValue], zeros: tuple[int, int]) -> None:
    x = RNG.integers(-128, 127, (1, 3, 7, 8), endpoint=True).astype(np.int8)
    sx, sy = F32(0.021), F32(0.0173)
    y = nhwc("AveragePool", x, attrs, quants=[quant(sx, zeros[0])], out_quants=[quant(sy, zeros[1])])
    total, count = window_sums(x.astype(np.float64) - zeros[0], attrs, False)
    real = total.astype(F32) * (sx / (sy * count.astype(F32)))
    np.testing.assert_array_equal(y, np.clip(np.rint(real) + zeros[1], -128, 127))


def test_int8_maximum_of_another_output_quantisation() -> None:
    x, qx, qy = RNG.integers(-128, 127, (1, 2, 4, 4)).astype(np.int8), quant(0.1, 3), quant(0.07, -20)
    y = nhwc("MaxPool", x, GRID[0], quants=[qx], out_quants=[qy])
    best = x.reshape(1, 2, 2, 2, 2, 2).max((3, 5)).astype(F32)
    np.testing.assert_array_equal(y, np.clip(np.rint((best - 3) * F32(0.1) / F32(0.07)) - 20, -128, 127))


def test_window_larger_than_the_input_is_an_error() -> None:
    with pytest.raises(OpError, match=r"\[5, 5\] is larger than the padded input f32\[1,1,3,3\]"):
        graph_of("MaxPool", [np.zeros((1, 1, 3, 3), np.float32)], {"kernel_shape": (5, 5)})


@pytest.mark.parametrize(("taps", "isas"), [(1 << 15, {"ref", "dsp", "mve", "a64", "a32"}), ((1 << 15) + 1, {"ref"})])
def test_averages_whose_sums_leave_32_bits_have_no_vectors(taps: int, isas: set[str]) -> None:
    case = next(c for c in kernel_cases() if c.instr.kernel == "avg_pool_s16" and c.instr.int_("in_c") == 8)
    pool = replace(case.instr, params={**case.instr.params, "k_h": 1, "k_w": taps})
    mean = Instr("reduce_mean_s16", "ref", (), {"outer": 1, "n": taps, "inner": 8})
    for instr in (pool, mean):
        assert {v.isa for v in variants_of(instr.kernel) if v.accepts(instr)} == isas


def geometry(in_h: int, in_w: int, c: int, k: int, stride: int, pad: int, dil: int, ring: int) -> dict[str, ParamValue]:
    out_h, out_w = ((n + 2 * pad - dil * (k - 1) - 1) // stride + 1 for n in (in_h, in_w))
    return {
        "batch": 1, "in_h": in_h, "in_w": in_w, "in_c": c, "out_h": out_h, "out_w": out_w, "out_c": c,
        "in_batch": ring * in_w * c, "in_row": in_w * c, "in_col": c, "in_ch": 1, "in_ring": ring,
        "out_batch": out_h * out_w * c, "out_row": out_w * c, "out_ring": out_h, "descending": 0, "k_h": k, "k_w": k,
        "stride_h": stride, "stride_w": stride, "dil_h": dil, "dil_w": dil, "pad_top": pad, "pad_left": pad,
        "pad_bottom": pad, "pad_right": pad,
    }  # fmt: skip


SHAPES = [
    (1, 1, 1, 1, 1, 0, 1), (5, 6, 3, 2, 2, 0, 1), (7, 5, 17, 3, 2, 1, 1), (6, 6, 16, 3, 1, 1, 1), (8, 9, 4, 3, 1, 2, 2),
    (4, 4, 5, 4, 4, 0, 1), (3, 4, 2, 3, 3, 2, 1), (5, 5, 1, 2, 1, 1, 1),
]  # fmt: skip


def kernel_cases() -> Iterator[Case]:
    for kind in (DType.S8, DType.S16, DType.F32, DType.F64):
        for shape in SHAPES:
            p = geometry(*shape, ring=shape[0])
            yield from pool_cases(kind, p, (0, int(p["out_h"])))
            yield from pool_cases(kind, {**p, "descending": 1}, (0, int(p["out_h"])))
        ring = geometry(9, 5, 3, 3, 1, 1, 1, ring=4)  # rows 3..6 of the input are in the ring
        yield from pool_cases(kind, {**ring, "out_ring": 3}, (4, 6))
        yield from pool_cases(kind, {**ring, "out_ring": 3, "descending": 1}, (4, 6))
        for channels in (7, 8, 11, 16, 21, 64):
            yield from pool_cases(kind, geometry(5, 5, channels, 5, 1, 0, 1, ring=5), (0, 1))
        for shape in ((6, 7, 4, 2, 2, 0, 1), (6, 6, 7, 2, 1, 0, 2), (7, 9, 18, 3, 2, 0, 1), (5, 4, 11, 1, 2, 0, 1)):
            p = geometry(*shape, ring=shape[0])
            yield from pool_cases(kind, p, (0, int(p["out_h"])))
        planar = geometry(5, 6, 3, 2, 2, 0, 1, ring=5) | {"in_row": 6, "in_col": 1, "in_ch": 30}
        yield from pool_cases(kind, planar, (0, 2))
        if kind is DType.S16:
            yield from saturated_cases()
        two = geometry(4, 4, 2, 2, 2, 0, 1, ring=4) | {"batch": 2}
        yield from pool_cases(kind, two, (0, 2))


def saturated_cases() -> Iterator[Case]:
    """Codes of 16 bits at one end, whose sums less the other end need more than 24 bits; with all tails of channels."""
    for c in (8, 9, 13, 20):
        for shape in ((20, 15, c, 14, 3, 0, 1), (7, 6, c, 3, 2, 1, 1), (9, 8, c, 2, 1, 1, 3)):
            p = geometry(*shape, ring=shape[0])
            yield from pool_cases(DType.S16, p, (0, int(p["out_h"])), (-32768, 32767)[c % 2])


def pool_cases(kind: DType, p: dict[str, ParamValue], rows: tuple[int, int], code: int | None = None) -> Iterator[Case]:
    shape = (int(p["batch"]), int(p["in_ring"]), int(p["in_w"]), int(p["in_c"]))
    out = {"out": ((int(p["batch"]) * int(p["out_batch"]),), kind)}
    if kind.is_float:
        x = RNG.normal(size=shape).astype(kind.numpy)
        yield make_case(f"max_pool_{kind.value}", {"in": x}, p, rows=rows, out=out)
        for include in (0, 1):
            q = {**p, "include_pad": include, "act_min": -0.25, "act_max": math.inf}
            yield make_case(f"avg_pool_{kind.value}", {"in": x}, q, rows=rows, out=out)
        return
    x = RNG.integers(*((kind.qmin, kind.qmax) if code is None else (code, code)), shape, endpoint=True)
    x = x.astype(kind.numpy)
    yield make_case(f"max_pool_{kind.value}", {"in": x}, p, rows=rows, out=out)
    centred = ((0, 0, 0),) if kind is DType.S16 else ()  # as the quantiser's own are
    for include, in_zp, out_zp in ((0, kind.qmin, kind.qmax), (1, kind.qmax, kind.qmin), (1, 5, -3), *centred):
        q = {**p, "include_pad": include, "in_zp": in_zp, "out_zp": out_zp, "in_scale": 0.031, "out_scale": 0.0272}
        q |= {"out_min": max(kind.qmin, out_zp - 100), "out_max": kind.qmax}
        yield make_case(f"avg_pool_{kind.value}", {"in": x}, q, rows=rows, out=out)
        for half in (0, 128) if kind is DType.S8 else (0,):
            yield make_case(f"avg_pool_{kind.value}w", {"in": x}, {**q, "half": half}, rows=rows, out=out)
