"""Kernel cases of dynamic quantisation: dynamic_quantize, matmul_integer, fc_dynamic, conv_integer."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from glowc.graph.types import DType
from glowc.kernels.shapes import axis_keys
from tests.kernels.case import Case, make_case


def kernel_cases() -> Iterator[Case]:
    """Signs and zeros for the quantisation; every pair of element kinds for the products."""
    rng = np.random.default_rng(6)
    for i, n in enumerate((1, 2, 7, 64, 65)):
        for x in (rng.standard_normal(n) * 10.0 ** (i - 2), np.abs(rng.standard_normal(n)), -np.ones(n), np.zeros(n)):
            out = {"out": ((n,), DType.U8), "scale": ((), DType.F32), "zp": ((), DType.U8)}
            yield make_case("dynamic_quantize", {"in": x.astype(np.float32)}, {"n": n}, out=out)
    for a, b in itertools.product((np.int8, np.uint8), (np.int8, np.uint8)):
        yield product(rng, a, b, rows=3, k=17, n=5)
        yield convolution(rng, a, b)
        yield convolution(rng, a, b, nhwc=True)
    yield product(rng, np.uint8, np.int8, rows=2, k=9, n=4, batch=3, steps=(1, 1))
    for k in (1, 3, 16, 33, 64):
        yield dynamic(rng, k, 5, rows=2)
    yield dynamic(rng, 20, 6, low=0.0)
    for k, n, rows in ((8, 4, 1), (17, 9, 3), (31, 6, 2)):
        yield dynamic(rng, k, n, rows, kind=np.int8)


def codes(rng: np.random.Generator, shape: tuple[int, ...], dtype: type) -> np.ndarray:
    """Return codes over the whole range."""
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max + 1, shape).astype(dtype)


def product(
    rng: np.random.Generator,
    a: type,
    b: type,
    *,
    rows: int,
    k: int,
    n: int,
    batch: int = 1,
    steps: tuple[int, int] = (0, 1),
) -> Case:
    """Return one matmul_integer; the second matrix is shared by all batches."""
    arrays = {
        "a": codes(rng, (batch, rows, k), a), "b": codes(rng, (k, n), b),
        "a_zp": codes(rng, (rows if steps[0] else 1,), a),
        "b_zp": codes(rng, (n if steps[1] else 1,), b),
    }  # fmt: skip
    axes = dict.fromkeys(axis_keys("d"), 1) | dict.fromkeys((*axis_keys("a"), *axis_keys("b")), 0)
    params = axes | {"rank": 1, "d0": batch, "a0": rows * k, "m": rows, "k": k, "n": n}
    params |= {"a_zp_step": steps[0], "b_zp_step": steps[1]}
    return make_case("matmul_integer", arrays, params, out={"out": ((batch, rows, n), DType.S32)})


def dynamic(
    rng: np.random.Generator, k: int, n: int, rows: int = 1, low: float = -math.inf, kind: type = np.uint8
) -> Case:
    """Return one fc_dynamic; its roundings are fixed, so results are equal bit for bit."""
    arrays = {
        "in": codes(rng, (rows, k), kind), "in_scale": np.asarray(0.013, np.float32),
        "in_zp": np.asarray(117, kind), "weights": codes(rng, (n, k), np.int8),
        "scale": rng.uniform(0.001, 0.01, n).astype(np.float32), "w_zp": rng.integers(-9, 9, n).astype(np.int32),
        "bias": rng.standard_normal(n).astype(np.float32),
    }  # fmt: skip
    params = {"rows": rows, "in_k": k, "out_n": n, "act_min": low, "act_max": math.inf}
    return make_case("fc_dynamic", arrays, params, out={"out": ((rows, n), DType.F32)})


def convolution(rng: np.random.Generator, x: type, w: type, *, nhwc: bool = False) -> Case:
    """Return one conv_integer in two groups with padding and strides."""
    shapes = ((2, 4, 6, 5), (6, 2, 3, 2), (2, 6, 3, 5))
    image, filters, out = ((a, c, d, b) if nhwc else (a, b, c, d) for a, b, c, d in shapes)
    arrays = {
        "in": codes(rng, image, x), "weights": codes(rng, filters, w), "in_zp": codes(rng, (), x),
        "w_zp": codes(rng, (6,), w),
    }  # fmt: skip
    params = {
        "batch": 2, "in_c": 4, "in_h": 6, "in_w": 5, "out_c": 6, "out_h": 3, "out_w": 5, "k_h": 3, "k_w": 2,
        "stride_h": 2, "stride_w": 1, "dil_h": 1, "dil_w": 1, "pad_top": 1, "pad_left": 0, "groups": 2, "w_zp_step": 1,
        "nhwc": int(nhwc),
    }  # fmt: skip
    return make_case("conv_integer", arrays, params, out={"out": (out, DType.S32)})
