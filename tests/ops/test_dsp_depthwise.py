"""dwconv_s8 over planes of one channel: what is accepted, bands, words of rows, the kernel cases."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from glowc.kernels.base import plan_of, prepared_instr, spending
from glowc.kernels.common.sums import sums
from glowc.kernels.dsp.depthwise import DEPTHWISE, PlanarPlan, placed, prepare
from glowc.kernels.dsp.planar_tile import Window, rows
from glowc.program.ir import Instr
from tests.kernels.case import Case
from tests.ops.test_conv import geometry
from tests.ops.test_fixed_layers import fixed_cases
from tests.ops.test_straight import with_ties

KERNELS = "dsp"

SAME = (1, 1, 1, 1)


def kernel_cases() -> Iterator[Case]:
    """Those with a float32 scale, and every second one with a multiplier and a shift."""
    for index, case in enumerate(scaled_cases()):
        yield case
        if index % 2 == 0:
            yield from fixed_cases(case, index // 2)


def depthwise(rng: np.random.Generator, **more: Any) -> Case:
    """Return a case of as many groups as channels."""
    given = {"h": 5, "w": 8, "c": 8, "pads": SAME, **more}
    return geometry(rng, **{"out_c": given["c"], **given}, group=given["c"])


def scaled_cases() -> Iterator[Case]:
    """Windows and strides, widths around blocks, pads, endings, channels, rows in rings."""
    rng = np.random.default_rng(6)
    windows = ((3, 3), (1, 3), (1, 7), (2, 3), (3, 2), (3, 1), (5, 5), (4, 6), (7, 7), (3, 9), (1, 20))
    for k, stride in itertools.product(windows, (1, 2, 3)):
        pads = (k[0] // 2, k[1] // 2, k[0] // 2, k[1] // 2)
        yield depthwise(rng, h=7, w=11, k=k, stride=(stride, stride), pads=pads, label="depthwise, windows")
    for w, pad in itertools.product(range(1, 14), (0, 1)):
        yield depthwise(rng, w=max(w, 3 - 2 * pad), pads=(1, pad, 1, pad), label="depthwise, widths")
    for pads in ((0, 2, 0, 0), (2, 0, 1, 3), (0, 3, 2, 1), (3, 1, 4, 2)):
        for stride in ((1, 1), (2, 1), (1, 2)):
            yield depthwise(rng, h=6, w=9, pads=pads, stride=stride, batch=2, label="depthwise, pads")
    for dilation, w in itertools.product(((2, 1), (1, 2), (2, 3)), range(7, 14)):
        for k, stride in (((3, 3), (1, 1)), ((1, 5), (2, 1))):
            pads = (dilation[0], dilation[1], 0, 2 * dilation[1])
            yield depthwise(
                rng, h=7, w=w, k=k, stride=stride, dilation=dilation, pads=pads, label="depthwise, dilation"
            )
    yield depthwise(rng, h=20, w=1, k=(9, 1), pads=(4, 0, 4, 0), label="depthwise, steps")
    yield depthwise(rng, h=1, w=40, k=(1, 31), pads=(0, 15, 0, 15), label="depthwise, steps")
    for c, mult in ((4, 1), (5, 1), (6, 1), (7, 1), (13, 1), (4, 2), (6, 3), (9, 2)):
        yield depthwise(rng, c=c, out_c=c * mult, label=f"depthwise, channels {c}, {c * mult}")
    for clamp, zp in itertools.product((None, (-128, 60), (-20, 127), (-20, 60)), (-128, 5, 127)):
        yield depthwise(rng, h=3, clamp=clamp, y_zp=zp, label="depthwise, endings")
    for x_zp, w_zp in itertools.product((-128, 3, 127), (-128, 0, 127)):
        yield depthwise(rng, h=3, x_zp=x_zp, w_zp=w_zp, extreme=True, label="depthwise, extreme")
    for rows_, ring, out_ring, down in (
        ((0, 2), 4, 2, 0), ((2, 5), 5, 3, 0), ((1, 6), 6, 6, 0), ((1, 6), 6, 6, 1), ((2, 4), 4, 4, 1),
        ((3, 4), 4, 1, 1),
    ):  # fmt: skip
        for w in (5, 8):
            yield depthwise(rng, h=6, w=w, rows=rows_, in_ring=ring, out_ring=out_ring, descending=down, batch=2,
                            label="depthwise, rows")  # fmt: skip
    for h, w, c in ((40, 12, 4), (25, 5, 21), (12, 3, 10)):
        yield depthwise(rng, h=h, w=w, c=c, label="depthwise, bands")
    for pads, k in (((0, 1, 2, 1), (4, 3)), ((3, 2, 0, 0), (5, 5)), ((2, 0, 2, 0), (5, 1))):
        yield depthwise(rng, h=12, w=3, k=k, pads=pads, w_zp=2, batch=2, label="depthwise, upright")
    for first, end, down in ((0, 5, 0), (4, 9, 1), (8, 12, 0)):
        yield depthwise(rng, h=12, w=3, rows=(first, end), descending=down, label="depthwise, upright")
    for w, tied in itertools.product((5, 8), ((), (0,), (12,), (3, 4, 8), range(6), range(7))):
        yield with_ties(depthwise(rng, h=4, w=w, c=13, label="depthwise, no lines"), tied)
    for more in (1, 0, -40000):  # beyond, within and far within what a sum may be
        case = depthwise(rng, h=3, label="depthwise, large sums")
        bias = np.full(8, (1 << 23) - 1 - _most(case) + more, np.int32)
        scale = np.full(8, 100 / (1 << 23), np.float32)
        yield replace(case, arrays={**case.arrays, "bias": bias, "scale": scale})


def _most(case: Case) -> int:
    """Return the greatest sum of all channels without biases."""
    weights = case.arrays["weights"].reshape(-1, 8).T.astype(np.int64)
    return int(sums(weights, case.instr)[1].max())


def instr_of(**more: Any) -> Instr:
    """The instruction of a case with its plan."""
    case = depthwise(np.random.default_rng(0), **more)
    instr = replace(case.instr, variant=DEPTHWISE.name)
    return prepared_instr(instr, prepare(case.arrays, instr))


@pytest.mark.parametrize("more", [
    {"dilation": (1, 2), "stride": (1, 2)}, {"stride": (1, 5), "w": 20}, {"c": 3}, {"k": (1, 129), "w": 200},
    {"planar": True},
])  # fmt: skip
def test_what_it_cannot_is_not_accepted(more: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    assert DEPTHWISE.accepts(depthwise(rng).instr)
    assert not DEPTHWISE.accepts(depthwise(rng, **more).instr)


@pytest.mark.parametrize("fixed", [False, True])
def test_weights_take_a_byte_each(*, fixed: bool) -> None:
    case = depthwise(np.random.default_rng(0), c=12)
    case = next(fixed_cases(case, 0)) if fixed else case
    words = prepare(case.arrays, case.instr).constants["weights"]
    assert words.nbytes == 12 * (9 + 8 + fixed) + 4  # and a bit


def test_a_few_channels_without_lines_are_computed_apart() -> None:
    for tied, lined in (((), True), ((0, 9), True), (range(6), True), (range(7), False), (range(13), False)):
        case = with_ties(depthwise(np.random.default_rng(0), c=13), tied)
        prepared = prepare(case.arrays, case.instr)
        assert isinstance(prepared.plan, PlanarPlan)
        assert prepared.plan.lined == lined, tied
        bits = np.unpackbits(prepared.constants["weights"][-1:].view(np.uint8), bitorder="little")[:13]
        assert not bits[list(tied)].any()
        assert bits.sum() == 0 or lined


def test_a_window_has_every_tap_of_every_output_once() -> None:
    for k_w, stride, outputs in itertools.product(range(2, 10), (1, 2, 3), (2, 4)):
        window, found = Window(k_h=3, k_w=k_w, stride=stride, outputs=outputs), []
        for word in range(window.words):
            for output, op, tap in window.products(word):
                used = {"smlad": ((0, 0), (1, 1)), "smlatb": ((1, 0),), "smlabt": ((0, 1),)}[op]
                for half, part in used:
                    assert 2 * word + half == output * stride + tap + part
                    found.append((output, tap + part))
        assert sorted(found) == [(output, tap) for output in range(outputs) for tap in range(k_w)]


def test_every_window_that_fits_has_registers() -> None:
    sides = (1, 2, 3, 4, 5, 7, 9), (2, 3, 4, 5, 6, 7, 9, 14, 31)
    windows = [
        Window(k_h=k_h, k_w=k_w, stride=stride, outputs=outputs)
        for k_h, k_w, stride, outputs in itertools.product(*sides, (1, 2, 3, 4), (2, 4))
    ]
    assert {w.stride for w in windows if w.fits and w.outputs == 4} == {1, 2}
    for window in (w for w in windows if w.fits):
        for by in ("line", "scale", "multiplier"):
            assert rows(window, by, limited=True)[0]


def test_more_scratch_is_for_more_of_a_layer_in_a_band() -> None:
    instr = instr_of(h=40, w=40, c=8)
    assert DEPTHWISE.scratch_bytes(instr) <= 3072
    plans = [plan_of(spending(instr, DEPTHWISE, size), PlanarPlan) for size in range(3 << 10, 40 << 10, 1 << 10)]
    found = [plan.rows * plan.channels for plan in plans]
    assert found == sorted(found)
    assert plans[0] == instr.plan
    assert plans[-1].rows > plans[0].rows
    assert plan_of(instr_of(h=6, w=6, c=200), PlanarPlan).channels > 4, "small images"


@pytest.mark.parametrize(("h", "w", "flat", "upright"), [
    (4, 3, True, False), (25, 5, True, True), (25, 8, False, False), (12, 12, False, False),
])  # fmt: skip
def test_narrow_rows_are_one_where_that_takes_fewer_blocks(h: int, w: int, *, flat: bool, upright: bool) -> None:
    plan = plan_of(instr_of(h=h, w=w, c=64), PlanarPlan)
    assert (plan.flat, plan.upright) == (flat, upright)


def test_planes_of_rings_are_not_upright() -> None:
    instr = instr_of(h=25, w=5, c=64)
    assert placed(instr) == instr.plan
    for key in ("in_ring", "out_ring"):
        ringed = replace(instr, params={**instr.params, key: 4})
        found = replace(ringed, plan=placed(ringed))
        assert not plan_of(found, PlanarPlan).upright
        assert DEPTHWISE.scratch_bytes(found) <= DEPTHWISE.scratch_bytes(instr)
