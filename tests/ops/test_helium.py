"""Cases that reach the paths of the `mve` kernels: glowc/kernels/mve/conv_plans.py, depthwise.py, add.py ..."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from glowc.graph.numerics import fma, requantize, softmax_exp_table
from glowc.graph.types import DType, quant
from glowc.kernels.base import UNFIT, prepare, prepared_instr
from glowc.kernels.common.factors import Ends
from glowc.kernels.common.float_shift import float_form
from glowc.kernels.mve import conv, conv_plans, zero
from glowc.kernels.mve.add import short_sum
from glowc.kernels.mve.depthwise import nine_taps, pairs_fit
from glowc.kernels.mve.shared import overlap_bytes
from glowc.kernels.mve.stream import folded_bias, stream
from glowc.kernels.shapes import Conv, axis_keys
from glowc.ops.binary_codes import add_codes
from glowc.program.ir import Instr, ParamValue
from tests.kernels.case import Case, make_case
from tests.ops.test_conv import geometry
from tests.ops.test_fixed_layers import fixed_cases
from tests.ops.test_fully_connected import layer
from tests.ops.test_requant_shift import ENDS, conv_case, fc_case

KERNELS = "mve"


def kernel_cases() -> Iterator[Case]:
    """Return the cases of all paths."""
    rng = np.random.default_rng(8)
    yield from blocks(np.random.default_rng(9))
    yield from pixel_runs(rng)
    yield from packed_pixels(rng)
    yield from planes(rng)
    yield from windows(np.random.default_rng(10))
    yield from quotients(rng)
    yield from shifts(rng)


def blocks(rng: np.random.Generator) -> Iterator[Case]:
    """More weights than a data cache keeps: some channels of all pixels, then the next ones."""
    mores: tuple[dict[str, Any], ...] = ({}, {"batch": 2}, {"rows": (1, 4)}, {"descending": 1})
    for out_c, stride, more in zip((62, 64, 90, 62), (1, 2, 1, 1), mores, strict=True):
        base = {"h": 5, "w": 6, "c": 48, "out_c": out_c, "stride": (stride, stride), "pads": (1, 1, 1, 1), **more}
        case = geometry(rng, **base, label="blocks of channels")
        yield case
        yield from fixed_cases(case, out_c)
        for w_zp in (0, 9):
            point = {**base, "c": 400, "k": (1, 1), "pads": (0, 0, 0, 0), "w_zp": w_zp}
            case = geometry(rng, **point, label="blocks of channels, 1x1")
            yield case
            yield from fixed_cases(case, out_c)
        yield geometry(rng, **{**base, "c": 16}, dtype=DType.F32, label="blocks of channels, float")
    for rows, k, n in ((3, 400, 62), (8, 270, 95), (5, 333, 160)):
        case = layer(rng, k, n, rows=rows)
        yield case
        yield from fixed_cases(case, n)


def pixel_runs(rng: np.random.Generator) -> Iterator[Case]:
    """1x1 convolutions whose rows are long, of 8, 16 and 32 inputs; and short rows that are joined."""
    for c, w, out_c in itertools.product((8, 16, 32), (8, 9, 13), (3, 4, 9)):
        yield geometry(rng, h=3, w=w, c=c, out_c=out_c, k=(1, 1), label=f"run of {w} x {c}")
    for c in (8, 16, 32):
        base = {"h": 4, "w": 11, "c": c, "out_c": 6, "k": (1, 1)}
        yield geometry(rng, **base, batch=2, extreme=True, x_zp=127, y_zp=-128, label="run, batch")  # type: ignore[arg-type]
        yield geometry(rng, **base, clamp=(-9, 77), label="run, clamp")  # type: ignore[arg-type]
        yield geometry(rng, **base, rows=(1, 3), in_ring=3, out_ring=2, descending=1, label="run, ring")  # type: ignore[arg-type]
    for w, out_c in itertools.product((2, 3, 5), (20, 70, 200)):
        yield geometry(rng, h=5, w=w, c=48, out_c=out_c, k=(1, 1), batch=2, rows=(1, 4), label="joined rows")


def packed_pixels(rng: np.random.Generator) -> Iterator[Case]:
    """Few inputs in a window: every length that has its own code, rows that end inside of a batch of pixels."""
    kernels = (((3, 3), 1), ((3, 3), 2), ((5, 5), 1), ((3, 3), 3), ((5, 4), 2), ((3, 5), 3), ((1, 7), 1), ((2, 2), 2))
    for (k, c), (w, stride) in itertools.product(kernels, ((9, 1), (23, 1), (97, 2))):
        pads = (k[0] // 2, k[1] // 2, k[0] // 2, k[1] // 2)
        base = {"h": 8, "w": w, "c": c, "k": k, "stride": (stride, stride)}
        yield geometry(rng, **base, out_c=5, pads=pads, planar=c < 3, label="packed")  # type: ignore[arg-type]
        yield geometry(rng, **base, out_c=8, batch=2, clamp=(0, 90), x_zp=5, label="packed, batch")  # type: ignore[arg-type]
    for down, out_ring in itertools.product((0, 1), (2, 8)):
        base = {"h": 8, "w": 9, "c": 3, "out_c": 6, "pads": (1, 1, 1, 1), "descending": down, "out_ring": out_ring}
        yield geometry(rng, **base, rows=(2, 4), in_ring=5, label="packed, ring")  # type: ignore[arg-type]
        yield geometry(rng, **base, rows=(0, 2), extreme=True, y_zp=-128, label="packed, extreme")  # type: ignore[arg-type]
    yield geometry(rng, h=4, w=4, c=3, out_c=4, label="one pixel held", rows=(0, 1), stride=(1, 3))
    far = {"h": 7, "w": 5, "c": 3, "out_c": 6, "dilation": (2, 2)}
    yield geometry(rng, **far, pads=(2, 2, 2, 2), label="constant table, dilated")  # type: ignore[arg-type]


def windows(rng: np.random.Generator) -> Iterator[Case]:
    """Rows of a window in place: of one vector and a rest, of more; both ends of groups; odd rows, rings, edges."""
    mores: tuple[dict[str, Any], ...] = (
        {}, {"batch": 2, "extreme": True}, {"rows": (1, 4), "in_ring": 5, "out_ring": 3}, {"clamp": (-90, 77)},
        {"stride": (2, 2), "h": 13, "w": 17}, {"dilation": (2, 1)},
    )  # fmt: skip
    kernels = ((8, (3, 3)), (12, (3, 3)), (20, (5, 1)), (32, (3, 1)))
    for (c, k), (n, more) in itertools.product(kernels, enumerate(mores)):
        base = {"h": 7, "w": 9 + n % 2, "c": c, "out_c": 31 + n, "k": k, "pads": (1, 1, 1, 1), "descending": n % 2}
        yield geometry(rng, **base | more, label=f"window, {k} x {c}")  # type: ignore[arg-type]


def planes(rng: np.random.Generator) -> Iterator[Case]:
    """Depthwise 3x3: rows longer than the buffer, every share of 16 and of 4 channels, odd rows, dilations."""
    for c, stride in itertools.product((2, 7, 8, 9, 16, 30, 35), (1, 2)):
        for w in (1, 2, 5, 16, 33, 61):
            base = {"h": 4, "w": w, "c": c, "out_c": c, "group": c, "stride": (stride, stride)}
            yield geometry(rng, **base, pads=(1, 1, 1, 1), label=f"planes, {w} x {c}")  # type: ignore[arg-type]
    for c, dilation in itertools.product((8, 20), ((1, 1), (2, 2), (3, 4), (1, 5))):
        base = {"h": 9, "w": 19, "c": c, "out_c": c, "group": c, "dilation": dilation, "batch": 2}
        yield geometry(rng, **base, pads=(2, 3, 2, 1), label="planes, dilation")  # type: ignore[arg-type]
        yield geometry(rng, **base, extreme=True, x_zp=127, clamp=(-100, 20), label="planes, extreme")  # type: ignore[arg-type]
        yield geometry(rng, **base, stride=(2, 3), label="stride 3")  # type: ignore[arg-type]
    for down in (0, 1):
        part = {"rows": (1, 4), "in_ring": 5, "out_ring": 3, "descending": down, "pads": (1, 1, 1, 1)}
        yield geometry(rng, h=7, w=18, c=24, out_c=24, group=24, **part, label="planes, ring")  # type: ignore[arg-type]


def quotients(rng: np.random.Generator) -> Iterator[Case]:
    """Every code by scales that make ties and near ties; reals on, above and below the middle of two codes."""
    codes = np.arange(-128, 128).astype(np.int8)
    for i in range(12):
        scales = rng.choice([0.05, 0.1, 0.3, 0.15, 0.025, 0.6, 0.07], 2) * (1 if i % 2 else rng.uniform(0.5, 2))
        p = {"n": 256, "in_zp": int(rng.integers(-128, 128)), "out_zp": int(rng.integers(-128, 128))}
        p |= {"in_scale": float(np.float32(scales[0])), "out_scale": float(np.float32(scales[1]))}  # type: ignore[dict-item]
        yield make_case("requantize", {"in": codes}, p, out={"out": ((256,), DType.S8)})
    for scale in (0.1, 0.037, 1 / 3, 7e-4, 1e30):
        middle = ((np.arange(-300, 300) + 0.5) * np.float32(scale)).astype(np.float32)
        reals = np.concatenate([np.nextafter(middle, np.float32(to)) for to in (-np.inf, np.inf)] + [middle])
        reals = np.concatenate([reals, np.asarray([np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-42, 0.0], np.float32)])
        for kind, zp in ((DType.S8, -128), (DType.S8, 7), (DType.U8, 200)):
            p = {"n": reals.size, "zp": zp, "scale": float(np.float32(scale))}  # type: ignore[dict-item]
            yield make_case("quantize", {"in": reals}, p, out={"out": (reals.shape, kind)})
    for n in (16, 31, 257):
        x = rng.integers(-128, 128, (3, n)).astype(np.int8)
        p = {"outer": 3, "n": n, "inner": 1, "out_zp": -128, "steps": 256.0}  # type: ignore[dict-item]
        table = {"in": x, "table": softmax_exp_table(0.05, n)}
        yield make_case("softmax_s8", table, p, out={"out": (x.shape, DType.S8)})


def shifts(rng: np.random.Generator) -> Iterator[Case]:
    """Layers that end in a shift, with constants for which there is a scale."""
    shapes = ((16, 5, 6, 7), (3, 6, 5, 40), (6, 9, 7, 7), (64, 8, 3, 3))
    cases = [conv_case(rng, DType.S8, shape=shape) for shape in shapes]
    cases += [conv_case(rng, DType.S8, shape=shape, k=1, pad=0) for shape in shapes]
    cases += [conv_case(rng, DType.S8, group=4, k=k, pad=k // 2) for k in (1, 3, 5)]
    cases += [fc_case(rng, DType.S8, k, n, rows=rows) for k, n, rows in ((33, 6, 1), (64, 19, 3))]
    for case, mul in itertools.product(cases, (257, 514, 701)):
        count = case.arrays["mul"].size
        offset = mul * rng.integers(-9000, 9000, count) + (1 << 15)
        arrays = dict(case.arrays) | {"mul": np.full(count, mul, np.int32), "offset": offset.astype(np.int64)}
        yield replace(case, arrays=arrays)
    codes = rng.integers(-128, 128, (2, 3, 31)).astype(np.int8)
    loops = axes(a=(31, 1), b=(0, 1), d=(3, 31)) | {"rank": 2, "a_zp": -128, "b_zp": 5, **ENDS}
    for sign, mul, out_zp in itertools.product("+-", (257, 1 << 17, 40000), (-128, 3)):
        numbers = {"mul": np.asarray([mul], np.int32), "offset": np.asarray([1 << 15])}
        operands = {"a": codes[0], "b": codes[1][:1], **numbers}
        params: dict[str, ParamValue] = {**loops, "sign": sign, "out_zp": out_zp}
        yield make_case("add_s8rs", operands, params, out={"out": ((3, 31), DType.S8)})


def convolutions() -> list[Case]:
    """Return the cases of conv_s8 that have a variant here."""
    return [case for case in kernel_cases() if case.instr.kernel == "conv_s8" and conv.accepts(case.instr)]


def axes(**steps: tuple[int, int]) -> dict[str, int]:
    """Return the parameters of two loops of a strided kernel."""
    keys = {f"{role}{i}": value for role, pair in steps.items() for i, value in enumerate(pair)}
    return dict.fromkeys(axis_keys("d"), 1) | dict.fromkeys((*axis_keys("a"), *axis_keys("b")), 0) | keys


@pytest.mark.parametrize(
    ("mul", "offset", "zp", "found"),
    [(257, 32768, 0, True), (514, 72346, -128, True), (701, 67818, 5, True), (512, 32768, 0, False)],
)
def test_a_scale_gives_the_codes_of_a_shift(mul: int, offset: int, zp: int, found: bool) -> None:
    instr = Instr("conv_s8rs", "mve", (), {"out_zp": zp, "out_min": -128, "out_max": 127, "shift": 16})
    sums = np.arange(-70000, 70000)
    ends = sums[:1], sums[-1:]
    form = float_form(np.asarray([mul]), np.asarray([offset]), *ends, instr)
    assert (form is not None) == found  # 512 / 2^16 makes ties, which a shift rounds up
    if form is not None:
        want = np.clip((sums * mul + offset >> 16) + zp, -128, 127)
        assert np.array_equal(requantize(sums + form[0], form[1], zp, -128, 127), want)


def test_most_layers_that_end_in_a_shift_have_a_scale() -> None:
    cases = [case for case in shifts(np.random.default_rng(1)) if case.instr.kernel.startswith("conv")]
    (variant,) = conv.VARIANTS["conv_s8rs"]
    plans = [prepare(variant, case.arrays, case.instr).plan for case in cases]
    assert sum(plan != UNFIT.plan for plan in plans) > len(plans) / 2


def test_cases_reach_every_path_of_a_convolution() -> None:
    plans = [conv_plans.choose_plan(case.instr, "scaled") for case in convolutions()]
    taken = [plan for plan in plans if isinstance(plan, conv_plans.RunPlan | conv_plans.PackedPlan)]
    runs = {plan.run.name for plan in taken if plan.run}
    assert runs == {f"glow_mve_run{n}{clamp}" for n in (8, 16, 24, 32, 40, 48) for clamp in ("", "_clamped")}
    assert any(isinstance(plan, conv_plans.PointPlan) and plan.merged for plan in plans)


@pytest.mark.parametrize(("c", "out_c", "hw", "once"), [
    (32, 64, (8, 8), False), (64, 64, (8, 8), True), (64, 62, (8, 8), True), (41, 64, (8, 8), False),
    (42, 64, (8, 8), True), (64, 64, (1, 3), True), (64, 64, (1, 2), False),
])  # fmt: skip
def test_some_channels_of_all_pixels_come_first_where_no_data_cache_keeps_the_weights(
    c: int, out_c: int, hw: tuple[int, int], *, once: bool
) -> None:  # fmt: skip
    case = geometry(np.random.default_rng(0), h=hw[0], w=hw[1], c=c, out_c=out_c, pads=(1, 1, 1, 1))
    plan = conv_plans.choose_plan(case.instr, "scaled")
    assert isinstance(plan, conv_plans.WindowRowsPlan)
    assert plan.reads_weights_once == once
    assert overlap_bytes(replace(case.instr, plan=plan)) == (0 if once else 1)


@pytest.mark.parametrize(("c", "k", "hw", "once"), [
    (376, 1, (2, 2), False), (377, 1, (2, 2), True), (377, 1, (1, 2), False), (48, 3, (6, 6), False),
])  # fmt: skip
def test_so_do_those_whose_weights_have_a_zero_point_where_pixels_lie_in_place(
    c: int, k: int, hw: tuple[int, int], *, once: bool
) -> None:  # fmt: skip
    case = geometry(np.random.default_rng(0), h=hw[0], w=hw[1], c=c, k=(k, k), out_c=64, w_zp=9)
    plan = zero.prepare_conv(case.arrays, case.instr).plan
    assert plan.reads_weights_once == once


@pytest.mark.parametrize(("c", "w"), [(48, 3), (16, 9)])
def test_rings_part_the_rows_of_a_plan_that_was_made_without(c: int, w: int) -> None:
    case = geometry(np.random.default_rng(0), h=5, w=w, c=c, out_c=20, k=(1, 1))
    instr = prepared_instr(case.instr, prepare(conv.LAYER, case.arrays, case.instr))
    plan = instr.plan
    assert isinstance(plan, conv_plans.PointPlan | conv_plans.RunPlan)
    assert plan.merged
    assert conv.placed(instr) == plan
    ring = replace(instr, params={**instr.params, "in_ring": 2})
    assert conv.placed(ring) == replace(plan, merged=False)


@pytest.mark.parametrize("out_n", [1, 3, 4, 6])
def test_the_last_group_is_filled_with_copies_of_its_last_channel(out_n: int) -> None:
    rng = np.random.default_rng(out_n)
    weights = rng.integers(-127, 128, (out_n, 1, 8)).astype(np.int8)
    packed = stream(weights, np.arange(out_n, dtype=np.int32), Ends.of({"scale": np.ones(1)}, out_n), 0)
    group = packed.reshape(-1, 4 * 8 + 32)[-1]
    assert (group[:32].reshape(4, 8)[(out_n - 1) % 4 :] == weights[-1, 0]).all()
    assert (group[32:48].view(np.int32)[(out_n - 1) % 4 :] == out_n - 1).all()


def test_depthwise_constants_hold_each_weight_once() -> None:
    rng = np.random.default_rng(3)
    weights = rng.integers(-127, 128, (9, 21)).astype(np.int8)
    packed = nine_taps(weights, np.zeros(21, np.int32), np.ones(21, np.float32), 16)
    assert packed.size == (4 + 4 + 9) * 21


def test_a_table_holds_offset_row_and_column_of_every_input() -> None:
    """Two columns three apart of one row, two channels each, filled up to a group of eight."""
    instr = geometry(np.random.default_rng(0), h=1, w=25, c=2, out_c=1, k=(1, 2), dilation=(1, 3)).instr
    raw = conv.gather_table(Conv.of(instr)).tobytes()
    assert np.frombuffer(raw[:16], np.uint16).tolist() == [0, 1, 6, 7, 0, 0, 0, 0]
    assert [list(raw[16:24]), list(raw[24:32])] == [[0] * 8, [0, 0, 3, 3, 0, 0, 0, 0]]


def test_the_zero_point_is_in_the_bias_once_for_each_weight() -> None:
    bias, sums = np.array([5, -5, 1 << 30]), np.array([7, -7, 1 << 24])
    folded = [5 + 128 * 7, -5 - 128 * 7, (1 << 30) + (1 << 31) - (1 << 32)]  # modulo 2^32, as the sums
    assert folded_bias(bias, sums, -128).tolist() == folded


@pytest.mark.parametrize(("width", "path"), [(256, "gather"), (257, "any")])
def test_offsets_of_a_window_beyond_16_bits_have_no_table(width: int, path: str) -> None:
    far = {"h": 257, "w": width, "c": 1, "k": (2, 2), "dilation": (255, 255)}
    instr = geometry(np.random.default_rng(0), **far, out_c=200).instr  # type: ignore[arg-type]
    assert 255 * 256 + 255 == (1 << 16) - 1
    assert conv_plans.choose_plan(instr, "scaled").path == path


@pytest.mark.parametrize(
    ("scales", "zeros"),
    [
        ((0.197547957, 0.123126063, 0.194144845), (12, 125, 118)),
        ((0.173022062, 0.068436749, 0.136854351), (-29, 100, -80)),
    ],
)
def test_two_fused_additions_give_the_codes_of_the_definition(
    scales: tuple[float, ...], zeros: tuple[int, ...]
) -> None:
    """Of exact sums, one or two pairs of codes have another code: float32 rounds theirs onto or over a tie."""
    sa, sb, sy = (float(np.float32(scale)) for scale in scales)
    za, zb, zy = zeros
    a, b = (codes.reshape(-1) for codes in np.meshgrid(*[np.arange(-128, 128, dtype=np.int8)] * 2))
    want = add_codes(a, b, quant(sa, za), quant(sb, zb), quant(sy, zy), -128, 127, 1)
    exact = ((a - float(za)) * sa + (b - float(zb)) * sb) / sy
    assert 1 <= (np.clip(np.rint(exact) + zy, -128, 127) != want).sum() <= 2
    form = short_sum((sa, sb, sy), (*zeros, -128, 127), "+")
    assert form is not None
    codes = np.rint(fma(a, form[0], fma(b, form[1], form[2]))) + zy
    assert np.array_equal(np.clip(codes, -128, 127), want)


def test_scratch_is_at_most_three_rows_or_two_pixels() -> None:
    instrs = [case.instr for case in convolutions()]
    used = [conv.scratch_bytes(replace(instr, plan=conv_plans.choose_plan(instr, "scaled"))) for instr in instrs]
    assert any(used)
    for instr, scratch in zip(instrs, used, strict=True):
        p = {key: int(instr.params[key]) for key in ("in_w", "in_c", "k_h", "k_w")}
        pixel = -(-p["k_h"] * p["k_w"] * p["in_c"] // 16) * 16
        assert scratch <= max(3 * p["in_w"] * p["in_c"], 2 * pixel)


def test_two_weights_of_minus_128_do_not_share_16_bits() -> None:
    weights = np.full((9, 3), -128, np.int8)
    weights[::2, 1:] = -127
    assert pairs_fit(weights[:, 1:])
    assert not pairs_fit(weights)
