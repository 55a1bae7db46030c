"""Cases of depthwise windows that are printed: glowc/kernels/mve/depthwise.py."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from glowc.kernels.mve import depthwise
from tests.kernels.case import Case
from tests.ops.test_conv import geometry

KERNELS = "mve"


def kernel_cases() -> Iterator[Case]:
    """Depthwise windows: whole blocks of channels and halves, rows and columns outside, long rows, wide steps."""
    rng = np.random.default_rng(4)
    for (c, stride), k in itertools.product(((8, 1), (24, 2), (37, 1)), ((5, 5), (2, 7), (1, 17), (4, 1))):
        base: dict[str, Any] = {"c": c, "out_c": c, "group": c, "k": k, "stride": (stride, stride)}
        yield geometry(rng, h=6, w=19, **base, pads=(k[0] - 1, 3, 2, 3), label=f"window {k} of {c}, {stride}")
    base = {"c": 24, "out_c": 24, "group": 24}
    yield geometry(rng, h=3, w=44, **base, k=(1, 21), pads=(1, 5, 1, 5), label="long window, rows outside")
    yield geometry(rng, h=4, w=6, **base, k=(3, 5), pads=(4, 6, 4, 6), y_zp=-128, label="windows outside")
    yield geometry(rng, h=9, w=5, **base, k=(7, 5), rows=(2, 4), in_ring=8, out_ring=2, pads=(3, 2, 3, 2), descending=1)
    yield geometry(rng, h=6, w=9, **base, k=(5, 2), dilation=(2, 3), pads=(4, 1, 4, 2), clamp=(-80, 90), batch=2)
    for dilation in (31, 32):
        far: dict[str, Any] = {"k": (2, 2), "dilation": (1, dilation), "pads": (0, 1, 1, 2)}
        yield geometry(rng, h=3, w=40, **base, **far, label=f"columns {dilation} apart")
    for k in ((15, 17), (16, 16)):  # 255 weights of -128 are summed in 16 bits
        yield geometry(rng, h=3, w=4, **base, k=k, pads=(7, 8, 8, 8), extreme=True, x_zp=3, label=f"window {k}")
    yield from nine_cases()


def nine_cases() -> Iterator[Case]:
    """Nine taps: by lines and by scales, with limits and without, with and without channels that are left."""
    rng = np.random.default_rng(9)
    for c, clamp, stride in itertools.product((16, 23, 96, 103), ((-128, 127), (-80, 90)), (1, 2)):
        base: dict[str, Any] = {"c": c, "out_c": c, "group": c, "stride": (stride, stride), "clamp": clamp}
        yield geometry(
            rng, h=4, w=7, **base, pads=(1, 1, 1, 1), dilation=(1, stride), label=f"nine taps of {c}, {clamp}"
        )


def test_nine_taps_have_cases_of_all_kinds() -> None:
    plans = [depthwise.prepare(case.arrays, case.instr).plan for case in nine_cases()]
    single = [(plan.nine, plan.blocks) for plan in plans if plan.nine is not None and plan.merged == 1]
    kinds = {(nine.number > 0, nine.clamped, blocks > 0) for nine, blocks in single}
    assert kinds == set(itertools.product((False, True), repeat=3))
    assert any(plan.merged > 1 for plan in plans)


@pytest.mark.parametrize(("k", "dilation", "path"), [
    ((5, 17), 1, "window"), ((2, 18), 1, "any"), ((1, 18), 1, "window"), ((2, 2), 31, "window"), ((2, 2), 32, "any"),
    ((15, 17), 1, "window"), ((16, 16), 1, "any"), ((3, 3), 1, "nine"),
])  # fmt: skip
def test_windows_are_printed_where_weights_and_steps_fit(k: tuple[int, int], dilation: int, path: str) -> None:
    case = geometry(np.random.default_rng(0), h=20, w=60, c=16, out_c=16, group=16, k=k, dilation=(1, dilation))
    assert depthwise.prepare(case.arrays, case.instr).plan.path == path
