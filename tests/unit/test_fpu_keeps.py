"""Float convolutions on Cortex-M with FPU: which weights they keep in the scratch, and when windows are gathered."""

from __future__ import annotations

import numpy as np
import pytest

from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant, prepare, prepared_instr, streams_rows
from glowc.kernels.fpu.layers import ConvPlan, WeightsPlan
from glowc.kernels.registry import variants_of
from glowc.ops.registry import all_ops  # noqa: F401
from glowc.program.ir import Instr
from tests.ops.test_conv import geometry

SHAPE = {"h": 8, "w": 8, "c": 5, "out_c": 10, "k": (3, 3), "dtype": DType.F32}
EACH, PATCH = 4 * 9 * 5, 4 * 3 * 6 * 5  # bytes of the weights of an output, and under the windows of four pixels


def fpu(kernel: str) -> KernelVariant:
    return next(v for v in variants_of(kernel) if v.name == "fpu")


def prepared(kernel: str = "conv_f32", **more: object) -> tuple[KernelVariant, Instr]:
    case = geometry(np.random.default_rng(1), **{**SHAPE, **more})  # type: ignore[arg-type]
    assert case.instr.kernel == kernel
    return fpu(kernel), prepared_instr(case.instr, prepare(fpu(kernel), case.arrays, case.instr))


def kept(size: int, kernel: str = "conv_f32", **more: object) -> int | None:
    """Return the outputs whose weights are kept in so many bytes of scratch, which is never more than that."""
    variant, instr = prepared(kernel, **more)
    assert variant.keeps is not None
    found = variant.keeps({}, instr, size, 0)
    if found is None:
        return None
    assert isinstance(found.plan, WeightsPlan)
    assert variant.scratch_bytes(prepared_instr(instr, found)) <= size
    return found.plan.kept


@pytest.mark.parametrize(
    ("size", "outputs"),
    [(10 * EACH + 3, 10), (10 * EACH + 2, 8), (8 * EACH, 8), (8 * EACH - 1, 4), (4 * EACH, 4), (4 * EACH - 1, None)],
)
def test_weights_of_all_outputs_or_of_whole_blocks_are_kept(size: int, outputs: int | None) -> None:
    assert kept(size) == outputs
    assert kept(size + PATCH, pads=(1, 1, 1, 1)) == outputs


def test_weights_that_are_few_or_read_seldom_are_not_kept() -> None:
    assert kept(1 << 20, h=3, w=14) is None, "three groups of four pixels"
    assert kept(1 << 20, h=3, w=15) == 10
    assert kept(4 * 60 + 3, k=(1, 1), c=15) is None, "240 bytes of 600"
    assert kept(8 * 60 + 3, k=(1, 1), c=15) == 8
    assert kept(1 << 20, k=(1, 1), c=4) == 10, "160 bytes, but all"


@pytest.mark.parametrize(("size", "outputs"), [(9 * 16 * 4, 16), (9 * 16 * 4 - 1, None)])
def test_depthwise_layers_keep_all_weights_or_none(size: int, outputs: int | None) -> None:
    assert kept(size, "dwconv_f32", c=16, out_c=16, group=16) == outputs


@pytest.mark.parametrize(
    ("more", "edges"),
    [
        ({}, False),
        ({"pads": (1, 0, 1, 0)}, False),
        ({"pads": (0, 1, 0, 0)}, True),
        ({"pads": (0, 1, 0, 0), "w": 10, "stride": (3, 3)}, True),
        ({"pads": (0, 0, 0, 1)}, True),
        ({"pads": (0, 0, 0, 1), "stride": (2, 2)}, True),
        ({"pads": (0, 0, 0, 1), "w": 9, "stride": (2, 2)}, False),
    ],
)
def test_windows_are_gathered_where_one_leaves_its_row(more: dict[str, object], *, edges: bool) -> None:
    variant, instr = prepared("conv_f32", **more)
    assert isinstance(instr.plan, ConvPlan)
    assert instr.plan.edges == edges
    columns = 3 * instr.int_("stride_w") + 3
    assert variant.scratch_bytes(instr) == PATCH * columns // 6 * edges
    assert streams_rows(variant, instr)
