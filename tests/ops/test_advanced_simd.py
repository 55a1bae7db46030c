"""Constants of the kernels for Advanced SIMD (stream.py, add_terms.py), and more shapes of their blocks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from glowc.graph.types import DType, TensorType
from glowc.kernels.common.factors import Ends
from glowc.kernels.simd.add_terms import fixed_terms, point_of
from glowc.kernels.simd.stream import blocks, stream
from tests.kernels.case import Case, make_case
from tests.kernels.params import row_params
from tests.ops.test_conv import geometry
from tests.ops.test_fully_connected import layer
from tests.ops.test_requant_shift import ENDS, conv_case, fc_case, scales

KERNELS = "simd"


def depthwise_shift(rng: np.random.Generator, channels: int, width: int, k: int, rest: int) -> Case:
    """Return one dwconv_s8rs case of padded k x k windows on four rows."""
    image = TensorType((1, 4, width, channels), DType.S8)
    params = row_params(image, image) | {
        "k_h": k, "k_w": k, "stride_h": 1, "stride_w": 1, "dil_h": 1, "dil_w": 1, "pad_top": k // 2,
        "pad_left": k // 2, "groups": channels, "w_zp": 0, "in_zp": 7, **ENDS,
    }  # fmt: skip
    arrays = {
        "in": rng.integers(-128, 128, image.shape).astype(np.int8),
        "weights": rng.integers(-127, 128, (k, k, channels)).astype(np.int8),
        **scales(rng, channels, rest=rest),
    }
    return make_case("dwconv_s8rs", arrays, params, rows=(0, 4), out={"out": (image.shape, DType.S8)})


def kernel_cases() -> Iterator[Case]:
    """Blocks of fewer outputs after whole ones, and inputs after whole steps."""
    rng = np.random.default_rng(11)
    for n in (*range(20, 36), 40, 44):
        for k in (16, 25, 44):
            yield layer(rng, k, n, extreme=n % 2 == 0)
    for k in (1, 7, 16, 31):
        yield layer(rng, k, 12, per_channel=False)
    for channels, width, rest in ((8, 6, 1), (21, 9, 1), (16, 5, 200)):
        for k in (3, 5):
            yield depthwise_shift(rng, channels, width, k, rest)
    for shape in ((9, 10, 3, 9), (16, 19, 5, 8), (21, 8, 3, 7), (24, 33, 4, 16)):
        for k in (1, 3):
            yield conv_case(rng, DType.S8, pad=k // 2, k=k, shape=shape, rest=1)
    for k, n in ((16, 12), (45, 21)):
        yield fc_case(rng, DType.S8, k, n, rest=1)
    for (c, stride, dil), k in itertools.product(((8, 1, 1), (24, 2, 1), (40, 1, 3), (47, 3, 1)), (7, 8, 15)):
        signal: dict[str, Any] = {"h": 2, "w": 9 * stride + k * dil, "c": c, "k": (1, k), "dilation": (1, dil)}
        edge: dict[str, Any] = {"stride": (1, stride), "pads": (0, k // 2, 0, 1), "x_zp": -9}
        yield geometry(rng, **signal, **edge, out_c=9, label=f"signal {k}, channels {c}")
        yield geometry(rng, **signal, **edge, out_c=3, w_zp=21, extreme=True, label=f"signal {k}, zero point, {c}")
    for k, c in itertools.product(((1, 16), (1, 17), (2, 16), (2, 17)), (64, 128)):  # runs on the stack, and too many
        yield geometry(rng, h=2, w=24, c=c, out_c=4, k=k, label=f"columns {k} of {c}")
    for c, stride in itertools.product((1, 3, 5, 6, 12), (1, 2)):  # windows that lie in a row
        row: dict[str, Any] = {"w": 41, "c": c, "stride": (1, stride), "pads": (0, 3, 0, 2), "x_zp": 5}
        yield geometry(rng, **row, h=1, out_c=9, k=(1, 9), batch=2, label=f"windows in a row, {c}")
        yield geometry(rng, **row, h=3, out_c=6, k=(1, 4), w_zp=-30, label=f"windows in rows, {c}")
    for n in range(1, 8):
        base: dict[str, Any] = {"h": 3, "w": 9, "out_c": n}
        yield geometry(rng, **base, c=9, k=(3, 3), label=f"few outputs {n}")
        yield geometry(rng, **base, c=24, k=(1, 1), w_zp=7, batch=2, label=f"few outputs {n}, zero point")
    for k in (17, 35):  # columns of a window: printed one after the other, and in a loop
        yield geometry(rng, h=1, w=20, c=9, out_c=9, group=9, k=(1, k), pads=(0, k // 2, 0, k // 2))
    yield from few_pixels(rng)
    yield from sixteens(rng)


def few_pixels(rng: np.random.Generator) -> Iterator[Case]:
    """Points one by one: up to two tiles of them, of several rows, rings, zero points, fewer outputs than a block."""
    for (h, w), (c, n) in itertools.product(((1, 2), (1, 7), (3, 2), (1, 15), (5, 3), (1, 16)), ((8, 3), (37, 21))):
        point: dict[str, Any] = {"h": h, "w": w, "c": c, "out_c": n, "k": (1, 1)}
        yield geometry(rng, **point, w_zp=0 if h == 1 else 11, label=f"{h * w} pixels of {c}")
    for down in (0, 1):
        part: dict[str, Any] = {"rows": (1, 3), "in_ring": 3, "out_ring": 2, "descending": down}
        yield geometry(rng, h=4, w=3, c=17, out_c=9, k=(1, 1), stride=(1, 2), **part, label="pixels of rings")
    yield geometry(rng, h=1, w=3, c=20, out_c=40, k=(1, 1), batch=2, extreme=True, label="pixels of two images")


def sixteens(rng: np.random.Generator) -> Iterator[Case]:
    """Points read where they lie, four of a row; padded rows of few channels, of several images, one column more."""
    wide: dict[str, Any] = {"dtype": DType.S16, "x_zp": 0, "y_zp": 7}
    for (w, stride), n in itertools.product(((3, 1), (4, 1), (5, 1), (11, 2)), (3, 8, 21)):
        yield geometry(rng, **wide, h=4, w=w, c=13, out_c=n, k=(1, 1), stride=(1, stride), batch=2)
        for down in (0, 1):
            part: dict[str, Any] = {"rows": (1, 3), "in_ring": 3, "out_ring": 2, "descending": down}
            yield geometry(rng, **wide, h=4, w=w, c=13, out_c=n, k=(1, 1), stride=(1, stride), **part)
    for c, planar in ((7, False), (8, False), (8, True), (3, True)):  # few channels, and as many as a vector has
        edge: dict[str, Any] = {"pads": (1, 2, 0, 2), "planar": planar, "batch": 2}
        for n in (7, 8, 17):
            yield geometry(rng, **wide, h=5, w=6, c=c, out_c=n, k=(2, 3), **edge)
        yield geometry(rng, **wide, h=7, w=19, c=c, out_c=5, k=(3, 3), stride=(2, 2), dilation=(1, 2), **edge)


def test_last_block_ends_with_the_last_output() -> None:
    assert blocks(16, 8) == [(0, 8), (8, 8)]
    assert blocks(18, 8, 4) == [(0, 8), (8, 8), (14, 4)]
    assert blocks(21, 8) == [(0, 8), (8, 8), (13, 8)]
    assert blocks(3, 8) == [(0, 8)]


def test_stream_holds_no_input_twice() -> None:
    weights = np.arange(5 * 10, dtype=np.int8).reshape(5, 10)
    bias, ends = np.arange(5, dtype=np.int32), Ends.of({"scale": np.ones(1, np.float32)}, 5)
    data = stream(weights, bias, ends, [(0, 4), (4, 1)], 4).tobytes()
    assert len(data) == 5 * (4 + 4 + 10) + 2  # to whole words
    assert data[:16] == bias[:4].tobytes()
    assert data[32:64] == weights[:4, :4].tobytes() + weights[:4, 4:8].tobytes()
    assert data[64:72] == weights[:4, 8:].tobytes()
    assert data[72 + 8 :][:10] == weights[4].tobytes()


def test_a_block_has_its_multipliers_then_a_byte_for_each_shift() -> None:
    weights, bias = np.arange(15, dtype=np.int8).reshape(3, 5), np.arange(3, dtype=np.int32)
    mul, shift = np.asarray([1 << 30, (1 << 30) + 1, (1 << 31) - 1], np.int32), np.asarray([-1, -7, -31], np.int8)
    data = stream(weights, bias, Ends.of({"mul": mul, "shift": shift}, 3), [(0, 2), (2, 1)], 4).tobytes()
    assert data[:18] == bias[:2].tobytes() + mul[:2].tobytes() + shift[:2].tobytes()
    assert data[28:37] == bias[2:].tobytes() + mul[2:].tobytes() + shift[2:].tobytes()


@pytest.mark.parametrize("a32", [False, True])
def test_fixed_sums_are_the_codes_of_all_pairs(a32: bool) -> None:
    point = point_of(a32=a32)
    a, b = np.arange(-128, 128)[:, None], np.arange(-128, 128)[None, :]
    for ratios, zero in (((0.7732463, 2.045217), -37.205345), ((-0.3183099, 0.8660254), 5.291503)):
        wanted = np.clip(np.rint(a * ratios[0] + b * ratios[1] + zero), -128, 127)
        found = fixed_terms(wanted, ratios, point)
        assert found is not None
        codes = [(np.arange(-128, 128, dtype=object) << point.shift) * f + (1 << 30) >> 31 for f in found[:2]]
        sums = codes[0][:, None] + codes[1][None, :] + found[2]
        rounded = (sums + (1 << (point.fraction - 1))) >> point.fraction
        assert np.array_equal(np.clip(rounded.astype(np.int64), -128, 127), wanted)


def test_sums_with_ties_to_both_sides_have_no_fixed_form() -> None:
    a, b = np.arange(-128, 128)[:, None], np.arange(-128, 128)[None, :]
    assert fixed_terms(np.clip(np.rint(a + 0.5 * b), -128, 127), (1.0, 0.5), point_of(a32=False)) is None
