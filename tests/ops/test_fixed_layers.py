"""Layers that end as TensorFlow Lite does: the cases of those with a float32 scale, with multipliers and shifts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from glowc.board import load_cpu
from glowc.graph.fixed_point import multipliers, scaled, scaled_wide
from glowc.graph.text import parse
from glowc.graph.types import DType
from glowc.kernels.common.factors import fit, high_factors
from glowc.kernels.dsp.ends import Factors
from glowc.lower.lowering import lower_graph
from glowc.ops.interp import run_graph
from glowc.program.interp import run_program
from glowc.program.ir import ParamValue
from tests.kernels.case import Case, make_case
from tests.ops import test_conv, test_fully_connected

_PLAIN = frozenset(f"{base}_{kind}" for base in ("conv", "dwconv", "fc") for kind in ("s8", "s16"))


def fixed_cases(case: Case, index: int) -> Iterator[Case]:
    """Yield a case of codes with other endings; every third one clamps at the zero point."""
    arrays = dict(case.arrays)
    mul, shift = multipliers([abs(float(s)) for s in arrays.pop("scale")])
    arrays |= {"mul": mul, "shift": shift}
    params: dict[str, ParamValue] = dict(case.instr.params)
    if index % 3 == 0:
        params["out_min"] = max(int(params["out_zp"]), int(params["out_min"]))
        params["out_max"] = max(int(params["out_max"]), int(params["out_min"]))
    for end in ("q31", "q15"):
        if end == "q15" and case.instr.kernel.endswith("s8"):
            continue
        kind = np.int64 if end == "q15" else np.int32
        given = {**arrays, "bias": arrays["bias"].astype(kind)}
        made = make_case(f"{case.instr.kernel}{end}", given, params, rows=case.instr.rows)
        yield replace(made, instr=replace(made.instr, name=case.instr.name))


def kernel_cases() -> Iterator[Case]:
    """Those of convolutions and fully connected layers; factors at the ends of what has a form of its own."""
    plain = (*test_conv.kernel_cases(), *test_fully_connected.kernel_cases())
    for index, case in enumerate(case for case in plain if case.instr.kernel in _PLAIN):
        yield from fixed_cases(case, index)
    rng = np.random.default_rng(3)
    for n in (2, 5, 8):  # one place to the right and all of them; a factor of 1/2, and of 0
        for factors in ((0.49, 2.0**-30), (0.5, 0.1), (0.0, 0.1)):
            case = test_fully_connected.layer(rng, 12, n, rows=4)
            case.arrays["in"][:] //= 16
            case.arrays["scale"][:] = rng.choice(np.asarray(factors, np.float32), n)
            yield from fixed_cases(case, 1)
    wide = {"h": 5, "w": 7, "dtype": DType.S16, "x_zp": 0}  # by vectors of eight channels, with tails and edges
    for index, (c, out_c, k) in enumerate(((3, 8, 3), (16, 24, 3), (9, 33, 1), (5, 16, 2))):
        pads = (k // 2,) * 4
        yield from fixed_cases(test_conv.geometry(rng, **wide, c=c, out_c=out_c, k=(k, k), pads=pads), index)  # type: ignore[arg-type]
        yield from fixed_cases(test_fully_connected.layer(rng, 11 * c, out_c - 1, dtype=DType.S16, x_zp=0), index)
        same = {"c": out_c, "out_c": out_c, "group": out_c, "pads": (2, 1, 2, 1), "dilation": (index % 2 + 1, 1)}
        yield from fixed_cases(test_conv.geometry(rng, **wide, **same), index)  # type: ignore[arg-type]
        yield from fixed_cases(test_conv.geometry(rng, **wide, **same, y_zp=0), index)  # type: ignore[arg-type]
    for k, extreme in ((500, True), (600, True), (600, False)):  # sums of 32 bits, of more, and for some weights
        yield from fixed_cases(test_fully_connected.layer(rng, k, 3, dtype=DType.S16, x_zp=0, extreme=extreme), 1)


def test_the_product_is_rounded_up_and_the_shift_away_from_zero() -> None:
    half, quarter = (1 << 30, 0), (1 << 30, -1)  # factors of 1/2 and 1/4
    assert scaled(np.asarray([3, -3, 1, -1]), *half).tolist() == [2, -1, 1, 0]
    assert scaled(np.asarray([5, -5, 6, -6]), *quarter).tolist() == [2, -1, 2, -2]
    assert scaled_wide(np.asarray([3, -3, 1 << 40]), *half).tolist() == [2, -1, 1 << 39]


def test_a_sum_wraps_when_it_is_shifted_left() -> None:
    assert scaled(np.asarray([1 << 30]), 1 << 30, 2).tolist() == [0]
    assert scaled(np.asarray([3]), 1 << 30, 2).tolist() == [6]


def test_factors_have_a_word_of_places_and_one_each() -> None:
    factors = Factors(np.asarray([1 << 30, (1 << 31) - 1]), np.asarray([-1, -8]))
    assert factors.words(2).tolist() == [[7 << 8, -(1 << 31), -2]]


@pytest.mark.parametrize(
    ("mul", "shift", "fits"),
    [(1 << 30, -1, True), ((1 << 31) - 1, -31, True), (1 << 30, 0, False), (1 << 30, -32, False), (0, -1, False)],
)
def test_factors_below_a_half_fit(mul: int, shift: int, fits: bool) -> None:
    assert fit({"mul": np.asarray([1 << 30, mul]), "shift": np.asarray([-8, shift])}) == fits


def test_a_channel_of_factor_0_is_its_zero_point_by_a_usual_factor() -> None:
    graph = parse(
        """graph "t" {
        input %x : s8[3,4] q(0.5, 3)
        const %w : s8[2,4] q([0.25, 1e-30], [0, 0], axis=0) = [[1,-2,3,4],[5,6,-7,8]]
        const %b : s32[2] = [7,-90]
        %y : s8[3,2] q(0.5, -5) = FullyConnected(%x, %w, %b) {rounding="tflite", act_min=0.0}
        output %y
        }"""
    )
    program = lower_graph(graph, load_cpu("cortex-a7"))
    call = next(instr for instr in program.instrs if not instr.is_marker)
    found = {o.role: program.consts[o.buffer].reshape(-1).tolist() for o in call.operands if o.buffer in program.consts}
    assert found["weights"] == [1, -2, 3, 4, 0, 0, 0, 0]
    assert (found["bias"], found["mul"], found["shift"]) == ([7, 0], [1 << 30, 1 << 30], [-1, -1])
    x = np.arange(-6, 6, dtype=np.int8).reshape(3, 4) * 10
    given = run_program(program, {"x": x})["y"]
    assert np.array_equal(given, run_graph(graph, {"x": x})["y"])
    assert (given[:, 1] == -5).all()


@pytest.mark.parametrize(("bits", "least", "most"), [(31, -16, 0), (32, -17, -1)])
def test_codes_of_16_bits_are_upper_parts_of_products(bits: int, least: int, most: int) -> None:
    rng = np.random.default_rng(bits)
    sums = np.concatenate((rng.integers(-(1 << 31), 1 << 31, 5000), [-(1 << 31), (1 << 31) - 1, 0, -1, 1]))
    for shift in (least, -9, most):
        for mul in (1 << 30, (1 << 31) - 1, 0x7FFF0000, 0x7FFEFFFF, int(rng.integers(1 << 30, 1 << 31))):
            constants = {"mul": np.asarray([mul], np.int32), "shift": np.asarray([shift], np.int8), "bias": np.zeros(1)}
            found = high_factors(constants, 1, bits)
            assert found is not None
            codes = (sums * int(found["mul"][0]) + (1 << bits - 1)) >> bits
            np.testing.assert_array_equal(codes, scaled_wide(sums, mul, shift))
    for outside in (least - 1, most + 1):
        wrong = {"mul": np.asarray([1 << 30] * 2), "shift": np.asarray([least, outside]), "bias": np.zeros(2)}
        assert high_factors(wrong, 2, bits) is None
