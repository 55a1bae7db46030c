"""Kernel cases of float layers with quantised weights: conv_f32w8, dwconv_f32w8, fc_f32w8, fc_f32_blocks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest

from glowc.graph.types import DType, TensorType
from glowc.ops.weight_only import unpack
from glowc.passes.quant.weights import pack_codes
from tests.kernels.case import Case, make_case
from tests.kernels.params import row_params
from tests.ops.dense import make_dense

TOLERANCE = {"atol": 1e-4, "rtol": 1e-5, "why": "the sum runs in another order than numpy's matrix product"}


def convolution(
    rng: np.random.Generator, group: int, planar: bool, step: int, w_zp: int, w: int = 6, c: int = 3, out_c: int = 5
) -> Case:
    """Return one convolution with int8 weights; depthwise when group > 1."""
    c, out_c, h = (4, 4, 5) if group > 1 else (c, out_c, 5)
    shape, out = (1, c, h, w) if planar else (1, h, w, c), TensorType((1, h, w, out_c), DType.F32)
    params = row_params(TensorType(shape, DType.F32), out, planar=planar) | {
        "k_h": 3, "k_w": 3, "stride_h": 1, "stride_w": 1, "dil_h": 1, "dil_w": 1, "pad_top": 1, "pad_left": 1,
        "groups": group, "w_zp": w_zp, "scale_step": step, "act_min": 0.0 if step else -math.inf, "act_max": math.inf,
    }  # fmt: skip
    arrays = {
        "in": rng.standard_normal(shape).astype(np.float32),
        "weights": rng.integers(-127, 128, (3, 3, out_c) if group > 1 else (out_c, 3, 3, c)).astype(np.int8),
        "scale": rng.uniform(0.001, 0.02, out_c if step else 1).astype(np.float32),
        "bias": rng.standard_normal(out_c).astype(np.float32),
    }  # fmt: skip
    name = "dwconv_f32w8" if group > 1 else "conv_f32w8"
    return make_case(name, arrays, params, rows=(0, h), out={"out": (out.shape, DType.F32)}, **TOLERANCE)  # type: ignore[arg-type]


def layer(rng: np.random.Generator, k: int, step: int, rows: int = 2, w_zp: int = 0) -> Case:
    """Return one fc_f32w8."""
    arrays = {
        "in": rng.standard_normal((rows, k)).astype(np.float32),
        "weights": rng.integers(-127, 128, (5, k)).astype(np.int8),
        "scale": rng.uniform(0.001, 0.02, 5 if step else 1).astype(np.float32),
        "bias": rng.standard_normal(5).astype(np.float32),
    }  # fmt: skip
    params = {
        "w_zp": w_zp,
        "scale_step": step,
        "act_min": -1.0,
        "act_max": math.inf,
    }
    return make_dense("fc_f32w8", arrays, params, out=DType.F32, **TOLERANCE)


def blocked(rng: np.random.Generator, bits: int, k: int, block: int, step: int, n: int = 4) -> Case:
    """Return one fc_f32_blocks; the last block may be shorter."""
    blocks = -(-k // block)
    arrays = {
        "in": rng.standard_normal((2, k)).astype(np.float32),
        "weights": pack_codes(rng.integers(0, 1 << bits, (n, k)), block, bits),
        "scale": rng.uniform(0.01, 0.1, (n, blocks)).astype(np.float32),
        "zero": rng.integers(0, 1 << bits, (n, blocks) if step else (1,)).astype(np.uint8),
        "bias": rng.standard_normal(n).astype(np.float32),
    }  # fmt: skip
    params = {
        "rows": 2, "in_k": k, "out_n": n, "block": block, "blocks": blocks, "zero_step": step, "bits": bits,
        "act_min": -math.inf, "act_max": 5.0,
    }  # fmt: skip
    return make_case("fc_f32_blocks", arrays, params, out={"out": ((2, n), DType.F32)}, **TOLERANCE)  # type: ignore[arg-type]


def kernel_cases() -> Iterator[Case]:
    """Layouts, scales per tensor and per channel, zero points, packed widths and short blocks."""
    rng = np.random.default_rng(7)
    for group, planar, step in itertools.product((1, 4), (False, True), (0, 1)):
        yield convolution(rng, group, planar, step, 11 * step)
    for c, planar, w in itertools.product((1, 3, 6), (False, True), (5, 9)):
        yield convolution(rng, 1, planar, 1, 0, w, c)
    yield convolution(rng, 1, False, 1, 0, c=16, out_c=180)  # more weights than a data cache keeps
    for k, rows in itertools.product((4, 9, 16, 19), (1, 5)):
        yield layer(rng, k, 1, rows)
    for k, step in itertools.product((1, 8, 33), (0, 1)):
        yield layer(rng, k, step, w_zp=3 * step)
    for bits, (k, block), step in itertools.product((2, 4, 8), ((32, 16), (40, 16), (7, 16), (64, 32)), (0, 1)):
        yield blocked(rng, bits, k, block, step)
        yield blocked(rng, bits, 2 * block, block, step, n=k % 32 + 3)


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_packing_and_unpacking_are_inverse(bits: int) -> None:
    codes = np.random.default_rng(0).integers(0, 1 << bits, (3, 37))
    assert np.array_equal(unpack(pack_codes(codes, 16, bits), bits, 37), codes)
