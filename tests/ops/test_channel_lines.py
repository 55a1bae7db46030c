"""ChannelLines: straight lines per channel; the search that finds them; the kernel."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from glowc.graph.graph import Node
from glowc.graph.types import DType, TensorType, quant
from glowc.ops.base import OpError
from glowc.ops.channel_lines import on_lines
from glowc.ops.registry import get_op
from glowc.passes.fuse.fuse_channel_lines import CODES, lines_through
from tests.kernels.case import Case, make_case
from tests.ops.one_node import check

RNG = np.random.default_rng(17)
ONE = np.array([[3 << 20, -(5 << 20), 20], [-(1 << 22), 77, 21], [0, 9, 0], [(1 << 23) - 1, 1 << 29, 23]], np.int32)
TWO = np.concatenate([ONE, ONE[::-1], np.array([[0], [-128], [127], [-5]], np.int32)], axis=1)


def case(lines: np.ndarray, outer: int, inner: int, low: int = -128, high: int = 127) -> Case:
    x = RNG.integers(-128, 128, (outer, len(lines), inner)).astype(np.int8)
    params = {
        "n": x.size, "channels": len(lines), "inner": inner, "rank": 1 if inner == 1 else 2,
        "two": int(lines.shape[1] == 7), "out_min": low, "out_max": high,
    }  # fmt: skip
    return make_case("lines_s8", {"in": x, "lines": lines}, params, out={"out": (x.shape, DType.S8)})


def kernel_cases() -> Iterator[Case]:
    for lines in (ONE, TWO):
        for outer, inner in ((1, 1), (17, 1), (1, 5), (3, 4)):
            yield case(lines, outer, inner)
        yield case(lines[:1], 33, 1, -7, 90)
        for channels in (2, 3, 13, 16, 70):
            many = lines[RNG.integers(0, len(lines), channels)]
            yield case(many, 5, 1)
            yield case(many, 2, 1, -100, 101)
            yield case(many, 2, channels)


@pytest.mark.parametrize("lines", [ONE, TWO])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_every_axis_can_hold_the_channels(axis: int, lines: np.ndarray) -> None:
    x = RNG.integers(-128, 128, (4, 4, 4)).astype(np.int8)
    attrs = {"axis": axis, "out_min": -100, "out_max": 101}
    (y,) = check("ChannelLines", [x, lines], attrs, quants=[quant(0.1, 0)], out_quants=[quant(0.1, 0)], consts=(1,))
    want = on_lines(np.moveaxis(x, axis, -1).astype(np.int64), lines, -100, 101)
    np.testing.assert_array_equal(np.moveaxis(y, axis, -1), want)


def test_lines_of_other_channels_are_refused() -> None:
    node = Node("n", "ChannelLines", ("x", "l"), ("y",), {"axis": 1, "out_min": -128, "out_max": 127})
    with pytest.raises(OpError, match="3 lines along axis 1"):
        get_op("ChannelLines").infer(node, (TensorType((1, 4), DType.S8), TensorType((3, 3), DType.S32)))


@pytest.mark.parametrize("slopes", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_lines_are_found_for_what_float32_gives(seed: int, slopes: bool) -> None:
    """Factors from flat to steep, with results that are clamped on either side or everywhere."""
    rng = np.random.default_rng(seed)
    factor = rng.normal(0, 1, (9, 1)) * np.array([0, 1e-3, 0.1, 1, 1, 1, 10, 100, 300])[:, None]
    real = (CODES - rng.integers(-128, 128)).astype(np.float32) * np.float32(rng.uniform(0.001, 0.1))
    real = real * factor.astype(np.float32) + rng.normal(0, 1, (9, 1)).astype(np.float32)
    if slopes:
        real = np.where(real < 0, real * rng.uniform(-0.5, 1, (9, 1)).astype(np.float32), real)
    codes = np.rint(real / np.float32(rng.uniform(0.001, 0.1))) + rng.integers(-128, 128)
    table = np.clip(codes, -128, 127).astype(np.int64)
    lines = lines_through(table, -128, 127)
    assert lines is not None
    assert lines.shape[1] in ((3, 7) if slopes else (3,))
    np.testing.assert_array_equal(on_lines(CODES[:, None], lines, -128, 127), table.T)


def test_curves_have_no_lines() -> None:
    curve = np.rint(100 * np.tanh(CODES / 50))[None].astype(np.int64)
    assert lines_through(curve, -128, 127) is None
