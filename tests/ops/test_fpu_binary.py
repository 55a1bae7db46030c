"""Kernel cases of float arithmetic by eights: rests, rows that are repeated, one number for all, bounds, NaN."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from glowc.graph.types import DType
from glowc.ops.binary_table import expression
from glowc.program.ir import ParamValue
from tests.kernels.case import Case, make_case
from tests.ops.test_binary import access

SHAPES = (
    ((37,), (37,)), ((3, 16), (16,)), ((3, 13), (3, 1)), ((1,), (4, 9)), ((2, 1, 24), (2, 5, 24)),
    ((2, 4, 8), (1, 4, 1)),
)  # fmt: skip


def kernel_cases() -> Iterator[Case]:
    """Every operation with every kind of bound."""
    rng = np.random.default_rng(13)
    bounds = ((-math.inf, math.inf), (0.0, math.inf), (-0.5, 0.75), (-math.inf, 0.25))
    for (left, right), op, (low, high) in itertools.product(SHAPES, ("add", "sub", "mul", "div"), bounds):
        a, b = (rng.normal(size=shape).astype(np.float32) for shape in (left, right))
        a.reshape(-1)[:1], b.reshape(-1)[-1:] = np.nan, -0.0
        loops, out = access(left, right)
        params: dict[str, ParamValue] = {**loops, "op": op, "expr": expression(op, DType.F32)}
        params |= {"clamp": int((low, high) != bounds[0]), "act_min": low, "act_max": high}
        yield make_case("binary", {"a": a, "b": b}, params, out={"out": (out, DType.F32)})
