"""Dense layers with crossed sums on CPUs that issue two at a time: which layers and CPUs, cases of all rounds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from glowc.board import load_board
from glowc.kernels.base import UNFIT, KernelVariant, plan_in, prepare, prepared_instr
from glowc.kernels.choice import candidates
from glowc.kernels.dsp.fully_connected import FcPlan
from glowc.kernels.registry import variants_of
from glowc.ops.registry import all_ops  # noqa: F401
from tests.kernels.case import Case
from tests.ops.test_dsp_common_factor import ENDS, FACTOR, MOST, OTHER, RECTIFIED, SIGNED, alike, with_another
from tests.ops.test_dsp_forms import spoiled
from tests.ops.test_fixed_layers import fixed_cases
from tests.ops.test_fully_connected import layer

KERNELS = "dsp"

SIZES = ((32, 32), (40, 28), (48, 24), (56, 20), (64, 16), (128, 8), (320, 4))  # rounds of four to eight steps


def large(inputs: int, outputs: int, end: tuple[int, int, int], *, fixed: bool, factor: float = FACTOR / 16) -> Case:
    """Return a layer with the largest inputs and weights, many of them alone in their group."""
    case, rng = alike(factor, end, outputs, inputs=inputs, fixed=fixed), np.random.default_rng(inputs)
    case.arrays["in"][:] = rng.choice([-128, 127, 3], (1, inputs))
    case.arrays["weights"][:] = rng.choice([-127, 127, 0], (outputs, inputs))
    return case


def kernel_cases() -> Iterator[Case]:
    """All rounds, 8 and 12 places, all limits; several rows; the largest sums."""
    for number, (inputs, outputs) in enumerate(SIZES):
        for fixed in (False, True):
            yield large(inputs, outputs, ENDS[number % len(ENDS)], fixed=fixed)
    for fixed in (False, True):
        yield large(64, 16, SIGNED, fixed=fixed, factor=OTHER)
    yield reaching(MOST)
    for number, (inputs, outputs) in enumerate(SIZES):
        case = layer(np.random.default_rng(number), inputs, outputs, x_zp=number - 3, extreme=number == 4)
        yield from (case, *fixed_cases(case, number))


def reaching(most: int) -> Case:
    """Return a layer with an output whose sums are `most` or less."""
    case = alike(FACTOR, RECTIFIED, 8, inputs=280, fixed=False)
    case.arrays["in"][:], case.arrays["weights"][3] = 127, 127
    case.arrays["bias"][3] = most - 255 * 127 * 280
    return case


def crossed(kernel: str = "fc_s8") -> KernelVariant:
    return next(v for v in variants_of(kernel) if v.name == "dsp_crossed")


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize(("board", "taken"), [("mps2-an386", False), ("mps2-an500", True), ("mps2-an505", False)])
def test_crossed_sums_are_for_cpus_that_issue_two_at_a_time(board: str, taken: bool, fixed: bool) -> None:
    case = large(64, 16, RECTIFIED, fixed=fixed)
    found = candidates(case.instr, load_board(board).cpu.features, case.arrays.keys())
    assert (crossed(case.instr.kernel) in found) == taken


@pytest.mark.parametrize(
    ("inputs", "outputs", "taken"),
    [
        (32, 32, True),
        (32, 28, False),
        (24, 64, False),
        (36, 64, False),
        (64, 18, False),
        (136, 8, False),
        (640, 128, True),
    ],
)
def test_rounds_have_four_steps_at_least_and_layers_many_weights(inputs: int, outputs: int, taken: bool) -> None:
    assert crossed().accepts(alike(FACTOR, RECTIFIED, outputs, inputs=inputs, fixed=False).instr) == taken


def test_layers_are_dual() -> None:
    """Weights of 4 bits have records where they are; one factor is not needed."""
    case = spoiled(layer(np.random.default_rng(2), 272, 16, x_zp=-128), ("large", "none"))
    assert prepare(crossed(), case.arrays, case.instr) == UNFIT
    for role in ("mul", "shift", "scale"):
        case = with_another(role)
        assert not plan_in(prepare(crossed(case.instr.kernel), case.arrays, case.instr), FcPlan).common
    case = reaching(MOST)
    prepared = prepare(crossed(), case.arrays, case.instr)
    assert plan_in(prepared, FcPlan).steps == 7
    assert crossed().records is not None
    found = crossed().records(prepared_instr(case.instr, prepared))
    assert found is not None
    assert (found.count, found.body) == (2, 280)
