"""Convolutions by Winograd's F(2x2, 3x3): the transformed weights, what is accepted, the kernel cases."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest

from glowc.kernels.dsp.winograd import CONV, prepare, transformed
from glowc.kernels.registry import variants_of
from glowc.program.ir import Instr
from glowc.select.candidates import worth_trying
from tests.kernels.case import Case
from tests.ops.test_conv import geometry

SAME = (1, 1, 1, 1)
B = np.asarray([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]])
A = np.asarray([[1, 1, 1, 0], [0, 1, -1, -1]])


def kernel_cases() -> Iterator[Case]:
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
    w, d = rng.integers(-255, 256, (5, 3, 3, 7)), rng.integers(-128, 128, (4, 4, 7))
    v = np.einsum("ia,abc,jb->ijc", B, d, B)
    u = transformed(w).astype(np.int64).reshape(5, 4, 4, 7)  # product (row, column) in the order columns 1, 2, 0, 3
    m = np.einsum("ojic,ijc->oij", u[:, (2, 0, 1, 3)], v)
    sums = np.einsum("yi,oij,xj->oyx", A, m, A)
    for y, x in itertools.product(range(2), range(2)):
        assert (sums[:, y, x] == 4 * np.einsum("oabc,abc->o", w, d[y : y + 3, x : x + 3])).all()


def test_transformed_weights_and_codes_fit_halfwords() -> None:
    assert np.abs(transformed(np.full((1, 3, 3, 1), -255)).astype(int)).max() == 9 * 255
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


def test_weights_take_two_bytes_for_each_of_16_products() -> None:
    case = geometry(np.random.default_rng(0), h=8, w=8, c=32, out_c=30, pads=SAME)
    packed = prepare(case.arrays, replace(case.instr, variant=CONV.name)).constants["weights"]
    assert packed.dtype == np.int16
    assert packed.nbytes == 32 * (2 * 16 * 32 + 8)  # 30 channels are 8 blocks of 4
    assert CONV.scratch_bytes(conv()) == 2048 + 768 + 12 * 32


def test_it_does_not_stream_rows_and_is_for_speed_only() -> None:
    assert CONV.speed_only
    assert not CONV.streams
