"""int8 convolutions on Helium whose groups of channels end by lines in integers or by scales; kernel cases of both."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from glowc.kernels.common.factors import Ends
from glowc.kernels.mve.stream import lines, stream
from tests.kernels.case import Case
from tests.ops.test_conv import geometry
from tests.ops.test_straight import with_ties

KERNELS = "mve"

TIED = 5
"""A channel without a line."""


def case_of(inputs: int, out_c: int, *, tied: bool = True, **more: Any) -> Case:
    """Return a 1x1 convolution of 225 pixels, as many as code for a number of inputs is printed for."""
    base: dict[str, Any] = {"h": 15, "w": 15, "c": inputs, "out_c": out_c, "k": (1, 1)} | more
    case = geometry(np.random.default_rng(inputs), **base, label=f"ends of {inputs}")
    return with_ties(case, [TIED]) if tied else case


def test_groups_end_by_lines_but_those_of_channels_without() -> None:
    case = case_of(16, 12)
    weights, bias, ends = (
        case.arrays["weights"].reshape(12, 16), np.asarray(case.arrays["bias"], np.int32), Ends.of(case.arrays, 12)
    )  # fmt: skip
    found = lines(weights, bias, ends, case.instr)[1] < 0
    assert not found[TIED]
    assert found.sum() > 8
    words = stream(weights[:, None], bias, ends, 0, case.instr).view(np.int32).reshape(3, -1)[:, -4:]
    np.testing.assert_array_equal((words < 0).all(1), found.reshape(3, 4).all(1))
    np.testing.assert_array_equal(words[1], ends.words[4:8])


def kernel_cases() -> Iterator[Case]:
    """Whole and other last blocks, odd pixels, rests of groups, clamps, strides and inputs that are gathered."""
    for inputs, clamp in itertools.product((36, 64, 76, 116), (None, (-100, 88))):
        yield case_of(inputs, 14, clamp=clamp, y_zp=-128 if clamp is None else 9)
    yield case_of(60, 16, tied=False, y_zp=-128)
    yield case_of(60, 13, w=31, stride=(1, 2), batch=2)
    for out_c in (128, 129):  # as many groups as there are bits of a word, and one more
        yield case_of(36, out_c, h=5, w=6)
    for clamp in (None, (-100, 88)):
        yield case_of(4, 16, k=(5, 2), pads=(2, 1, 2, 0), clamp=clamp)
    yield case_of(4, 16, k=(4, 4), planar=True)
    for inputs in (8, 16, 24, 32, 40, 48):
        yield case_of(inputs, 10, y_zp=7, h=3)
