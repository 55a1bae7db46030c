"""Kernel cases of what takes codes four at a time: every rest, sums beyond halfwords, extreme codes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from glowc.graph.types import DType
from glowc.kernels.shapes import axis_keys
from glowc.program.ir import ParamValue
from tests.kernels.case import Case, make_case

KERNELS = "dsp"

ZEROS = ((-128, 127), (127, -128), (3, -5))


def kernel_cases() -> Iterator[Case]:
    """Conversions, means and products."""
    rng = np.random.default_rng(11)
    for kind, n in itertools.product((DType.S8, DType.U8), (8, 9, 10, 11, 31)):
        codes = rng.integers(kind.qmin, kind.qmax, n, endpoint=True).astype(kind.numpy)
        codes[:2] = kind.qmin, kind.qmax
        for zero in (kind.qmin, kind.qmax, 5):
            params = {"n": n, "zp": zero, "scale": 0.0371}
            yield make_case("dequantize", {"in": codes}, params, out={"out": ((n,), DType.F32)})
            reals = rng.normal(0, 6, n).astype(np.float32)
            yield make_case("quantize", {"in": reals}, params, out={"out": ((n,), kind)})
    yield from mean_cases(rng)
    yield from product_cases(rng)


def mean_cases(rng: np.random.Generator) -> Iterator[Case]:
    """More rows than halfwords hold, and ends of int8."""
    for (outer, n, inner), (in_zp, out_zp) in itertools.product(
        ((1, 256, 4), (2, 257, 5), (1, 600, 9), (2, 300, 1), (3, 11, 1), (1, 8, 1), (2, 3, 70)), ZEROS
    ):
        x = rng.choice([-128, -128, -128, 127, 3], (outer, n, inner)).astype(np.int8)
        params = {"outer": outer, "n": n, "inner": inner, "in_zp": in_zp, "out_zp": out_zp, "scale": 1.1 / n}
        params |= {"out_min": -128, "out_max": 120}
        yield make_case("reduce_mean_s8", {"in": x}, params, out={"out": ((outer, inner), DType.S8)})


def product_cases(rng: np.random.Generator) -> Iterator[Case]:
    """All pairs of codes with ties, rows that are repeated, no limits and both."""
    axes = dict.fromkeys(axis_keys("d"), 1) | dict.fromkeys((*axis_keys("a"), *axis_keys("b")), 0)
    a, b = (v.reshape(-1).astype(np.int8) for v in np.meshgrid(np.arange(-128, 128), np.arange(-128, 128)))
    for scale, (a_zp, out_zp), low in ((0.0625, ZEROS[0], -128), (0.0071, ZEROS[1], -100), (3.5, ZEROS[2], -128)):
        params: dict[str, ParamValue] = {**axes, "d0": a.size, "a0": 1, "b0": 1, "rank": 1}
        params |= {"a_zp": a_zp, "b_zp": 9, "out_zp": out_zp, "out_min": low, "out_max": 127, "scale": scale}
        yield make_case("mul_s8", {"a": a, "b": b}, params, out={"out": (a.shape, DType.S8)}, name="all pairs")
    for n, step in itertools.product((8, 11, 64), (0, 1)):
        params = {**axes, "d0": 5, "d1": n, "a0": n, "a1": 1, "b0": step * n, "b1": 1, "rank": 2, "scale": 0.013}
        params |= {"a_zp": -128, "b_zp": 127, "out_zp": -7, "out_min": -90, "out_max": 88}
        arrays = {"a": rng.choice(a, 5 * n), "b": rng.choice(b, n * (4 * step + 1))}
        yield make_case("mul_s8", arrays, params, out={"out": ((5 * n,), DType.S8)}, name="rows")
