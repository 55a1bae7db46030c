"""Convolutions by Winograd's F(2x2, 3x3): bounds, what is accepted, passes and groups, the kernel cases."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest

from glowc.kernels.base import UNFIT, plan_of, prepared_instr, spending
from glowc.kernels.dsp.winograd import CONV, WinogradPlan, prepare
from glowc.kernels.registry import variants_of
from glowc.program.ir import Instr
from glowc.select.candidates import worth_trying
from tests.kernels.case import Case
from tests.ops.test_conv import geometry
from tests.ops.test_fixed_layers import fixed_cases

KERNELS = "dsp"

SAME = (1, 1, 1, 1)
B = np.asarray([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]])
G = np.asarray([[2, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 2]])  # twice that of the formula
A = np.asarray([[1, 1, 1, 0], [0, 1, -1, -1]])


def kernel_cases() -> Iterator[Case]:
    """Those with a float32 scale, and every second one with a multiplier and a shift."""
    for index, case in enumerate(scaled_cases()):
        yield case
        if index % 2 == 0:
            yield from fixed_cases(case, index // 2)


def scaled_cases() -> Iterator[Case]:
    """Sizes around tiles of 2 x 4 outputs, all pads and endings, partial blocks of channels, rows in rings."""
    rng = np.random.default_rng(5)
    deep: dict[str, Any] = {"c": 64, "out_c": 12}
    for h, w in ((1, 8), (2, 4), (3, 3), (4, 5), (5, 6), (6, 7), (7, 8), (3, 12)):
        yield geometry(rng, h=h, w=w, **deep, pads=SAME, label="winograd, size")
    for pads in ((0, 0, 0, 0), (2, 0, 1, 3), (0, 2, 0, 0), (1, 3, 2, 1), (0, 1, 3, 0)):
        yield geometry(rng, h=6, w=8, **deep, pads=pads, batch=2, label="winograd, pads")
    for c, out_c in ((8, 16), (12, 8), (16, 11), (20, 10), (32, 7), (64, 4), (68, 8), (70, 8), (132, 9)):
        yield geometry(rng, h=4, w=8, c=c, out_c=out_c, pads=SAME, label=f"winograd, channels {c}, {out_c}")
    for clamp, zp in itertools.product((None, (-128, 60), (-20, 127), (-20, 60)), (-128, 5, 127)):
        yield geometry(rng, h=4, w=8, **deep, pads=SAME, clamp=clamp, y_zp=zp, label="winograd, endings")
    for x_zp, w_zp in itertools.product((-128, 3, 127), (-128, 0, 127)):
        yield geometry(rng, h=4, w=4, **deep, pads=SAME, x_zp=x_zp, w_zp=w_zp, extreme=True, label="winograd, extreme")
    for rows, ring, out_ring, down in (
        ((0, 2), 4, 2, 0), ((2, 5), 5, 3, 0), ((1, 6), 6, 6, 0), ((1, 6), 6, 6, 1), ((2, 4), 4, 4, 1),
        ((3, 4), 4, 1, 1),
    ):  # fmt: skip
        yield geometry(rng, h=6, w=8, **deep, pads=SAME, rows=rows, in_ring=ring, out_ring=out_ring, descending=down,
                       batch=2, label="winograd, rows")  # fmt: skip
    for bias in (0, 1 << 24, -(1 << 30)):
        case = geometry(rng, h=4, w=8, **deep, pads=SAME, per_channel=False, label="winograd, bias")
        case.arrays["bias"][:] += bias
        yield case


def conv(**more: Any) -> Instr:
    """The instruction of a case, as this variant."""
    case = geometry(np.random.default_rng(0), **{"h": 8, "w": 8, "c": 32, "out_c": 32, "pads": SAME, **more})
    return replace(case.instr, variant=CONV.name)


def test_sums_of_a_tile_are_four_times_those_of_the_definition() -> None:
    rng = np.random.default_rng(1)
    w, d = rng.integers(-128, 128, (5, 3, 3, 7)), rng.integers(-128, 128, (4, 4, 7))
    v = np.einsum("ia,abc,jb->ijc", B, d, B)
    u = np.einsum("ia,oabc,jb->oijc", G, w, G)
    sums = np.einsum("yi,oij,xj->oyx", A, np.einsum("oijc,ijc->oij", u, v), A)
    for y, x in itertools.product(range(2), range(2)):
        assert (sums[:, y, x] == 4 * np.einsum("oabc,abc->o", w, d[y : y + 3, x : x + 3])).all()


def test_products_of_weights_and_codes_fit_halfwords() -> None:
    assert np.abs(G).sum(1).max() ** 2 * 128 < 1 << 15
    assert np.abs(B).sum(1).max() ** 2 * 128 < 1 << 15


def test_four_times_the_largest_sum_fits_int32() -> None:
    assert CONV.accepts(conv(c=1024, h=4, w=4))
    assert 4 * 9 * 1024 * 255 * 128 < 1 << 31
    assert not CONV.accepts(conv(c=1028, h=4, w=4))


@pytest.mark.parametrize(
    "more",
    [
        {"stride": (2, 2)}, {"stride": (1, 2)}, {"dilation": (2, 1)}, {"k": (3, 5)}, {"k": (1, 1)}, {"c": 30},
        {"c": 32, "planar": True},
    ],
)  # fmt: skip
def test_what_it_cannot_is_not_accepted(more: dict[str, Any]) -> None:
    assert CONV.accepts(conv())
    assert not CONV.accepts(conv(**more))


@pytest.mark.parametrize("more", [{"h": 1, "w": 1}, {"w": 1}, {"c": 4, "out_c": 4}])
def test_what_does_not_pay_is_not_tried(more: dict[str, Any]) -> None:
    for instr, pays in ((conv(), True), (conv(**more), False)):
        macs = 9 * prod(instr.int_(key) for key in ("out_h", "out_w", "in_c", "out_c"))
        forms = {
            v: replace(instr, macs=macs) for v in variants_of("conv_s8") if v.stated is not None and v.accepts(instr)
        }
        assert (CONV in worth_trying(forms)) == pays


def prepared(**more: Any) -> Instr:
    """The instruction of a case with its plan."""
    case = geometry(np.random.default_rng(0), **{"h": 8, "w": 8, "c": 32, "out_c": 32, "pads": SAME, **more})
    instr = replace(case.instr, variant=CONV.name)
    return prepared_instr(instr, prepare(case.arrays, instr))


def test_weights_take_a_byte_each() -> None:
    words = prepared(out_c=30).operand("weights").type.elements
    assert 4 * words == 9 * 32 * 30 + 8 * 30


@pytest.mark.parametrize(("w_zp", "least", "most", "fits"), [
    (0, -128, 127, True), (1, -127, 127, True), (1, -128, 127, False), (-1, -128, 126, True), (-1, -128, 127, False),
])  # fmt: skip
def test_weights_less_their_zero_point_are_bytes(w_zp: int, least: int, most: int, fits: bool) -> None:
    case = geometry(np.random.default_rng(0), h=4, w=4, c=8, pads=SAME, w_zp=w_zp)
    case.arrays["weights"][:] = 0
    case.arrays["weights"].reshape(-1)[:2] = least, most
    assert (prepare(case.arrays, replace(case.instr, variant=CONV.name)) != UNFIT) == fits


def test_more_scratch_is_for_fewer_passes_and_larger_groups() -> None:
    instr, found = prepared(c=64, out_c=64), []
    assert CONV.scratch_bytes(instr) < 16 << 10
    assert spending(instr, CONV, 4 << 10) == instr
    for size in range(15 << 10, 160 << 10, 2 << 10):
        wide = spending(instr, CONV, size)
        plan = plan_of(wide, WinogradPlan)
        assert CONV.scratch_bytes(wide) <= size
        found.append((plan.channels, plan.rows))
    assert [channels for channels, _ in found] == sorted(channels for channels, _ in found)
    assert found[0] == (4, 2)
    assert found[-1] == (64, 2)


def test_it_does_not_stream_rows() -> None:
    assert not CONV.streams
