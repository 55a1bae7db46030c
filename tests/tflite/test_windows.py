"""CONV_3D, spectra with complex numbers, and MediaPipe's pooling with places, against numpy."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from glowc.errors import ModelError
from glowc.frontend import import_model
from tests.conftest import require_tflite
from tests.tflite.compare import lowered
from tests.tflite.writer import Build, Tensor

require_tflite()
Shape = tuple[int, ...]


def _normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def _same(n: int, k: int, s: int) -> tuple[int, int]:
    total = max((-(-n // s) - 1) * s + k - n, 0)
    return total // 2, total - total // 2


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("padding", [0, 1])
def test_a_convolution_of_three_axes(padding: int, step: int) -> None:
    x, w, bias, build = _normal(0, 2, 5, 4, 6, 3), _normal(1, 3, 2, 3, 3, 4), _normal(2, 4), Build()
    pads = [_same(n, k, step) if padding == 0 else (0, 0) for n, k in zip(x.shape[1:4], w.shape[:3], strict=True)]
    wide = np.pad(x, [(0, 0), *pads, (0, 0)])
    windows = np.lib.stride_tricks.sliding_window_view(wide, w.shape[:3], (1, 2, 3))[:, ::step, ::step, ::step]
    want = np.maximum(np.einsum("ndhwcijk,ijkco->ndhwo", windows, w) + bias, 0)
    given = [build.input(x.shape, "float32"), build.const(w), build.const(bias)]
    build.op("CONV_3D", given, Tensor(want.shape, "float32"), padding=padding, strideD=step, strideH=step, strideW=step,
             dilationDFactor=1, dilationHFactor=1, dilationWFactor=1, fusedActivationFunction=1)  # fmt: skip
    np.testing.assert_allclose(lowered(build.bytes(), [(x,)])[0][0], want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("shape", "lengths"), [((3, 1, 20), (1, 16)), ((1, 40), (1, 64)), ((2, 6, 30), (8, 32))])
@pytest.mark.parametrize(("code", "function"), [("COMPLEX_ABS", np.abs), ("REAL", np.real), ("IMAG", np.imag)])
def test_spectra(shape: Shape, lengths: tuple[int, int], code: str, function: np.ufunc) -> None:
    x, build = _normal(3, *shape), Build()
    kept = x[..., : lengths[0], : lengths[1]]
    want = np.fft.rfft2(kept, lengths)
    numbers = [build.input(shape, "float32"), build.const(np.asarray(lengths, np.int32))]
    y = build.op("RFFT2D", numbers, Tensor(want.shape, "complex64"))
    flat = (want.size,)
    y = build.op(
        "RESHAPE", [y, build.const(np.asarray(flat, np.int32))], Tensor(flat, "complex64"), newShape=list(flat)
    )
    build.op(code, [y], Tensor(flat, "float32"))
    np.testing.assert_allclose(lowered(build.bytes(), [(x,)])[0][0], function(want.reshape(-1)), rtol=1e-4, atol=1e-4)


def test_other_operators_refuse_complex_numbers() -> None:
    build = Build()
    y = build.op("RFFT2D", [build.input((1, 8), "float32"), build.const(np.asarray([1, 8], np.int32))],
                 Tensor((1, 5), "complex64"))  # fmt: skip
    y = build.op("MUL", [y, y], Tensor((1, 5), "complex64"))
    build.op("COMPLEX_ABS", [y], Tensor((1, 5), "float32"))
    with pytest.raises(ModelError, match="has the element type complex64"):
        import_model(build.bytes())


def _options(padding: int, step: Shape, window: Shape) -> bytes:
    return np.asarray([padding, step[1], step[0], window[1], window[0], 0], np.int32).tobytes()


def _pooled(x: np.ndarray, padding: int, step: Shape, window: Shape) -> tuple[np.ndarray, np.ndarray]:
    """Return the maxima of windows and the first place of each in its window."""
    axes = list(zip(x.shape[1:3], window, step, strict=True))
    pads = [_same(n, k, s) if padding == 1 else (0, 0) for n, k, s in axes]
    wide = np.pad(x, [(0, 0), *pads, (0, 0)], constant_values=np.finfo(np.float32).min)
    windows = np.lib.stride_tricks.sliding_window_view(wide, window, (1, 2))[:, :: step[0], :: step[1]]
    flat = windows.reshape(*windows.shape[:4], -1)
    return flat.max(-1), (flat.argmax(-1) + 0.1).astype(np.float32)


@pytest.mark.parametrize(("padding", "step", "window"), list(product((1, 2), ((2, 2), (1, 2)), ((2, 2), (3, 2)))))
def test_mediapipes_maxima_come_with_their_places(padding: int, step: Shape, window: Shape) -> None:
    x = np.round(_normal(4, 2, 5, 6, 3), 1)
    want = _pooled(x, padding, step, window)
    build = Build()
    build.op("MaxPoolingWithArgmax2D", [build.input(x.shape, "float32")],
             [Tensor(w.shape, "float32") for w in want], custom=_options(padding, step, window))  # fmt: skip
    for got, right in zip(lowered(build.bytes(), [(x,)])[0], want, strict=True):
        np.testing.assert_array_equal(got, right)


def test_mediapipes_unpooling_puts_them_back() -> None:
    x, build = _normal(5, 1, 6, 4, 2), Build()
    best, places = _pooled(x, 2, (2, 2), (2, 2))
    inputs = [build.input(best.shape, "float32") for _ in range(2)]
    build.op("MaxUnpooling2D", inputs, Tensor(x.shape, "float32"), custom=_options(2, (2, 2), (2, 2)))
    got = lowered(build.bytes(), [(best, places)])[0][0]
    np.testing.assert_array_equal(_pooled(got, 2, (2, 2), (2, 2))[0], np.maximum(best, 0))
    assert np.array_equal(np.where(got != 0, x, 0), got)


@pytest.mark.parametrize(
    ("options", "says"),
    [(b"\0" * 8, "8 bytes of options"), (_options(3, (2, 2), (2, 2)), "padding 3"),
     (_options(1, (1, 1), (2, 2)), "windows that overlap are not read")],
)  # fmt: skip
def test_options_that_do_not_fit_are_told(options: bytes, says: str) -> None:
    build = Build()
    inputs = [build.input((1, 2, 2, 1), "float32") for _ in range(2)]
    build.op("MaxUnpooling2D", inputs, Tensor((1, 4, 4, 1), "float32"), custom=options)
    with pytest.raises(ModelError, match=says):
        import_model(build.bytes())
