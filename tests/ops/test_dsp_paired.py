"""Convolutions in pairs of instructions: several pairs of pixels before one pass over weights that no cache keeps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from glowc.board import Cpu, load_board
from glowc.kernels.base import prepare, prepared_instr
from glowc.kernels.choice import candidates
from glowc.kernels.dsp.conv import ConvPlan
from glowc.kernels.dsp.paired import batch_scratch, spend
from glowc.kernels.registry import variants_of
from glowc.ops.registry import all_ops  # noqa: F401
from glowc.program.ir import Instr
from tests.kernels.case import Case
from tests.ops.test_conv import geometry
from tests.ops.test_fixed_layers import fixed_cases
from tests.ops.test_fully_connected import layer

KERNELS = "dsp"

LARGE = {"c": 64, "out_c": 28}  # 3 x 3: blocks of 2336 bytes, 7 of them just more than is kept
ENDS = ((3, None), (-128, None), (-128, (-128, 60)), (-4, (-20, 90)))


def large(case: Case) -> Case:
    """Return the case with a channel whose sums do not fit 24 bits, so that it takes another form."""
    case.arrays["weights"][4] = 127
    return case


def kernel_cases() -> Iterator[Case]:
    """Layers that end in a float32 scale, and those of convolutions with a multiplier and a shift."""
    for index, case in enumerate(scaled_cases()):
        yield case
        if case.instr.kernel == "conv_s8":
            yield from fixed_cases(case, index)


def scaled_cases() -> Iterator[Case]:
    """Pixels that fill no batch, images, strides, paddings, rings, every ending; weights of two forms."""
    rng = np.random.default_rng(41)
    for width, (y_zp, clamp) in zip((3, 4, 5, 6), ENDS, strict=True):
        base = {**LARGE, "h": 3, "w": width, "y_zp": y_zp, "clamp": clamp}
        yield geometry(rng, **base, pads=(1, 1, 1, 1), batch=2, label=f"batch, width {width}")
        yield geometry(rng, **base | {"c": 260, "out_c": 60}, k=(1, 1), batch=2, label=f"points, width {width}")
    for width, c, out_c, dilation in ((5, 65, 27, 1), (6, 66, 28, 1), (4, 62, 29, 2)):
        base = {"c": c, "out_c": out_c, "h": 4, "w": width, "pads": (dilation,) * 4}
        yield geometry(rng, **base, dilation=(dilation, dilation), batch=2, label=f"gathered batch, width {width}")
    yield geometry(rng, **LARGE | {"c": 260, "out_c": 59}, h=3, w=5, k=(1, 1), label="points, channels beyond blocks")
    yield geometry(rng, **LARGE | {"out_c": 20}, h=4, w=4, pads=(1, 1, 1, 1), label="weights that are kept")
    yield large(geometry(rng, **LARGE, h=4, w=4, pads=(1, 1, 1, 1), label="weights of two forms"))
    yield geometry(rng, **LARGE | {"c": 16}, h=5, w=5, label="a last pixel alone, at the end of the input")
    yield geometry(rng, **LARGE, h=9, w=9, stride=(2, 2), pads=(0, 0, 1, 1), x_zp=7, label="strided")
    sizes = zip((128, 129, 255, 260, 131, 511), (8, 5, 9, 4, 12, 6), (*ENDS, *ENDS[:2]), strict=True)
    for k, n, (y_zp, clamp) in sizes:
        yield layer(rng, k, n, x_zp=k % 9 - 4, y_zp=y_zp, clamp=clamp)
    for rows, ring, out_ring, down in (((0, 2), 3, 1, 0), ((2, 5), 4, 2, 0), ((3, 6), 6, 6, 1)):
        base = {**LARGE, "h": 6, "w": 5, "pads": (1, 1, 1, 1), "rows": rows, "in_ring": ring, "out_ring": out_ring}
        yield geometry(rng, **base, descending=down, label=f"batch, rows {rows}")


def m7() -> Cpu:
    return load_board("mps2-an500").cpu


def chosen(case: Case) -> list[str]:
    """Return the names of the variants that a Cortex-M7 has for a case."""
    return [v.name for v in candidates(case.instr, m7().features, case.arrays.keys())]


@pytest.mark.parametrize(("out_c", "batch"), [(24, False), (26, True), (28, True)])
def test_batches_are_for_weights_that_no_cache_keeps(out_c: int, batch: bool) -> None:
    case = geometry(np.random.default_rng(2), **LARGE | {"out_c": out_c}, h=4, w=4, pads=(1, 1, 1, 1))
    assert "dsp_paired" in chosen(case)
    assert ("dsp_paired_batch" in chosen(case)) == batch


@pytest.mark.parametrize(("mixed", "pairs"), [(False, 4), (True, 1)])
def test_scratch_holds_the_pairs_that_are_collected(mixed: bool, pairs: int) -> None:
    case = geometry(np.random.default_rng(2), **LARGE, h=4, w=4, pads=(1, 1, 1, 1))
    variant = next(v for v in variants_of("conv_s8") if v.name == "dsp_paired_batch")
    prepared = prepare(variant, (large(case) if mixed else case).arrays, case.instr)
    assert isinstance(prepared.plan, ConvPlan)
    assert prepared.plan.pairs == pairs
    assert variant.scratch_bytes(prepared_instr(case.instr, prepared)) == pairs * 2 * 2 * 9 * 64


def test_more_pairs_are_collected_where_there_is_room() -> None:
    case = geometry(np.random.default_rng(2), **LARGE, h=6, w=6, pads=(1, 1, 1, 1))
    variant = next(v for v in variants_of("conv_s8") if v.name == "dsp_paired_batch")
    instr, pair = prepared_instr(case.instr, prepare(variant, case.arrays, case.instr)), 2 * 2 * 9 * 64
    assert [pairs_in(instr, n * pair) for n in (0, 1, 5, 8, 9, 40)] == [1, 1, 4, 8, 8, 16]


def pairs_in(instr: Instr, scratch_bytes: int) -> int:
    """Return the pairs of pixels that a batch collects in so many bytes."""
    plan = spend(instr, scratch_bytes)
    assert batch_scratch(replace(instr, plan=plan)) <= max(scratch_bytes, 2 * 2 * 9 * 64)
    return plan.pairs
