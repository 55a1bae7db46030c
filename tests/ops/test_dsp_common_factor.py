"""One factor for all outputs of fully connected layers on SMLAD: which have it, codes on both sides of steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from glowc.graph.fixed_point import multiplier
from glowc.kernels.base import plan_in, prepare
from glowc.kernels.dsp.common_factor import CommonFactor, Steps, common_factor, exact, short
from glowc.kernels.dsp.ends import Factors
from glowc.kernels.dsp.fully_connected import FcPlan
from glowc.kernels.registry import variants_of
from glowc.ops.registry import all_ops  # noqa: F401
from tests.kernels.case import Case
from tests.ops.test_fixed_layers import fixed_cases
from tests.ops.test_fully_connected import layer

FACTOR = 0.021  # has a short form where codes are rectified
OTHER = 0.0013  # has none of all codes
End = tuple[int, int, int]  # zero point and limits
RECTIFIED, LIMITED, SIGNED, BOTH = (-128, -128, 127), (-128, -128, 60), (96, -128, 127), (5, -20, 90)
MOST = (1 << 23) - 1


def fixed_layer(factor: float, end: End, outputs: int, sums: np.ndarray | None = None, inputs: int = 8) -> Case:
    """Return a layer whose outputs all have the factor, and the sums if they are given."""
    rng = np.random.default_rng(7)
    case = layer(rng, inputs, outputs, x_zp=-128, y_zp=end[0], clamp=end[1:])
    x, weights = rng.integers(0, 30, (1, inputs)), rng.integers(-2, 3, (outputs, inputs))
    case.arrays["in"][:], case.arrays["weights"][:], case.arrays["scale"][:] = x - 128, weights, factor
    if sums is not None:
        case.arrays["bias"][:] = np.resize(sums, outputs) - (x * weights).sum(1)
    fixed = next(fixed_cases(case, 1))
    return replace(fixed, instr=replace(fixed.instr, name=f"factor {factor}"))


def steps_of(factor: float, end: End, reach: int) -> Steps:
    """Return the steps of the codes of sums up to `reach`."""
    factors, instr = Factors(*map(np.int64, multiplier(factor))), fixed_layer(factor, end, 4).instr
    return Steps.of(lambda sums: factors.codes(sums, instr), -reach, reach)


def on_steps(factor: float, end: End, outputs: int = 512) -> Case:
    """Return a layer whose outputs are on both sides of every step of the codes."""
    steps = steps_of(factor, end, min(int(300 / factor), MOST))
    return fixed_layer(factor, end, outputs, np.stack((steps.sums - 1, steps.sums), 1).reshape(-1))


def reaching(most: int) -> Case:
    """Return a layer with an output whose sums are `most` or less."""
    case = fixed_layer(FACTOR, RECTIFIED, 16, inputs=272)
    case.arrays["in"][:], case.arrays["weights"][3] = 127, 127
    case.arrays["bias"][3] = most - 255 * 127 * 272
    return case


def with_another_factor(role: str) -> Case:
    """Return a layer whose last output has its own multiplier or shift."""
    case = fixed_layer(FACTOR, RECTIFIED, 16)
    case.arrays[role][-1] -= 1
    return case


def kernel_cases() -> Iterator[Case]:
    """Factors with a short form and without one, rectified, limited and signed; whole blocks and others."""
    for factor in (FACTOR, OTHER, 0.138, 0.0042):
        for end in (RECTIFIED, LIMITED, SIGNED, BOTH):
            yield on_steps(factor, end)
    for outputs in (12, 9):
        yield on_steps(FACTOR, RECTIFIED, outputs)
    for places in (22, 23):
        yield on_steps(0.75 * 2.0**-places, SIGNED, 8)
    yield from (reaching(most) for most in (MOST, MOST + 1))
    yield from (with_another_factor(role) for role in ("mul", "shift"))


def takes(case: Case, form: str) -> bool:
    """Say whether a variant has one factor for all outputs of a case."""
    variant = next(v for v in variants_of("fc_s8q31") if v.name == form)
    return plan_in(prepare(variant, case.arrays, case.instr), FcPlan).common


@pytest.mark.parametrize("form", ["dsp_units", "dsp_eight"])
def test_layers_whose_outputs_have_one_factor_share_it(form: str) -> None:
    assert takes(on_steps(FACTOR, RECTIFIED), form)
    assert takes(on_steps(FACTOR, LIMITED), form)
    assert takes(reaching(MOST), form)
    assert not takes(reaching(MOST + 1), form)
    assert not any(takes(with_another_factor(role), form) for role in ("mul", "shift"))


def test_blocks_of_four_share_a_factor_of_0_places_alone() -> None:
    assert not takes(on_steps(FACTOR, RECTIFIED, 10), "dsp_units")
    assert [takes(on_steps(OTHER, SIGNED), form) for form in ("dsp_units", "dsp_eight")] == [False, True]


@pytest.mark.parametrize(("places", "taken"), [(22, True), (23, False)])
def test_places_leave_room_for_the_zero_point(places: int, taken: bool) -> None:
    assert takes(fixed_layer(0.75 * 2.0**-places, SIGNED, 8, np.asarray([-MOST // 2, MOST // 2])), "dsp_eight") == taken


@pytest.mark.parametrize("factor", [0.45, 0.138, FACTOR, 0.0042, OTHER])
@pytest.mark.parametrize("end", [RECTIFIED, LIMITED, SIGNED, BOTH])
def test_codes_of_all_sums_are_those_of_tensorflow_lite(factor: float, end: End) -> None:
    mul, shift = (np.asarray([part]) for part in multiplier(factor))
    reach, instr = int(300 / factor), fixed_layer(factor, end, 4).instr
    sums = np.arange(-reach, reach + 1)
    found = common_factor(mul, shift, (-reach, reach), instr, exact)
    assert found is not None
    assert found.places == 0 or end in (SIGNED, BOTH) or factor == OTHER
    np.testing.assert_array_equal(np.clip(found.codes(sums), end[1], end[2]), Factors(mul, shift).codes(sums, instr))


def test_a_form_that_misses_a_step_is_not_taken() -> None:
    mul, shift = multiplier(FACTOR)
    steps = steps_of(FACTOR, RECTIFIED, 15000)
    found = short(mul, shift, -128, steps)
    assert found is not None
    given = (np.asarray([mul]), np.asarray([shift]), (-15000, 15000), fixed_layer(FACTOR, RECTIFIED, 4).instr)
    others = (replace(found, more=more) for more in range(256))
    taken = [common_factor(*given, lambda *_: next(others)) is not None for _ in range(256)]
    assert taken[found.more]
    assert 0 < sum(taken) < 16


def test_words_are_the_factor_what_is_added_and_the_places() -> None:
    assert CommonFactor(1 << 30, -5, places=9).words.tolist() == [1 << 30, -5, 0, 9]


def test_steps_are_the_least_sums_of_the_codes() -> None:
    steps = Steps.of(lambda sums: np.clip(sums // 10, -3, 4), -100, 100)
    assert steps.codes.tolist() == [*range(-2, 5)]
    assert steps.sums.tolist() == [*range(-20, 50, 10)]
