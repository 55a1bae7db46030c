"""One factor for all outputs of fully connected layers on SMLAD: which have it, codes on both sides of steps."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from glowc.graph.fixed_point import multiplier
from glowc.kernels.base import plan_in, prepare
from glowc.kernels.dsp.common_factor import (
    EXACT,
    CommonFactor,
    Search,
    Steps,
    common_factor,
    short,
    short_or_exact,
    short_or_long,
)
from glowc.kernels.dsp.ends import Ends, Factors, Scales
from glowc.kernels.dsp.fully_connected import FcPlan
from glowc.kernels.registry import variants_of
from glowc.ops.registry import all_ops  # noqa: F401
from tests.kernels.case import Case
from tests.ops.test_fixed_layers import fixed_cases
from tests.ops.test_fully_connected import layer

KERNELS = "dsp"

FACTOR = 0.020993464  # a short form of 8 places has its codes; of TensorFlow Lite's where they are rectified
OTHER = 0.0013301225  # one of 12 places, none of TensorFlow Lite's
HALVES = 0.021  # products by float32 that end in a half go to even codes: none
End = tuple[int, int, int]  # zero point and limits
RECTIFIED, LIMITED, SIGNED, BOTH = (-128, -128, 127), (-128, -128, 60), (96, -128, 127), (5, -20, 90)
ENDS = (RECTIFIED, LIMITED, SIGNED, BOTH)
FACTORS = (FACTOR, OTHER, 0.13795453, 0.0041904374)
MOST = (1 << 23) - 1


def alike(
    factor: float, end: End, outputs: int, *, sums: np.ndarray | None = None, inputs: int = 8, fixed: bool = True
) -> Case:  # fmt: skip
    """Return a layer whose outputs all have the factor, and the sums if they are given."""
    rng = np.random.default_rng(7)
    case = layer(rng, inputs, outputs, x_zp=-128, y_zp=end[0], clamp=end[1:])
    x, weights = rng.integers(0, 30, (1, inputs)), rng.integers(-2, 3, (outputs, inputs))
    case.arrays["in"][:], case.arrays["weights"][:], case.arrays["scale"][:] = x - 128, weights, factor
    if sums is not None:
        case.arrays["bias"][:] = np.resize(sums, outputs) - (x * weights).sum(1)
    case = next(fixed_cases(case, 1)) if fixed else case
    return replace(case, instr=replace(case.instr, name=f"factor {factor}"))


def ends_of(factor: float, *, fixed: bool) -> Ends:
    """Return the ending of a channel."""
    mul, shift = multiplier(float(np.float32(factor)))
    return Factors(np.asarray([mul]), np.asarray([shift])) if fixed else Scales(np.asarray([factor], np.float32))


def on_steps(factor: float, end: End, outputs: int = 512, *, fixed: bool = True) -> Case:
    """Return a layer whose outputs are on both sides of every step of the codes."""
    reach, ends, instr = min(int(300 / factor), MOST), ends_of(factor, fixed=fixed), alike(factor, end, 4).instr
    steps = Steps.of(lambda sums: ends.codes(sums, instr), -reach, reach)
    return alike(factor, end, outputs, sums=np.stack((steps.sums - 1, steps.sums), 1).reshape(-1), fixed=fixed)


def reaching(most: int, *, fixed: bool = True) -> Case:
    """Return a layer with an output whose sums are `most` or less."""
    case = alike(FACTOR, RECTIFIED, 16, inputs=272, fixed=fixed)
    case.arrays["in"][:], case.arrays["weights"][3] = 127, 127
    case.arrays["bias"][3] = most - 255 * 127 * 272
    return case


def with_another(role: str) -> Case:
    """Return a layer whose last output has its own multiplier, shift or scale."""
    case = alike(FACTOR, RECTIFIED, 16, fixed=role != "scale")
    case.arrays[role][-1] -= 1 if role != "scale" else np.float32(0.001)
    return case


def kernel_cases() -> Iterator[Case]:
    """Factors with a short form and without one, rectified, limited and signed; whole blocks and others."""
    for factor, end, fixed in itertools.product(FACTORS, ENDS, (True, False)):
        yield on_steps(factor, end, fixed=fixed)
    yield on_steps(HALVES, SIGNED, fixed=False)
    for outputs, fixed in itertools.product((12, 9), (True, False)):
        yield on_steps(FACTOR, RECTIFIED, outputs, fixed=fixed)
    for places in (22, 23):
        yield on_steps(0.75 * 2.0**-places, SIGNED, 8)
    for most, fixed in itertools.product((MOST, MOST + 1), (True, False)):
        yield reaching(most, fixed=fixed)
    yield from (with_another(role) for role in ("mul", "shift", "scale"))


def takes(case: Case, form: str) -> bool:
    """Say whether a variant has one factor for all outputs of a case."""
    variant = next(v for v in variants_of(case.instr.kernel) if v.name == form)
    return plan_in(prepare(variant, case.arrays, case.instr), FcPlan).common


@pytest.mark.parametrize("form", ["dsp", "dsp_eight"])
@pytest.mark.parametrize("fixed", [True, False])
def test_layers_whose_outputs_have_one_factor_share_it(form: str, fixed: bool) -> None:
    assert takes(on_steps(FACTOR, RECTIFIED, fixed=fixed), form)
    assert takes(on_steps(FACTOR, LIMITED, fixed=fixed), form)
    assert takes(reaching(MOST, fixed=fixed), form)
    assert not takes(reaching(MOST + 1, fixed=fixed), form)
    assert not any(takes(with_another(role), form) for role in (("mul", "shift") if fixed else ("scale",)))
    assert fixed or not takes(on_steps(HALVES, SIGNED, fixed=False), form)


@pytest.mark.parametrize("fixed", [True, False])
def test_only_whole_blocks_share_a_factor(fixed: bool) -> None:
    assert not takes(on_steps(FACTOR, RECTIFIED, 10, fixed=fixed), "dsp")
    assert all(takes(on_steps(OTHER, SIGNED, fixed=fixed), form) for form in ("dsp", "dsp_eight"))


@pytest.mark.parametrize(("places", "taken"), [(22, True), (23, False)])
def test_places_leave_room_for_the_zero_point(places: int, taken: bool) -> None:
    case = alike(0.75 * 2.0**-places, SIGNED, 8, sums=np.asarray([-MOST // 2, MOST // 2]))
    assert takes(case, "dsp_eight") == taken


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize(("fixed", "search"), [(True, short_or_exact), (False, short_or_long)])
def test_codes_of_all_sums_are_those_of_the_ending(factor: float, end: End, fixed: bool, search: Search) -> None:
    reach, instr, ends = int(300 / factor), alike(factor, end, 4).instr, ends_of(factor, fixed=fixed)
    sums = np.arange(-reach, reach + 1)
    found = common_factor(ends, (-reach, reach), instr, search)
    assert found is not None
    np.testing.assert_array_equal(np.clip(found.codes(sums), end[1], end[2]), ends.codes(sums, instr))
    assert found.places < EXACT or (fixed and (end in (SIGNED, BOTH) or factor == OTHER))


def test_a_form_that_misses_a_step_is_not_taken() -> None:
    ends, instr = ends_of(FACTOR, fixed=True), alike(FACTOR, RECTIFIED, 4).instr
    found = common_factor(ends, (-15000, 15000), instr, short)
    assert found is not None
    others = (replace(found, more=more) for more in range(256))
    taken = [common_factor(ends, (-15000, 15000), instr, lambda *_: next(others)) is not None for _ in range(256)]
    assert taken[found.more]
    assert 0 < sum(taken) < 16


def test_a_channel_that_is_negated_has_no_common_factor() -> None:
    assert Scales(np.asarray([0.5, 0.5], np.float32)).factor == 0.5
    assert Scales(np.asarray([0.5, -0.5], np.float32)).factor == 0.0


@pytest.mark.parametrize("scale", [np.inf, np.nan, 0.5, 0.0, 1e-38])
def test_scales_that_no_multiplier_has_are_not_common(scale: float) -> None:
    ends, instr = Scales(np.asarray([scale, scale], np.float32)), alike(FACTOR, SIGNED, 4).instr
    assert common_factor(ends, (-15000, 15000), instr, short_or_long) is None


def test_words_are_the_factor_what_is_added_and_the_places() -> None:
    assert CommonFactor(1 << 30, -5, 7, 9).words.tolist() == [1 << 30, -5, 7, 9]


def test_steps_are_the_least_sums_of_the_codes() -> None:
    steps = Steps.of(lambda sums: np.clip(sums // 10, -3, 4), -100, 100)
    assert steps.codes.tolist() == [*range(-2, 5)]
    assert steps.sums.tolist() == [*range(-20, 50, 10)]
