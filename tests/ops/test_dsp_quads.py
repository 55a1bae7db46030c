"""Convolutions of more than four pixels at a time on SMLAD: a flash cache keeps weights, in part, for the next four."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from glowc.kernels.base import KernelVariant, prepare, prepared_instr
from glowc.kernels.common.sums import sums
from glowc.kernels.dsp.conv import ConvPlan
from glowc.kernels.dsp.stream import words_before
from glowc.kernels.features import features
from glowc.kernels.registry import variants_of
from glowc.ops.registry import all_ops  # noqa: F401
from tests.kernels.case import Case
from tests.ops.test_conv import geometry
from tests.ops.test_dsp_forms import spoiled
from tests.ops.test_fixed_layers import fixed_cases
from tests.ops.test_straight import with_ties

KERNELS = "dsp"

ENDS = ((3, None), (-128, None), (-128, (-128, 60)), (-4, (-20, 90)))
SIZES = ((4, 4), (1, 17), (3, 6), (1, 19), (5, 4), (3, 7), (1, 22), (1, 23))  # all rests of pixels, and rows of four


def plain_cases() -> Iterator[Case]:
    """Whole and broken blocks of pixels, both orders, one and several images; chunks of steps that begin late."""
    rng = np.random.default_rng(67)
    for (h, w), (y_zp, clamp), down in zip(SIZES, itertools.cycle(ENDS), itertools.cycle((0, 1, 1))):
        base = {"h": h, "w": w, "k": (1, 1), "y_zp": y_zp, "clamp": clamp, "descending": down}
        yield geometry(rng, c=8 + 4 * (h * w % 7), out_c=32, **base, label=f"{h * w} pixels")  # type: ignore[arg-type]
        yield geometry(rng, c=104, out_c=14, batch=2, x_zp=5, **base, label=f"2 x {h * w}")  # type: ignore[arg-type]
    yield spoiled(geometry(rng, h=5, w=5, c=20, out_c=32, k=(1, 1), label="-128"), ("negated",))


def planar_cases() -> Iterator[Case]:
    """Kernels three columns wide on planar images: all rests of a row, borders on all sides, rings, both orders."""
    rng = np.random.default_rng(68)
    forms = zip(
        itertools.cycle((1, 2, 1, 2)), itertools.cycle((3, 1, 2, 3)), itertools.cycle(ENDS)
    )  # each is a function
    for w, (stride, c, (y_zp, clamp)), down in zip((4, 5, 7, 8, 9, 11, 13, 18, 37), forms, itertools.cycle((0, 1, 1))):
        base = {"h": 5, "w": (w - 1) * stride + 1, "c": c, "out_c": 6, "planar": True, "stride": (stride, stride)}
        base |= {"y_zp": y_zp, "clamp": clamp, "descending": down, "pads": (1, 1, 1, 1), "label": f"{w} of a row"}
        yield geometry(rng, **base, k=(3, 3), x_zp=5)  # type: ignore[arg-type]
        yield geometry(rng, **base | {"h": 7}, k=(2, 3), batch=2, dilation=(2, 1))  # type: ignore[arg-type]
    rings = {"h": 9, "w": 12, "c": 3, "out_c": 4, "planar": True, "pads": (1, 1, 1, 1)}
    yield geometry(rng, **rings, out_ring=4, rows=(2, 5), label="ring")  # type: ignore[arg-type]


def lined_cases() -> Iterator[Case]:
    """Some pairs of channels without lines; factors and sums beside the bounds of what a line may have."""
    rng = np.random.default_rng(69)
    for tied, (y_zp, clamp) in zip(((), (0,), (5,), (2, 3, 8), range(4, 10), (11, 13)), itertools.cycle(ENDS)):
        for shape in ({"h": 1, "w": 9, "k": (1, 1), "c": 20}, {"h": 4, "w": 6, "k": (3, 3), "c": 3, "planar": True}):
            yield with_ties(geometry(rng, **shape, out_c=14, y_zp=y_zp, clamp=clamp), tied)  # type: ignore[arg-type]
    base = {"h": 1, "w": 9, "k": (1, 1), "c": 24}
    yield with_ties(geometry(rng, **base, out_c=13), (3,))  # type: ignore[arg-type]
    yield spoiled(geometry(rng, **base, out_c=12), ("negated", "none", "signed"))  # type: ignore[arg-type]
    for factor in (0.999 / 32, 1.001 / 32, 0.0):
        yield scaled(geometry(rng, **base, out_c=8), factor)  # type: ignore[arg-type]
    for more in (-1000, 1000):  # biases of an even channel, and of an odd one, below and beyond 2^23 in all
        case = geometry(rng, **base, out_c=8)  # type: ignore[arg-type]
        bias = np.array(case.arrays["bias"])
        bias[2:4] = (
            (1 << 23)
            + more
            - int(sums(case.arrays["weights"].reshape(8, -1).astype(np.int64), case.instr)[1][2:4].max())
        )
        scale = np.full(8, 100 / (1 << 23), np.float32)
        yield replace(case, arrays={**case.arrays, "bias": bias, "scale": scale})


def batch_cases() -> Iterator[Case]:
    """Pixels that fill no batch, rests of inputs, odd channels, images, strides, both orders, wide weights."""
    rng = np.random.default_rng(70)
    forms: tuple[dict[str, object], ...] = (
        {"h": 3, "w": 5, "c": 130, "out_c": 9},
        {"h": 2, "w": 7, "c": 131, "out_c": 12},
        {"h": 5, "w": 6, "c": 116, "out_c": 11, "stride": (2, 2)},
        {"h": 1, "w": 9, "c": 128, "out_c": 8},
        {"h": 3, "w": 5, "c": 66, "out_c": 7, "x_zp": 7, "extreme": True},
    )
    for form, (y_zp, clamp), down in zip(forms, itertools.cycle(ENDS), itertools.cycle((0, 1))):
        base = {"k": (1, 1), "y_zp": y_zp, "clamp": clamp, "descending": down, "batch": 2, "label": "batches"}
        yield geometry(rng, **form | base)  # type: ignore[arg-type]


def scaled(case: Case, factor: float) -> Case:
    """Return a case with a factor of its first channel."""
    scale = np.array(case.arrays["scale"])
    scale[0] = factor
    return replace(case, arrays={**case.arrays, "scale": scale})


def kernel_cases() -> Iterator[Case]:
    """The same with a float32 scale and with TensorFlow Lite's multiplier and shift."""
    for index, case in enumerate((*plain_cases(), *planar_cases(), *lined_cases(), *batch_cases())):
        yield case
        yield from fixed_cases(case, index)


def quad(kernel: str = "conv_s8") -> KernelVariant:
    return next(v for v in variants_of(kernel) if v.name == "dsp_quad")


def wanted(case: Case) -> int:
    """Return the bytes with which a convolution computes eight pixels at a time; 0 where it does not."""
    variant = quad()
    assert variant.keeps is not None
    prepared = prepare(variant, case.arrays, case.instr)
    instr = prepared_instr(case.instr, prepared)
    every, near = variant.wanted_bytes(instr) or (0, 0)
    sizes = {near: (2, False), every: (2, True), every + near: (4, True), every + 3 * near: (8, True)} if every else {}
    for size, (quads, kept) in sizes.items():
        more = variant.keeps(prepared.constants, instr, size, 0)
        assert more is not None
        assert isinstance(more.plan, ConvPlan)
        assert (more.plan.quads, more.plan.kept > 0) == (quads, kept)
        assert variant.scratch_bytes(replace(instr, plan=more.plan)) == size
    return near


@pytest.mark.parametrize(
    ("changes", "size"),
    [
        ({}, 2 * 4 * 64 * 2),
        ({"c": 104}, 2 * 4 * 104 * 2),  # a pair of channels takes 224 bytes of flash
        ({"c": 108}, 0),
        ({"c": 62}, 0),  # a rest after whole words
        ({"out_c": 63}, 0),  # half a pair
        ({"w": 4}, 1024),
        ({"w": 3}, 0),
        ({"stride": (2, 2)}, 0),
        ({"k": (3, 3), "pads": (1, 1, 1, 1)}, 0),
        ({"in_ring": 3}, 0),
        ({"out_ring": 3}, 0),
        ({"descending": 1}, 1024),
        ({"k": (3, 3), "planar": True, "c": 3}, 2 * 4 * 28 * 2),
        ({"k": (3, 3), "planar": True, "c": 3, "stride": (2, 2)}, 2 * 4 * 28 * 2),
        ({"k": (3, 3), "planar": True, "c": 3, "out_ring": 3}, 2 * 4 * 28 * 2),
        ({"k": (3, 3), "planar": True, "c": 3, "w": 5}, 0),  # rows of three pixels
        ({"k": (3, 3), "planar": True, "c": 5}, 2 * 4 * 48 * 2),
    ],
)
def test_eight_pixels_are_for_rows_in_line_and_weights_that_a_cache_keeps(changes: dict[str, int], size: int) -> None:
    shape = {"h": 9, "w": 9, "c": 64, "out_c": 64, "k": (1, 1)} | changes
    assert wanted(geometry(np.random.default_rng(3), **shape)) == size  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "fours", "near", "expected"),
    [
        ({}, 8, 4096, (8, 0)),  # all in one pass
        ({}, 5, 4096, (4, 0)),
        ({}, 3, 4096, (2, 0)),
        ({}, 1, 4096, None),
        ({}, 8, 300, None),  # a pair of channels takes 336 bytes of flash
        ({}, 8, 0, None),
        ({"w": 6}, 8, 0, (1, 26)),  # 18 pixels: their weights are read often enough to be copied
        ({"w": 6}, 8, 4096, (8, 0)),
        ({"w": 16}, 8, 4096, (8, 0)),  # two passes
        ({"w": 16}, 48, 4096, (1, 32)),
        ({"w": 1, "h": 4}, 8, 4096, None),  # read once
        ({"c": 64}, 8, 4096, None),
    ],
)
def test_batches_are_for_layers_that_then_read_less_than_with_weights_kept(
    changes: dict[str, int], fours: int, near: int, expected: tuple[int, int] | None
) -> None:
    shape = {"h": 3, "w": 5, "c": 160, "out_c": 64, "k": (1, 1)} | changes
    case = geometry(np.random.default_rng(3), **shape)  # type: ignore[arg-type]
    variant = quad()
    assert variant.keeps is not None
    prepared = prepare(variant, case.arrays, case.instr)
    instr = replace(prepared_instr(case.instr, prepared), variant=variant.name)
    found = variant.keeps(prepared.constants, instr, fours * variant.scratch_bytes(instr), near)
    plan = None if found is None else found.plan
    assert plan is None or isinstance(plan, ConvPlan)
    assert (None if plan is None else (plan.fours, plan.kept // (4 * (plan.head + 80)))) == expected
    assert plan is None or features(replace(instr, plan=plan))["reread"] < features(instr)["reread"]


def plan_of_case(case: Case) -> ConvPlan:
    plan = prepare(quad(), case.arrays, case.instr).plan
    assert isinstance(plan, ConvPlan)
    return plan


def test_pairs_end_by_lines_where_half_of_them_have_any() -> None:
    case = geometry(np.random.default_rng(69), h=1, w=9, k=(1, 1), c=24, out_c=8)
    for tied, lined in (((), True), ((2,), True), ((2, 4), True), ((2, 4, 6), False), (range(8), False)):
        assert plan_of_case(with_ties(case, tied)).lined == lined, tied


def test_pairs_without_lines_are_told_apart_or_no_pair_has_any() -> None:
    case = geometry(np.random.default_rng(69), h=1, w=9, k=(1, 1), c=24, out_c=8)
    assert plan_of_case(scaled(case, 0.9)).lined
    assert not plan_of_case(scaled(case, 0.0)).lined, "its scale looks like a multiplier"
    assert not plan_of_case(scaled(case, 40.0)).lined, "its codes leave 32 bits"


def test_multipliers_have_fewer_bits_than_scales() -> None:
    case = geometry(np.random.default_rng(69), h=1, w=9, k=(1, 1), c=24, out_c=8)
    for factor, lined in ((0.999 / 32, True), (1.001 / 32, False)):
        given = scaled(case, factor)
        words = prepare(quad(), given.arrays, given.instr).constants["weights"].view(np.uint32)
        second = int(words[1 + words_before(12, 1)])
        assert second < 1 << 29 if lined else second == int(np.float32(factor).view(np.uint32))
