"""SignalRfft, SignalIrfft: kernel cases, and the definition of the transform."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from glowc.graph.types import DType
from glowc.ops.base import OpError
from glowc.ops.signal_fft import fft_params, irfft, order, rfft, tables_of, twiddles
from glowc.program.params import as_mapping
from tests.kernels.case import Case, make_case

_KINDS = {DType.S16: 1 << 13, DType.S32: 1 << 29, DType.F32: 1}
_WHY = "sums of up to 600 products, each rounded; a compiler may fuse a product and a sum"


def _samples(rng: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> np.ndarray:
    return (rng.normal(0, _KINDS[dtype], shape).clip(-2 * _KINDS[dtype], 2 * _KINDS[dtype])).astype(dtype.numpy)


def kernel_cases() -> Iterator[Case]:
    """All stages, alone and together; fewer samples than points; several lines; extremes."""
    rng = np.random.default_rng(3)
    for dtype in _KINDS:
        for batch, points, missing in (
            (1, 2, 0),
            (2, 4, 1),
            (1, 6, 0),
            (3, 10, 4),
            (1, 60, 3),
            (1, 256, 32),
            (1, 32, 0),
        ):
            spectrum = fft_params(batch, 2 * points - missing, points)
            yield _case("rfft", _samples(rng, (batch, spectrum.in_n), dtype), spectrum, dtype, inverse=False)
            samples = fft_params(batch, 2 * points + 2, points)
            yield _case("irfft", _samples(rng, (batch, samples.in_n), dtype), samples, dtype, inverse=True)
    for batch, points, missing, inverse in ((1, 2, 0, 0), (2, 4, 1, 1), (3, 15, 4, 0), (1, 27, 0, 1), (1, 64, 7, 0)):
        p = fft_params(batch, points - missing, points)
        x = rng.normal(0, 1, (batch, points - missing, 2)).astype(np.float32)
        operands = {"in": x, "twiddles": twiddles(p, DType.F32, inverse=inverse == 1), "order": order(p)}
        params, out = {**as_mapping(p), "inverse": inverse}, {"out": ((batch, points, 2), DType.F32)}
        yield make_case("fft", operands, params, out=out, rtol=1e-5, atol=1e-4, why=_WHY)
    for x in (np.full((1, 64), -32768, np.int16), np.tile(np.array([32767, -32768], np.int16), (1, 32))):
        yield _case("rfft", x, fft_params(1, 64, 32), DType.S16, inverse=False)


def _case(kernel: str, x: np.ndarray, p: object, dtype: DType, *, inverse: bool) -> Case:
    params = as_mapping(p)  # type: ignore[arg-type]
    factors, ends, places = tables_of(p, dtype, inverse=inverse)  # type: ignore[arg-type]
    places = np.argsort(places).astype(np.uint16) if inverse else places
    width = 2 * int(params["n"]) + (0 if inverse else 2)
    operands = {"in": x, "twiddles": factors, "ends": ends, "order": places}
    out = {"out": ((x.shape[0], width), dtype)}
    if dtype is not DType.F32:
        return make_case(kernel, operands, params, out=out)
    return make_case(kernel, operands, params, out=out, rtol=1e-5, atol=1e-4, why=_WHY)


@pytest.mark.parametrize("points", [2, 3, 4, 5, 6, 15, 16, 240, 256])
def test_spectrum_of_floats_is_that_of_numpy_and_comes_back(points: int) -> None:
    x = np.random.default_rng(points).normal(0, 1, (2, 2 * points)).astype(np.float32)
    p = fft_params(2, 2 * points, points)
    y = rfft(x, tables_of(p, DType.F32, inverse=False), p, DType.F32)
    want = np.fft.rfft(x, axis=-1)
    np.testing.assert_allclose(y[:, 0::2] + 1j * y[:, 1::2], want, atol=2e-4)
    back = fft_params(2, 2 * points + 2, points)
    np.testing.assert_allclose(irfft(y, tables_of(back, DType.F32, inverse=True), back, DType.F32), x, atol=1e-5)


def test_order_is_that_of_reversed_digits() -> None:
    assert order(fft_params(1, 16, 8)).tolist() == [0, 4, 1, 5, 2, 6, 3, 7]


@pytest.mark.parametrize("points", [1, 7, 22])
def test_other_factors_than_2_3_and_5_are_refused(points: int) -> None:
    with pytest.raises(OpError, match="product of 2, 3 and 5"):
        fft_params(1, 2 * points, points)
