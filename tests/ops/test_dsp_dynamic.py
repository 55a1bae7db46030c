"""Kernel cases of dynamically quantised rows by fours: rests of rows, inputs and outputs, wide weights, limits."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from glowc.graph.types import DType
from tests.kernels.case import Case, make_case
from tests.ops.test_dynamic_quantize import codes, dynamic

KERNELS = "dsp"


def kernel_cases() -> Iterator[Case]:
    """Sums that leave 24 bits, and extreme codes."""
    rng = np.random.default_rng(14)
    for (k, n), rows, kind in itertools.product(
        ((1, 2), (2, 5), (3, 16), (4, 17), (5, 3), (7, 33), (64, 20), (258, 6), (400, 4)), (3, 5), (np.uint8, np.int8)
    ):
        case = dynamic(rng, k, n, rows, low=-0.5 if rows == 3 else -np.inf, kind=kind)
        if n % 2:
            case.arrays["weights"][:] = rng.choice([-128, 127], (n, k))
            case.arrays["in"][:] = rng.choice([np.iinfo(kind).min, np.iinfo(kind).max], (rows, k))
        else:
            case.arrays["weights"][:] = np.clip(case.arrays["weights"], -100, 100)
            case.arrays["w_zp"][:] = 0
        yield case
    kinds = (np.uint8, np.int8)
    windows = ((1, (2, 4)), (3, (3, 3)), (8, (1, 1)), (5, (3, 2)))
    for x, w, (c, window), stride, out_c in itertools.product(kinds, kinds, windows, (1, 2), (2, 5)):
        yield conv_integer(rng, x, w, c, out_c, window, stride)


def conv_integer(
    rng: np.random.Generator, x: type, w: type, c: int, out_c: int, k: tuple[int, int], stride: int
) -> Case:
    """Return one conv_integer of NHWC with padding at two sides."""
    h, wide = 7, 9
    out_h, out_w = (h + 2 - 2 * (k[0] - 1) - 1) // stride + 1, (wide + 1 - k[1]) // stride + 1
    arrays = {
        "in": codes(rng, (2, h, wide, c), x), "weights": codes(rng, (out_c, *k, c), w), "in_zp": codes(rng, (), x),
        "w_zp": codes(rng, (out_c if c > 1 else 1,), w),
    }  # fmt: skip
    params = {
        "batch": 2, "in_c": c, "in_h": h, "in_w": wide, "out_c": out_c, "out_h": out_h, "out_w": out_w, "k_h": k[0],
        "k_w": k[1], "stride_h": stride, "stride_w": stride, "dil_h": 2, "dil_w": 1, "pad_top": 1, "pad_left": 1,
        "groups": 1, "w_zp_step": int(c > 1), "nhwc": 1,
    }  # fmt: skip
    return make_case("conv_integer", arrays, params, out={"out": ((2, out_h, out_w, out_c), DType.S32)})
