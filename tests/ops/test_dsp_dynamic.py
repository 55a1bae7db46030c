"""Kernel cases of dynamically quantised rows by fours: rests of rows, inputs and outputs, wide weights, limits."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from tests.kernels.case import Case
from tests.ops.test_dynamic_quantize import dynamic


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
