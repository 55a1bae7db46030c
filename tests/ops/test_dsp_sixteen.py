"""Kernel cases of convolutions of 16-bit inputs: edges, odd runs, rings, few channels; long and short endings."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from glowc.graph.types import DType
from glowc.kernels.base import UNFIT, prepare
from glowc.kernels.registry import variants_of
from glowc.ops.registry import all_ops  # noqa: F401
from glowc.program.ir import ParamValue
from tests.kernels.case import Case, make_case
from tests.ops.dense import make_dense
from tests.ops.test_conv import geometry
from tests.ops.test_requant_shift import conv_case, fc_case

KERNELS = "dsp"


def kernel_cases() -> Iterator[Case]:
    """Windows of every kind with both endings."""
    rng = np.random.default_rng(12)
    for (c, k), stride, planar in itertools.product(
        ((1, (1, 1)), (1, (10, 4)), (2, (1, 1)), (3, (3, 3)), (4, (2, 5)), (7, (3, 2))), (1, 2, 3), (False, True)
    ):
        pads = (k[0] // 2, k[1] // 2, k[0] // 2, k[1] - 1)
        yield geometry(
            rng, h=11, w=9, c=c, out_c=5, k=k, stride=(stride, stride), pads=pads, planar=planar, dtype=DType.S16,
            x_zp=0, y_zp=-77, w_zp=stride - 1, per_channel=planar,
        )  # fmt: skip
    wide = {"c": 3, "h": 6, "w": 7, "dtype": DType.S16, "x_zp": 0, "y_zp": 12}
    for out_c, batch in ((2, 1), (16, 2), (17, 1), (37, 1)):
        yield geometry(rng, **wide, out_c=out_c, batch=batch, pads=(1, 1, 1, 1), clamp=(-9000, 20000))  # type: ignore[arg-type]
    for rows, ring, out_ring, down in (((0, 2), 3, 1, 0), ((2, 5), 4, 2, 0), ((3, 6), 6, 6, 1), ((1, 2), 3, 1, 1)):
        part = {"rows": rows, "in_ring": ring, "out_ring": out_ring, "descending": down}
        yield geometry(rng, **wide, out_c=6, pads=(1, 1, 1, 1), **part)  # type: ignore[arg-type]
        yield geometry(rng, **wide, out_c=6, pads=(2, 2, 2, 2), dilation=(2, 1), **part)  # type: ignore[arg-type]
    for clamp in ((-32768, 32767), (0, 32767), (-5, 700)):
        around = {"dtype": DType.S16, "x_zp": 0, "y_zp": 0, "pads": (1, 1, 1, 1), "clamp": clamp}
        for c, out_c in ((3, 5), (16, 24), (9, 8)):
            yield geometry(rng, h=5, w=7, c=c, out_c=out_c, **around)  # type: ignore[arg-type]
        yield geometry(rng, h=5, w=7, c=11, out_c=11, group=11, **around)  # type: ignore[arg-type]
        yield geometry(rng, h=4, w=5, c=16, out_c=33, k=(1, 1), **{**around, "pads": (0, 0, 0, 0)})  # type: ignore[arg-type]
        yield plain_fc_case(rng, 19, 7, 3, 0, (0, *clamp))
    yield from spread_cases(rng)
    yield from depthwise_cases(rng)
    yield from zero_point_cases()
    yield from shifted_cases(rng)
    for in_k, n, count in ((1, 2, 1), (3, 5, 2), (16, 6, 1), (33, 7, 3), (64, 2, 1)):
        yield without_zero(fc_case(rng, DType.S16, in_k, n, count))
        for w_zp in (0, -128, 127):
            yield plain_fc_case(rng, in_k, n, count, w_zp)


def spread_cases(rng: np.random.Generator) -> Iterator[Case]:
    """Kernel rows whose taps lie apart: even and odd channels, planes, zero points, limits, some rows."""
    for (c, k), planar, x_zp in itertools.product(((1, (2, 3)), (3, (3, 2)), (8, (3, 3))), (False, True), (0, 300)):
        yield geometry(
            rng, h=9, w=11, c=c, out_c=5, k=k, dilation=(3 - c % 2, 2 + c // 3), pads=(2, 3, 1, 4),
            stride=(1, 1 + c // 8), planar=planar, dtype=DType.S16, x_zp=x_zp, y_zp=-9, clamp=(-20000, 30000),
        )  # fmt: skip
    part = {"rows": (1, 4), "in_ring": 7, "out_ring": 3, "descending": 1, "pads": (2, 2, 2, 2), "dilation": (2, 3)}
    yield geometry(rng, h=7, w=9, c=6, out_c=18, dtype=DType.S16, x_zp=0, y_zp=12, **part)  # type: ignore[arg-type]


def without_zero(case: Case) -> Case:
    """Return the case with inputs around 0."""
    return replace(case, instr=replace(case.instr, params={**case.instr.params, "in_zp": 0}))


def plain_fc_case(
    rng: np.random.Generator, k: int, n: int, rows: int, w_zp: int, ends: tuple[int, int, int] = (-7, -30000, 32767)
) -> Case:
    """Return one fc_s16 case."""
    arrays: dict[str, np.ndarray] = {
        "in": rng.integers(-32768, 32768, (rows, k)).astype(np.int16),
        "weights": rng.integers(-128, 128, (n, k)).astype(np.int8),
        "bias": rng.integers(-3000, 3000, n).astype(np.int32),
        "scale": rng.uniform(0.0001, 0.01, n).astype(np.float32),
    }
    params: dict[str, ParamValue] = {"in_zp": 0, "w_zp": w_zp, "out_zp": ends[0], "scale_step": 1}
    params |= {"out_min": ends[1], "out_max": ends[2]}
    return make_dense("fc_s16", arrays, params, out=DType.S16)


def depthwise_cases(rng: np.random.Generator) -> Iterator[Case]:
    """Tails of channels, strides, dilations, rings."""
    edge = (1, 2, 2, 1)
    for c, stride, w_zp in itertools.product((4, 7, 16), (1, 2, 3), (0, 9)):
        base = {"h": 7, "w": 8, "c": c, "out_c": c, "group": c, "dtype": DType.S16, "x_zp": 0, "y_zp": 5, "w_zp": w_zp}
        yield geometry(rng, **base, stride=(stride, stride), pads=edge, batch=2)  # type: ignore[arg-type]
        yield geometry(rng, **base, dilation=(2, stride), pads=edge, per_channel=False)  # type: ignore[arg-type]
        yield geometry(rng, **base, pads=edge, rows=(1, 4), in_ring=5, out_ring=3, descending=1)  # type: ignore[arg-type]


def zero_point_cases() -> Iterator[Case]:
    """Depthwise layers of codes that are not around 0: borders, strides, rings, sums beside 32 bits."""
    rng = np.random.default_rng(72)
    for c, x_zp, w_zp in itertools.product((8, 11, 24), (-1924, 32767), (0, 5)):
        zeros = {"x_zp": x_zp, "y_zp": 900, "w_zp": w_zp, "dtype": DType.S16}
        base = {"h": 6, "w": 7, "c": c, "out_c": c, "group": c} | zeros
        yield geometry(rng, **base, pads=(1, 2, 2, 1), batch=2)  # type: ignore[arg-type]
        yield geometry(rng, **base, k=(1, 9), dilation=(1, 2), pads=(0, 8, 0, 8))  # type: ignore[arg-type]
        yield geometry(rng, **base, k=(4, 4), stride=(2, 2), pads=(3, 0, 1, 3), rows=(1, 3), in_ring=6)  # type: ignore[arg-type]
        yield geometry(rng, **base | {"y_zp": 0}, clamp=(-9000, 20000))  # type: ignore[arg-type]
    yield from (long_window(taps) for taps in FITTING)


FITTING = {250: True, 260: False}
"""Taps of 8 bits, and whether sums of codes from -32768 on, less that zero point, are sure to fit 32 bits."""


def long_window(taps: int) -> Case:
    """Return a depthwise layer whose sums are far from 32 bits for its inputs."""
    base = {"h": 1, "w": taps + 1, "c": 8, "out_c": 8, "group": 8, "dtype": DType.S16, "x_zp": -32768, "y_zp": 900}
    case = geometry(np.random.default_rng(73), **base, k=(1, taps))  # type: ignore[arg-type]
    case.arrays["weights"][:] = 127
    case.arrays["in"] //= 2
    return case


@pytest.mark.parametrize("isa", ["dsp", "mve", "a64", "a32"])
@pytest.mark.parametrize(("taps", "fits"), FITTING.items())
def test_zero_points_are_in_biases_where_sums_fit_32_bits(taps: int, isa: str, *, fits: bool) -> None:
    case = long_window(taps)
    (variant,) = (v for v in variants_of("dwconv_s16") if v.name == isa)
    assert variant.accepts(replace(case.instr, variant=isa))
    assert (prepare(variant, case.arrays, case.instr) is not UNFIT) == fits


def shifted_cases(rng: np.random.Generator) -> Iterator[Case]:
    """Multipliers for which 32 bits are enough, and larger ones; limits within eight bits."""
    shapes = ((1, 7, 5, 6), (3, 16, 6, 5), (16, 18, 4, 9), (4, 33, 3, 4))
    for kind, shape, planar, size in itertools.product((DType.S8, DType.S16), shapes, (False, True), (514, 90000)):
        case = conv_case(rng, kind, planar=planar, shape=shape)
        case.arrays["mul"][:] = rng.integers(size // 2, size, shape[1]) * rng.choice((-1, 1, 1), shape[1])
        limits = {"out_min": -100, "out_max": 90} if shape[0] == 3 else {}
        yield replace(case, instr=replace(case.instr, params={**case.instr.params, **limits}))
        if kind is DType.S16:
            case.arrays["weights"] //= 20  # sums of one channel below 2^21
            halfword = {"out_zp": 9, "out_min": -30000, "out_max": 32767}
            yield to_halfwords(replace(case, instr=replace(case.instr, params={**case.instr.params, **halfword})))


def to_halfwords(case: Case) -> Case:
    """Return the case with codes of 16 bits."""
    arrays = {role: array for role, array in case.arrays.items() if role != "out"}
    out = {"out": (case.instr.operand("out").type.shape, DType.S16)}
    return make_case(case.instr.kernel, arrays, case.instr.params, rows=case.instr.rows, out=out)
