"""glowc/kernels/common/straight.py: multiplications in integers that give the codes of the definition for every sum."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest

from glowc.graph.fixed_point import scaled
from glowc.kernels.common.factors import Ends
from glowc.kernels.common.straight import Line, straight
from glowc.kernels.mve.depthwise import straight_form
from tests.kernels.case import Case
from tests.ops.test_conv import geometry


def with_ties(case: Case, tied: Iterable[int]) -> Case:
    """Return a case some of whose channels have no line: their sums are ties that are rounded up and down."""
    scale = np.array(case.arrays["scale"])
    scale[list(tied)] = 2.0**-5
    return replace(case, arrays={**case.arrays, "scale": scale})


LINES = {
    "helium": Line(11, 31, 16, added=False, halves=False),
    "dsp": Line(8, 32, 10, added=True),
}


def _codes(ends: Ends, sums: np.ndarray, zp: int, bounds: tuple[int, int]) -> np.ndarray:
    """Return the codes of all sums of one channel by the definition."""
    if ends.shifts is None:
        reals = np.rint(sums.astype(np.float32) * ends.words.view(np.float32))
    else:
        reals = scaled(sums, ends.words.astype(np.int64), ends.shifts.astype(np.int64))
    return np.asarray(np.clip(reals + zp, *bounds))


def _by_line(line: Line, sums: np.ndarray, offset: int, mul: int, zp: int) -> np.ndarray:
    """Return the codes as a core computes them."""
    shifted = sums * (1 << line.shift) + offset
    assert np.abs(shifted).max() < 1 << 31
    start = (zp << line.fraction if line.added else 0) + (1 << line.fraction >> 1 if line.halves else 0)
    return np.asarray((shifted * mul >> line.product) + start >> line.fraction)


@pytest.mark.parametrize("bounds", [(-128, 127), (-3, 90), (5, 5)])
@pytest.mark.parametrize("zp", [-128, 0, 127])
@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
@pytest.mark.parametrize("fixed", [False, True])
def test_every_sum_gives_the_code_of_the_definition(
    line: Line, zp: int, bounds: tuple[int, int], *, fixed: bool
) -> None:  # fmt: skip
    rng = np.random.default_rng(zp + 128)
    count = 12
    if fixed:
        bounds = max(bounds[0], zp), max(bounds[1], zp)  # a half is rounded up above the zero point
        ends = Ends.of({"mul": rng.integers(1 << 30, 1 << 31, count), "shift": rng.integers(-9, -4, count)}, count)
    else:
        ends = Ends.of({"scale": np.exp2(rng.uniform(-10, -5, count)).astype(np.float32)}, count)
    low = rng.integers(-120000, -1, count)
    high = low + rng.integers(0, 200000, count)
    found = straight(line, ends, (low, high), zp, bounds)
    assert found.found.sum() > count // 2
    for c in np.flatnonzero(found.found):
        one = Ends(
            ends.words[c : c + 1], None if ends.shifts is None else ends.shifts[c : c + 1], ends.factors[c : c + 1]
        )
        sums = np.arange(low[c], high[c] + 1)
        got = np.clip(_by_line(line, sums, int(found.offset[c]), int(found.mul[c]), zp), *bounds)
        np.testing.assert_array_equal(got, _codes(one, sums, zp, bounds))


def test_helium_proves_the_sums_of_all_inputs() -> None:
    rng, line, proved = np.random.default_rng(5), LINES["helium"], 0
    for zp in (-128, 3, 127, -128, 3, 127):
        case = geometry(rng, c=4, out_c=4, group=4, y_zp=zp)
        weights, ends = case.arrays["weights"].reshape(9, 4), Ends.of(case.arrays, 4)
        form = straight_form(weights, np.zeros(4, np.int64), ends, case.instr)
        for c in range(4 if form is not None else 0):
            ends_of_inputs = weights[:, c].astype(np.int64) * [[-128], [127]]
            sums = np.arange(ends_of_inputs.min(0).sum(), ends_of_inputs.max(0).sum() + 1)
            got = _by_line(line, sums, *(int(part[c]) for part in form or ()), zp)
            one = Ends(ends.words[c : c + 1], None, ends.factors[c : c + 1])
            np.testing.assert_array_equal(np.clip(got, -128, 127), _codes(one, sums, zp, (-128, 127)))
            proved += 1
    assert proved > 8


def test_more_multipliers_than_those_of_the_factors_are_tried() -> None:
    rng, line, count = np.random.default_rng(3), LINES["dsp"], 400
    ends = Ends.of({"scale": np.exp2(rng.uniform(-11, -9, count)).astype(np.float32)}, count)
    most = np.full(count, 250000)
    found = straight(line, ends, (-most, most), 0, (-128, 127))
    rounded = np.rint(ends.factors * 2.0 ** (line.product + line.fraction - line.shift))
    others = found.found & (found.mul != rounded)
    assert found.found.mean() > 0.8
    assert others.mean() > 0.02


@pytest.mark.parametrize(
    ("scale", "low", "high"),
    [
        (0.5, -1000, 1000), (2.0**-35, -1000, 1000), (0.0, -1000, 1000), (-0.01, -1000, 1000),
        (0.0029871, -1000, 1 << 23), (0.0029871, -(1 << 23) - 1, 0), (0.0029871, -1000, 1 << 24),
    ],
)  # fmt: skip
def test_factors_and_sums_out_of_range_have_none(scale: float, low: int, high: int) -> None:
    ends = Ends.of({"scale": np.asarray([scale], np.float32)}, 1)
    for line in LINES.values():
        assert not straight(line, ends, (np.asarray([low]), np.asarray([high])), 0, (-128, 127)).found.any()


def test_sums_that_are_zero_have_one_whatever_the_factor() -> None:
    ends, zero = Ends.of({"scale": np.asarray([0.4], np.float32)}, 1), np.zeros(1, np.int64)
    for line in LINES.values():
        found = straight(line, ends, (zero, zero), -3, (-128, 127))
        assert found.found.all()
        assert _by_line(line, zero, int(found.offset[0]), int(found.mul[0]), -3) == -3


def test_sums_of_as_many_bits_as_fit_have_one() -> None:
    ends = Ends.of({"scale": np.asarray([0.0029871], np.float32)}, 1)
    for low, high in ((-1000, (1 << 23) - 2), (2 - (1 << 23), 1000)):
        assert straight(LINES["dsp"], ends, (np.asarray([low]), np.asarray([high])), 0, (-128, 127)).found.all()


def test_ties_to_both_sides_have_none() -> None:
    ends = Ends.of({"scale": np.asarray([0.0625], np.float32)}, 1)
    assert not straight(LINES["dsp"], ends, (np.asarray([-999]), np.asarray([999])), 0, (-128, 127)).found.any()
