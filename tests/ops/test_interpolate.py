"""Resize in modes linear and cubic: every transformation and option against onnx.reference; quantised; the kernel."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from glowc.graph.numerics import dequantize, quantize
from glowc.graph.types import DType, quant
from tests.kernels.case import Case
from tests.ops.one_node import check, onnx_run
from tests.ops.program_cases import cases_of
from tests.unit.quirk_models import Net, onnxruntime_outputs

RNG = np.random.default_rng(13)
X = RNG.normal(size=(2, 3, 5, 7)).astype(np.float32)
TRANSFORMS = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric"]


SIZES = [(2, 3, 10, 14), (2, 3, 3, 4), (2, 3, 8, 5), (2, 3, 1, 7)]
Judged = tuple[np.ndarray, np.ndarray]


def wanted(sizes: tuple[int, ...], attrs: dict[str, object], x: np.ndarray = X) -> np.ndarray:
    return onnx_run("Resize", [x, None, None, np.asarray(sizes)], attrs)[0]


def with_onnxruntime(sizes: tuple[int, ...], attrs: dict[str, object]) -> Judged:
    """Return what the operator gives for X, and what onnxruntime does."""
    net = Net()
    net.input("x", "f32[2,3,5,7]")
    net.const("sizes", np.asarray(sizes, np.int64))
    net.op("Resize", "x _ _ sizes", "y", **attrs)
    (y,) = check("Resize", [X], {**attrs, "sizes": sizes})  # type: ignore[dict-item]
    return y, onnxruntime_outputs(net.build({"y": "f32"}), {"x": X})["y"]


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("sizes", SIZES)
def test_every_transformation(mode: str, transform: str, sizes: tuple[int, ...]) -> None:
    attrs: dict[str, object] = {"mode": mode, "coordinate_transformation_mode": transform}
    y, want = with_onnxruntime(sizes, attrs)
    np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-5)
    if (transform, sizes[2]) != ("pytorch_half_pixel", 1):  # for its only output ONNX's evaluator takes -0.5, not 0
        np.testing.assert_allclose(y, wanted(sizes, attrs), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("sizes", SIZES)
def test_cubic_of_floats_has_the_bits_of_onnxruntime(transform: str, sizes: tuple[int, ...]) -> None:
    """So that codes quantised from it round alike at ties."""
    attrs: dict[str, object] = {"mode": "cubic", "coordinate_transformation_mode": transform, "cubic_coeff_a": -0.5}
    np.testing.assert_array_equal(*with_onnxruntime(sizes, attrs))


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("key", ["antialias", "exclude_outside"])
def test_options(mode: str, key: str) -> None:
    if mode == "linear" and key == "exclude_outside":
        pytest.skip("defined for cubic")
    attrs: dict[str, object] = {"mode": mode, key: 1, "cubic_coeff_a": -0.5}
    for sizes in ((2, 3, 3, 3), (2, 3, 9, 9)):
        (y,) = check("Resize", [X], {**attrs, "sizes": sizes})  # type: ignore[dict-item]
        np.testing.assert_allclose(y, wanted(sizes, attrs), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mode", ["linear", "cubic", "nearest"])
def test_crop_fills_what_lies_outside(mode: str) -> None:
    transform = {"mode": mode, "coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 10.0}
    begin, end = (0.0, 0.0, 0.4, -0.3), (1.0, 1.0, 1.2, 0.7)
    ours = {**transform, "sizes": (2, 3, 4, 4), "roi_begin": begin, "roi_end": end}
    roi = np.asarray([*begin, *end], np.float32)
    (want,) = onnx_run("Resize", [X, roi, None, np.asarray((2, 3, 4, 4))], transform)
    (y,) = check("Resize", [X], ours)  # type: ignore[arg-type]
    assert (y == 10).any()
    np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rounding", ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
def test_nearest_takes_the_pixels_of_onnxruntime_from_a_crop(rounding: str) -> None:
    """Positions of whole numbers, but for what float32 is off by."""
    attrs = {"mode": "nearest", "coordinate_transformation_mode": "tf_crop_and_resize", "nearest_mode": rounding}
    begin, end, sizes = (0.0, 0.0, 0.2, 0.1), (1.0, 1.0, 0.7, 0.9), (2, 3, 18, 3)
    net = Net()
    net.input("x", "f32[2,3,5,7]")
    net.const("roi", np.asarray([*begin, *end], np.float32))
    net.const("sizes", np.asarray(sizes, np.int64))
    net.op("Resize", "x roi _ sizes", "y", **attrs)
    ours = {**attrs, "sizes": sizes, "roi_begin": _float32(begin), "roi_end": _float32(end)}
    (y,) = check("Resize", [X], ours)  # type: ignore[arg-type]
    np.testing.assert_array_equal(y, onnxruntime_outputs(net.build({"y": "f32"}), {"x": X})["y"])


def _float32(values: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(float(np.float32(v)) for v in values)


def test_scales_decide_and_axes_of_length_one() -> None:
    x, scales = X[:, :, :1], (1.0, 1.0, 2.0, 0.6)
    (want,) = onnx_run("Resize", [x, None, np.asarray(scales, np.float32)], {"mode": "linear"})
    (y,) = check("Resize", [x], {"mode": "linear", "sizes": (2, 3, 2, 4), "scales": scales})
    np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-6)


def test_quantised_tensors_are_interpolated_as_real_numbers() -> None:
    qx, qy = quant(0.1, 3), quant(0.12, -5)
    codes = RNG.integers(-128, 128, (1, 2, 3, 4)).astype(np.int8)
    attrs = {"mode": "linear", "sizes": (1, 2, 7, 8)}
    (y,) = check("Resize", [codes], attrs, quants=[qx], out_quants=[qy])  # type: ignore[arg-type]
    (real,) = check("Resize", [dequantize(codes, qx)], attrs)  # type: ignore[arg-type]
    np.testing.assert_array_equal(y, quantize(real, qy, DType.S8))


def kernel_cases() -> Iterator[Case]:
    for dtype in ("float32", "float64"):
        for mode in ("linear", "cubic"):
            for sizes in ((2, 3, 9, 4), (4, 3, 5, 15), (2, 1, 5, 7)):
                attrs = {"mode": mode, "sizes": sizes}
                loose = 1e-12 if dtype == "float64" else 0.0
                why = "a compiler may fuse a product and a sum of doubles" if loose else ""
                x = X.astype(dtype)
                yield from cases_of({"interpolate"}, "Resize", [x], attrs, rtol=loose, atol=loose, why=why)  # type: ignore[arg-type]
