"""GridSample and ConvTranspose: against onnx.reference and onnxruntime; their kernels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from glowc.ops.base import OpError
from tests.kernels.case import Case
from tests.ops.one_node import check, graph_of, onnx_run, ort_run
from tests.ops.program_cases import cases_of

RNG = np.random.default_rng(14)
X = RNG.normal(size=(2, 3, 4, 5)).astype(np.float32)
GRID = RNG.uniform(-1.6, 1.6, (2, 3, 4, 2)).astype(np.float32)
SPREAD = "sums in another order"


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [0, 1])
def test_images(mode: str, padding: str, align: int) -> None:
    attrs = {"mode": mode, "padding_mode": padding, "align_corners": align}
    (y,) = check("GridSample", [X, GRID], attrs)
    np.testing.assert_allclose(y, onnx_run("GridSample", [X, GRID], attrs)[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_volumes(mode: str, padding: str) -> None:
    x, grid = RNG.normal(size=(1, 2, 3, 4, 2)), RNG.uniform(-1.5, 1.5, (1, 2, 2, 3, 3))
    attrs = {"mode": mode, "padding_mode": padding}
    want = onnx_run("GridSample", [x, grid], attrs)[0]
    np.testing.assert_allclose(check("GridSample", [x, grid], attrs)[0], want, rtol=1e-4, atol=1e-5)


def test_coordinates_that_are_no_numbers_read_nothing() -> None:
    grid = np.asarray([np.nan, 0, np.inf, 0, -1e30, 1e30, 0, 0], np.float32).reshape(1, 1, 4, 2)
    (y,) = check("GridSample", [X[:1], grid], {"padding_mode": "zeros"})
    assert not y[..., :3].any()


def test_unknown_words_are_errors() -> None:
    with pytest.raises(OpError, match="padding_mode 'wrap'"):
        graph_of("GridSample", [X, GRID], {"padding_mode": "wrap"})


TRANSPOSED = [
    ((1, 2, 5), (2, 3, 3), {}), ((1, 2, 3, 4), (2, 3, 3, 3), {"strides": (2, 3)}),
    ((2, 4, 3, 4), (4, 2, 2, 3), {"group": 2, "pads": (1, 0, 0, 2), "strides": (2, 2), "output_padding": (1, 0)}),
    ((1, 2, 3, 3), (2, 1, 2, 2), {"dilations": (2, 3)}), ((1, 1, 2, 3, 4), (1, 2, 2, 1, 3), {"strides": (1, 2, 2)}),
]  # fmt: skip


@pytest.mark.parametrize(("x_shape", "w_shape", "attrs"), TRANSPOSED)
def test_conv_transpose(x_shape: tuple[int, ...], w_shape: tuple[int, ...], attrs: dict[str, object]) -> None:
    x, w = RNG.normal(size=x_shape).astype(np.float32), RNG.normal(size=w_shape).astype(np.float32)
    bias = RNG.normal(size=w_shape[1] * int(str(attrs.get("group", 1)))).astype(np.float32)
    want = ort_run("ConvTranspose", [x, w, bias], attrs)
    (y,) = check("ConvTranspose", [x, w, bias], attrs)  # type: ignore[arg-type]
    np.testing.assert_allclose(y, want, rtol=1e-4, atol=1e-5)
    (plain,) = check("ConvTranspose", [x, w], attrs)  # type: ignore[arg-type]
    np.testing.assert_allclose(plain, y - bias.reshape(-1, *[1] * (x.ndim - 2)), rtol=1e-4, atol=1e-5)
    if x.ndim == 4:
        images = [np.ascontiguousarray(a.transpose(0, 2, 3, 1)) for a in (x, w)]
        (inner,) = check("ConvTranspose", [*images, bias], {**attrs, "layout": "nhwc"})  # type: ignore[dict-item]
        np.testing.assert_allclose(inner.transpose(0, 3, 1, 2), y, rtol=1e-4, atol=1e-5)


def test_conv_transpose_with_other_channels_is_an_error() -> None:
    with pytest.raises(OpError, match="weights"):
        graph_of("ConvTranspose", [X, np.zeros((2, 1, 3, 3), np.float32)])


def kernel_cases() -> Iterator[Case]:
    close = {"rtol": 1e-4, "atol": 1e-5, "why": SPREAD}
    for dtype in ("float32", "float64"):
        wild = np.concatenate([GRID.reshape(-1)[:-4], [np.nan, 1e30, -np.inf, 1.0]]).reshape(GRID.shape)
        for padding in ("zeros", "border", "reflection"):
            for align in (0, 1):
                attrs = {"padding_mode": padding, "align_corners": align}
                for mode, grid in (("nearest", GRID), ("linear", wild), ("cubic", GRID)):
                    inputs = [X.astype(dtype), grid.astype(dtype)]
                    yield from cases_of({"grid_sample"}, "GridSample", inputs, {**attrs, "mode": mode}, **close)  # type: ignore[arg-type]
                box = [a.astype(dtype) for a in (RNG.normal(size=(1, 2, 3, 4, 2)), RNG.uniform(-2, 2, (1, 2, 2, 3, 3)))]
                yield from cases_of({"grid_sample"}, "GridSample", box, {**attrs, "mode": "linear"}, **close)  # type: ignore[arg-type]
        for x_shape, w_shape, given in TRANSPOSED:
            pair = [RNG.normal(size=s).astype(dtype) for s in (x_shape, w_shape)]
            yield from cases_of({"conv_transpose"}, "ConvTranspose", pair, given, **close)  # type: ignore[arg-type]
            if len(x_shape) == 4:
                images = [np.ascontiguousarray(a.transpose(0, 2, 3, 1)) for a in pair]
                inner = {**given, "layout": "nhwc"}
                yield from cases_of({"conv_transpose"}, "ConvTranspose", images, inner, **close)  # type: ignore[arg-type]
