"""Layers on SMLAD whose weights less their zero point are no bytes: sums of inputs are inputs, too; kernel cases."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from glowc.kernels.base import prepare, prepared_instr
from glowc.kernels.dsp.conv import ConvPlan
from glowc.kernels.dsp.forms import SUMMED, summed_groups
from glowc.kernels.registry import variants_of
from tests.kernels.case import Case
from tests.ops.test_conv import geometry
from tests.ops.test_fixed_layers import fixed_cases
from tests.ops.test_fully_connected import layer

KERNELS = "dsp"

WAYS: dict[str, dict[str, Any]] = {
    "point": {"c": 16, "out_c": 18, "k": (1, 1), "w": 5},
    "tail": {"c": 133, "out_c": 16, "k": (1, 1), "w": 3, "batch": 2},
    "several": {"c": 516, "out_c": 17, "k": (1, 1), "h": 1, "w": 7},
    "rows": {"c": 8, "out_c": 18, "pads": (1, 1, 1, 1), "w": 8},
    "across": {"c": 60, "out_c": 16, "pads": (1, 1, 1, 1), "w": 5},
    "word": {"c": 2, "out_c": 16, "k": (8, 2), "h": 9, "w": 6},
    "three": {"c": 3, "out_c": 18, "planar": True, "pads": (1, 1, 1, 1), "w": 9},
    "gather": {"c": 5, "out_c": 18, "pads": (1, 1, 1, 1)},
    "planar": {"c": 3, "out_c": 16, "k": (5, 5), "planar": True, "h": 6, "w": 7},
    "batch": {"c": 124, "out_c": 128, "k": (1, 1)},
}
"""How the inputs of a pixel are collected (kernels/dsp/conv.py): a layer of each."""
FLAT = ((16, 16, 1), (43, 18, 1), (133, 17, 1), (1030, 16, 1), (19, 18, 4), (130, 17, 7))  # inputs, outputs, rows


def kernel_cases() -> Iterator[Case]:
    """All ways, zero points at both ends, weights of all codes; two endings."""
    rng = np.random.default_rng(75)
    for index, (way, w_zp) in enumerate(itertools.product(WAYS, (20, -127, 127))):
        base = {"x_zp": (-128, 3, 127)[index % 3], "extreme": index % 4 == 3, "label": f"sums, {way}, {w_zp}"}
        case = geometry(rng, w_zp=w_zp, **WAYS[way] | base)
        yield from (case, *fixed_cases(case, index))
    for index, ((inputs, outputs, rows), w_zp) in enumerate(itertools.product(FLAT, (-90, 127))):
        case = layer(rng, inputs, outputs, rows=rows, w_zp=w_zp, extreme=index % 3 == 2)
        yield from (case, *fixed_cases(case, index))


@pytest.mark.parametrize("way", WAYS)
def test_every_way_has_sums(way: str) -> None:
    case = geometry(np.random.default_rng(1), w_zp=20, **WAYS[way])
    plans = []
    for variant in variants_of("conv_s8"):
        instr = replace(case.instr, variant=variant.name)
        if variant.isa == "dsp" and variant.accepts(instr):
            plans.append(prepared_instr(instr, prepare(variant, case.arrays, instr)).plan)
    found = [plan for plan in plans if isinstance(plan, ConvPlan)]
    assert found
    assert all(plan.summed == 2 - (way != "several" and way != "across") and plan.form != "wide" for plan in found)
    paths = {plan.path for plan in found} | {"batch" for plan in found if plan.near}
    assert paths & {way} or way in ("tail", "several")


def _groups(weights: np.ndarray, w_zp: int, unit: int = 1) -> int:
    case = geometry(np.random.default_rng(1), w_zp=w_zp)
    return summed_groups(weights, case.instr, unit)


def test_sums_are_where_weights_are_no_bytes() -> None:
    weights = np.zeros((16, 16), np.int8)
    weights[3, 5], weights[4, 5] = 127, -128
    assert _groups(weights, 0) == 0
    assert _groups(weights, 1) == 1  # -129 is none
    assert _groups(weights[:, :15], 1) == _groups(weights[:15], 1) == 0  # too few
    assert _groups(np.full((16, 16), 127, np.int8), -1) == 1  # 128, less 1
    assert _groups(np.full((16, 16), 126, np.int8), -128) == 1  # 254, less 127
    assert _groups(np.full((16, 16), 127, np.int8), -128) == 0  # 255, less 128: the weight of the sums is no byte
    assert _groups(np.full((16, 16), -128, np.int8), 127) == 1  # -255, and 128 more


def test_so_many_inputs_have_a_sum_that_fits() -> None:
    assert SUMMED * 255 + 128 <= 32768 < (SUMMED + 1) * 255  # and a weight may be taken from it
    weights = np.full((16, 4 * SUMMED), 127, np.int8)
    assert [_groups(weights[:, :n], -9) for n in (16, 4 * SUMMED - 3, 4 * SUMMED)] == [1, 1, 1]
    assert _groups(np.concatenate((weights, weights[:, :1]), axis=1), -9) == 2
    assert [_groups(weights[:, :n], -9, unit=2) for n in (16, 4 * SUMMED)] == [2, 2]
