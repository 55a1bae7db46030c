"""Layers whose channels take different forms on SMLAD: -128 beside weights of both signs, sums at 24 bits, both mixed.

Every case stands just inside or just outside of what the proofs of kernels/dsp/forms.py allow, and reaches it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from glowc.graph.types import DType
from glowc.kernels.base import Prepared, prepare
from glowc.kernels.dsp.forms import dual_pairs, joined, pair_signs, runs
from glowc.kernels.registry import variants_of
from tests.kernels.case import Case
from tests.ops.test_conv import geometry
from tests.ops.test_dynamic_quantize import dynamic
from tests.ops.test_fully_connected import layer
from tests.ops.test_requant_shift import conv_case

KERNELS = "dsp"

MAX_SUM = 1 << 23
SPOILS = ("none", "signed", "negated", "twice", "clash", "large", "inside")


def spoil(weights: np.ndarray, pair: int, kind: str) -> None:
    """Write into a pair of channels of weights[O, K] what decides its form; the rest is small."""
    even, odd = weights[2 * pair], weights[2 * pair + 1] if 2 * pair + 1 < len(weights) else np.ones_like(weights[0])
    even[:], odd[:] = even // 2, odd // 2
    if kind == "signed":
        even[0], odd[0] = -128, 5
    elif kind == "negated":
        even[0], odd[0] = -128, -1
    elif kind == "twice":
        even[:2], odd[:2] = -128, (-128, -7)
    elif kind == "clash":
        even[:2], odd[:2] = -128, (-3, 3)
    elif kind in ("large", "inside"):
        even[:] = np.where(np.arange(len(even)) % 2, 127, 126 if kind == "large" else 40)


def spoiled(case: Case, kinds: tuple[str, ...]) -> Case:
    """Return the case with the kinds in its pairs of channels, one after another."""
    weights = case.arrays["weights"]
    flat = weights.reshape(len(weights), -1)
    for pair in range(-(-len(flat) // 2)):
        spoil(flat, pair, kinds[pair % len(kinds)])
    return case


def kernel_cases() -> Iterator[Case]:
    """Every kind alone and runs of kinds, in all kernels; whole and broken last blocks; limits of all sorts."""
    rng = np.random.default_rng(31)
    mixes = [(kind,) for kind in SPOILS[1:]]
    mixes += [("none", "clash"), ("clash", "none", "none", "none", "none"), ("none", "none", "large", "signed")]
    ends = ((3, None), (-128, None), (-128, (-128, 60)), (-4, (-20, 90)))
    for kinds, (y_zp, clamp) in zip(mixes, itertools.cycle(ends)):
        shared = {"x_zp": -128 if clamp is None else 9, "y_zp": y_zp, "clamp": clamp}
        k = 270 if "large" in kinds or "inside" in kinds else 20
        for out_c, width in ((16, 5), (13, 1)) if len(kinds) > 1 else ((9, 4),):
            base = {"h": 1, "w": width, "c": k, "k": (1, 1), **shared}
            yield spoiled(geometry(rng, **base, out_c=out_c, label=f"{kinds} of {out_c}"), kinds)
        base = {"h": 4, "w": 9, "c": 30 if k > 200 else 3, "out_c": 9, "pads": (1, 1, 1, 1), **shared}
        yield spoiled(geometry(rng, **base, label=f"{kinds}, windows"), kinds)
        yield spoiled(geometry(rng, **base, planar=k < 200, label=f"{kinds}, planes"), kinds)
        for n, rows in ((23, 1), (8, 1), (9, 1), (9, 5)) if len(kinds) > 1 else ((1, 1), (10, 4)):
            yield spoiled(layer(rng, k + n % 4, n, rows=rows, **shared), kinds)
        yield spoiled(conv_case(rng, DType.S8, shape=(30 if k > 200 else 8, 9, 5, 6)), kinds)
    for n, kinds in itertools.product((4, 17, 32), (("clash",), ("large", "none"), ("negated",))):
        yield spoiled(narrow(dynamic(rng, 280, n, 5, kind=np.int8)), kinds)
    yield from limit_cases()


def narrow(case: Case) -> Case:
    """Return a dynamic layer without zero points of weights."""
    case.arrays["w_zp"][:] = 0
    return case


def limit_cases() -> Iterator[Case]:
    """Even sums of 2^23 - 1 and of 2^23, of both signs, and biases that take them there."""
    for more, sign in itertools.product((0, 1), (1, -1)):
        for rows, n in ((1, 4), (4, 4), (1, 3)):
            case = layer(np.random.default_rng(3), 258, n, rows=rows, x_zp=-128, y_zp=0)
            case.arrays["weights"][0::2] = 127 * sign
            case.arrays["weights"][1::2] = -127 * sign
            case.arrays["in"][0] = 127
            case.arrays["bias"][0::2] = sign * (MAX_SUM - 1 + more - 127 * 255 * 258)
            case.arrays["scale"][:] = 127 / MAX_SUM
            yield case


def packed(case: Case, name: str) -> Prepared:
    """Return the constants of a case as a variant has them."""
    variant = next(v for v in variants_of(case.instr.kernel) if v.name == name)
    return prepare(variant, case.arrays, case.instr)


@pytest.mark.parametrize(
    ("kind", "form"), list(zip(SPOILS, ("dual", "dual", "dual", "dual", "mixed", "mixed", "dual"), strict=True))
)
@pytest.mark.parametrize("variant", ["dsp", "dsp_eight"])
def test_form_of_a_layer_is_dual_as_far_as_it_is_exact(kind: str, form: str, variant: str) -> None:
    case = spoiled(layer(np.random.default_rng(5), 270, 8), (kind,))
    assert packed(case, variant).plan.form == form


@pytest.mark.parametrize("kind", SPOILS)
@pytest.mark.parametrize("outputs", [16, 10])
def test_no_weight_of_eight_bits_takes_a_halfword(kind: str, outputs: int) -> None:
    rng = np.random.default_rng(6)
    plain = layer(rng, 270, outputs)
    case = spoiled(layer(rng, 270, outputs), (kind, "none", "none"))
    table = 4 * 4 if kind in ("clash", "large") else 0
    least = sum(a.nbytes for a in packed(plain, "dsp").constants.values())
    assert sum(a.nbytes for a in packed(case, "dsp").constants.values()) <= least + 4 * table
    rows = spoiled(geometry(rng, h=1, w=8, c=270, out_c=outputs, k=(1, 1)), (kind, "none", "none"))
    assert packed(rows, "dsp_quad").constants["weights"].nbytes <= (270 + 2 + 9) * outputs + 24 * 4 + 4 * table


def test_one_large_channel_leaves_the_others_dual() -> None:
    weights = np.ones((32, 400), np.int64)
    weights[8] = 127
    dual = dual_pairs(weights, -weights[0::2].sum(1) * 255, weights[0::2].sum(1) * 255)
    found = runs(dual, 400, rest=False)
    assert [(run.blocks, run.dual) for run in found] == [(4, True), (1, False), (11, True)]


def test_few_dual_blocks_between_others_are_not_worth_a_call() -> None:
    dual = np.array([False, True, False, True, True, True], bool)
    assert [(run.blocks, run.dual) for run in runs(dual, 50, rest=True)] == [(3, False), (2, True), (1, True)]


@pytest.mark.parametrize(("top", "dual"), [(MAX_SUM - 1, True), (MAX_SUM, False)])
@pytest.mark.parametrize("sign", [1, -1])
def test_even_sums_of_a_dual_pair_stay_below_24_bits(top: int, dual: bool, sign: int) -> None:
    low, high = min(0, sign * top), max(0, sign * top)
    assert dual_pairs(np.ones((2, 4), np.int64), np.array([low]), np.array([high])).tolist() == [dual]


@pytest.mark.parametrize("even", [-128, -127, 0, 127])
def test_every_pair_of_weights_is_told_apart_or_negated(even: int) -> None:
    for odd in range(-128, 128):
        pair = np.array([[even], [odd]])
        signs = pair_signs(pair, np.ones(2, bool))
        first, second = pair[:, 0] * signs
        half = joined(np.array([first]), np.array([second]), np.array([True])).astype(np.int16)
        assert half.view(np.int8)[0] == second
        assert int(half[0]) - second == 256 * first


def test_pairs_of_two_weights_are_dual_only_if_both_are_told_apart() -> None:
    numbers = (-128, -127, -3, -1, 0, 1, 3, 127)
    for weights in itertools.product(numbers, repeat=4):
        pair = np.array(weights).reshape(2, 2)
        first, second = pair * pair_signs(pair, np.ones(2, bool))[:, None]
        none = np.zeros(1, np.int64)
        if dual_pairs(np.stack((first, second)), none, none)[0]:
            halves = joined(first[None], second[None], np.array([True])).astype(np.int16)[0]
            assert np.array_equal(halves.view(np.int8)[0::2], second), weights
            assert np.array_equal(halves.astype(np.int64), 256 * first + second), weights


def test_bytes_hold_both_weights_as_they_are() -> None:
    even, odd = (a.reshape(1, -1) for a in np.meshgrid(np.arange(-128, 128), np.arange(-128, 128)))
    halves = joined(even, odd, np.array([False])).astype(np.int16)
    np.testing.assert_array_equal(halves.view(np.int8).reshape(-1, 2), np.stack((odd[0], even[0]), 1))
