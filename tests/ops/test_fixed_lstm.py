"""FixedLstm, FixedLogistic, FixedTanh: the kernel cases of lstm_*q31, lstm_*q15 and saturating_s16."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from glowc.graph.fixed_functions import lookup_factor, sigmoid_table
from glowc.graph.fixed_point import multiplier, multipliers
from glowc.graph.types import DType
from tests.kernels.case import Case, make_case

RNG = np.random.default_rng(17)


def lstm(
    kind: DType, steps: int, batch: int, in_k: int, hidden: int, *, major: bool, clip: int, power: int,
    zero_points: tuple[int, int] = (-7, 5),
) -> Case:  # fmt: skip
    """Return a case in the middle of a sequence."""
    small = kind is DType.S8
    real = [9.0 / np.sqrt(in_k) if small else 0.06 / np.sqrt(in_k)] * 4 + [5e-2 if small else 4e-4] * 4
    mul, shift = multipliers([float(r * s) for r, s in zip(real, RNG.uniform(0.5, 1.5, 8), strict=True)])
    rows = (steps, batch) if major else (batch, steps)
    arrays = {
        "in": RNG.integers(kind.qmin, kind.qmax, (*rows, in_k), endpoint=True).astype(kind.numpy),
        "weights": RNG.integers(-128, 128, (4, hidden, in_k)).astype(np.int8),
        "recurrent": RNG.integers(-128, 128, (4, hidden, hidden)).astype(np.int8),
        "bias": RNG.integers(-900, 900, (4, hidden)).astype(np.int32 if small else np.int64),
        "mul": mul, "shift": shift, "table": sigmoid_table(),
        "h": RNG.integers(kind.qmin, kind.qmax, (batch, hidden), endpoint=True).astype(kind.numpy),
        "c": RNG.integers(-(2**15), 2**15, (batch, hidden)).astype(np.int16),
    }  # fmt: skip
    left, (in_zp, out_zp) = 12 + power, zero_points if small else (0, 0)
    params: dict[str, int] = {
        "steps": steps, "batch": batch, "in_k": in_k, "hidden": hidden, "time_major": int(major),
        "in_zp": in_zp, "out_zp": out_zp, "out_min": kind.qmin, "out_max": kind.qmax,
        "clip": clip, "tanh_mul": 3 << max(left, 0), "tanh_shift": max(-left, 0),
    }  # fmt: skip
    ends = (("forget", 2.0**-15), ("cell", 2.0**-30 / 2.0**power), ("out", 2.0**-30 * (128 if small else 32768)))
    for name, factor in ends:
        params[f"{name}_mul"], params[f"{name}_shift"] = multiplier(factor)
    return make_case(
        "lstm_s8q31" if small else "lstm_s16q15", arrays, params, out={"out": ((*rows, hidden), kind)}
    )  # fmt: skip


def saturating(function: str, scale: float) -> Case:
    """Return a case of codes on both sides of where the table ends."""
    mul, shift = lookup_factor(scale, function)
    x = np.concatenate(([-32768, 32767, 0, -1, 1], np.arange(-32768, 32768, 97))).astype(np.int16)
    params = {"n": x.size, "mul": mul, "shift": shift, "function": function}
    return make_case("saturating_s16", {"in": x, "table": sigmoid_table()}, params, out={"out": (x.shape, DType.S16)})


def kernel_cases() -> Iterator[Case]:
    """Both kinds and layouts; cells with and without a clip, of scales on both sides of what tanh takes.

    Rows are whole blocks of codes and others, zero points are at both ends.
    """
    for kind in (DType.S8, DType.S16):
        for major in (False, True):
            yield lstm(kind, 3, 2, 5, 4, major=major, clip=0, power=-11)
            yield lstm(kind, 2, 1, 17, 9, major=major, clip=3000, power=-15)
        yield lstm(kind, 1, 1, 1, 1, major=False, clip=0, power=-12)
    for in_k, hidden, zero_points in ((3, 2, (-128, 127)), (4, 8, (127, -128)), (8, 3, (0, 0)), (23, 12, (-128, -128))):
        yield lstm(DType.S8, 2, 1, in_k, hidden, major=False, clip=0, power=-11, zero_points=zero_points)
    for function in ("logistic", "tanh"):
        for scale in (2.0**-12, 2.0**-11, 1e-4, 3.3e-3, 7.1e-6):
            yield saturating(function, scale)


@pytest.mark.parametrize(("function", "factor"), [("logistic", (24576, 12)), ("tanh", (6, 0))])
def test_tanh_takes_two_powers_of_two_without_a_shift_and_the_logistic_function_one(
    function: str, factor: tuple[int, int]
) -> None:
    assert lookup_factor(2.0**-12, function) == (3, 0)
    assert lookup_factor(2.0**-11, function) == factor


def test_the_table_grows_to_the_largest_number() -> None:
    table = sigmoid_table().astype(int)
    assert table[0] == 1 << 15
    assert table[255] == 65535
    assert (np.diff(table) >= 0).all()
