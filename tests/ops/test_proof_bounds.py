"""Layers just inside and just outside of the bounds of proofs: a faster path that is taken too early gives other bytes.

The proofs are those of packings: that sums or products fit a narrower type, that a multiplication in integers rounds as
float32 does, that a layer may be simplified. Each case is run by every variant on every machine.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pytest

from glowc.graph.numerics import fma, requantize
from glowc.graph.types import DType, TensorType
from glowc.kernels.shapes import axis_keys
from glowc.kernels.simd.stream import is_bounded
from glowc.kernels.thumb import depthwise as thumb_depthwise
from glowc.kernels.thumb import fold as thumb_fold
from glowc.program.ir import ParamValue
from tests.kernels.case import Case, make_case
from tests.kernels.params import row_params
from tests.ops.dense import by_rows

F32 = np.float32
EVEN = 1 << 23  # sums of the upper channel of a pair stay below it
SHORT = 1 << 21  # sums that end in 32 bits are limited to it
Dense = Callable[[], Iterator[Case]]


def fc(weights: np.ndarray, bias: np.ndarray, scale: np.ndarray, x: np.ndarray, *, zp: int = 0, name: str) -> Dense:
    """Return a layer of weights[N, K] on the rows of x, input zero point 0."""
    params: dict[str, ParamValue] = {"in_zp": 0, "w_zp": 0, "out_zp": zp, "out_min": -128}
    arrays = {"in": x.astype(np.int8), "weights": weights.astype(np.int8), "bias": bias.astype(np.int32)}
    arrays["scale"] = np.broadcast_to(scale, (len(weights),)).astype(F32)
    params |= {"out_max": 127, "scale_step": 1}
    return partial(by_rows, "fc_s8", arrays, params, out=DType.S8, name=name)


def shifted(
    weights: np.ndarray, mul: np.ndarray, offset: np.ndarray, shift: int, x: np.ndarray, name: str, *, in_zp: int = 0
) -> Dense:
    """Return a layer that ends in a multiplication and a shift."""
    params: dict[str, ParamValue] = {"in_zp": in_zp, "w_zp": 0, "out_zp": -1, "out_min": -128}
    arrays = {"in": x.astype(np.int8), "weights": weights.astype(np.int8), "mul": mul.astype(np.int32)}
    params |= {"out_max": 127, "shift": shift}
    arrays["offset"] = offset.astype(np.int64)
    return partial(by_rows, "fc_s8rs", arrays, params, out=DType.S8, name=name)


def layers() -> Iterator[Dense]:
    """Yield the fully connected layers."""
    yield from narrow_products()
    yield least_weights()
    yield from near_ties()
    yield from pairs_of_channels()
    yield from short_sums()
    yield from products_beyond_floats()
    yield constant_channels()
    yield large_biases_with_weights()


def fused_sums() -> Iterator[Case]:
    """A sum that lies beyond a tie by less than float64 holds, and one that does not."""
    x = np.arange(-128, 128).astype(np.int8)
    axes = dict.fromkeys((*axis_keys("d"), *axis_keys("a"), *axis_keys("b")), 0) | dict.fromkeys(axis_keys("d"), 1)
    axes |= {"d0": 256, "a0": 1, "b0": 1, "rank": 1, "half": 128, "out_min": -128, "out_max": 127}
    for mantissa, fixed in ((5237765, 64.5), (5237765, 65.5), (5237763, 64.5)):
        for ratio in (F32(mantissa * 2.0**-48), F32(-mantissa * 2.0**-48)):
            params = axes | {"a_ratio": float(ratio), "b_ratio": 0.0, "fixed": fixed}
            yield make_case("add_s8f", {"a": x, "b": x}, params, out={"out": ((256,), DType.S8)}, name="fused ties")


def kernel_cases() -> Iterator[Case]:
    """Yield each layer, as a convolution and as fully connected ones."""
    yield from fused_sums()
    yield from depthwise_at_the_bound()
    for cases in layers():
        yield from cases()


def narrow_products() -> Iterator[Dense]:
    """Products of sums and scales up to 32000 pass through 16 bits with the zero point, larger ones saturate there."""
    k, n = 16, 8
    x = np.stack([np.full(k, code) for code in (-128, 127, -128, 1)])
    for product, zp in ((31990.0, 127), (31990.0, -128), (32700.0, 127), (32700.0, -128), (65541.0, 3), (300e6, 9)):
        weights = np.full((n, k), 127)
        weights[1::2] *= -1
        yield fc(weights, np.zeros(n), F32(product / (128 * 127 * k)), x, zp=zp, name=f"products of {product}")
        few = np.zeros((n, k))
        few[:, 0] = 1
        bias = (1 << 20) * np.where(np.arange(n) % 2, -1, 1)
        yield fc(few, bias, F32(product / (1 << 20)), x, zp=zp, name=f"biases give {product}")


def least_weights() -> Dense:
    """Weights and inputs of -128 side by side: two of their products do not fit 16 bits."""
    weights, x = np.full((8, 40), -128), np.stack([np.full(40, code) for code in (-128, 127, -128, -127)])
    return fc(weights, np.zeros(8), F32(1 / 6000), x, name="weights of -128")


def near_ties() -> Iterator[Dense]:
    """Sums whose code is decided by the rounding of float32, or by what a factor of 2^-32 leaves out of the scale."""
    for name, sums, scale in (
        ("ties", np.arange(-62, 64, 4), F32(0.25)),
        ("rounded onto a tie", *_rounded_onto_a_tie()),
        ("cut off", *_cut_off()),
        ("sums that float32 rounds", (129 << 17) + np.arange(-9, 10), F32(2.0**-18)),
    ):
        weights = np.zeros((len(sums), 4))
        weights[:, 0] = 1
        yield fc(weights, np.asarray(sums), scale, np.zeros((4, 4)), name=name)
    yield _cut_off_inputs()


def _rounded_onto_a_tie() -> tuple[np.ndarray, np.float32]:
    """Return sums, each less than 2^12, whose float32 product with a scale is a tie and the exact one is none."""
    rng = np.random.default_rng(5)
    sums = np.arange(256, 1024)
    while True:
        scale = F32(rng.uniform(0.1, 0.2))
        exact = sums * np.float64(scale)
        beyond = (sums.astype(F32) * scale).astype(np.float64) % 1 == 0.5
        wrong = beyond & (exact % 1 != 0.5) & (np.floor(exact + 0.5) != np.rint(sums.astype(F32) * scale))
        if (wrong & (exact < 127)).sum() >= 1:
            found = sums[wrong & (exact < 127)][:4]
            return np.repeat(found, 4)[:8], scale


def _cut_off() -> tuple[np.ndarray, np.float32]:
    """Return large sums whose product with floor(scale * 2^32) lies on the other side of a tie, 2^-15 off or more."""
    scale = F32(2.0**-17 * 1.2345678)
    sums = np.arange(1 << 22, (1 << 22) + (1 << 20))
    factor = int(np.floor(np.float64(scale) * 2.0**32))
    want = requantize(sums, scale, 0, -128, 127)
    got = (sums * factor + (1 << 31)) >> 32
    return sums[want != got][:8], scale


def _cut_off_inputs() -> Dense:
    """Return a layer as of `_cut_off` whose sums come from its inputs; the ties are more than half of them away."""
    k = 256
    factor = 40453 + 255 / 256  # 2^32 times the scale
    biases = np.arange(-(1 << 17), 1 << 17)
    sums = 127 * 127 * k + biases
    fraction = (sums * 40453 + (1 << 31)) % (1 << 32)
    missing = (1 << 32) - fraction
    found = biases[(missing < sums * 0.95) & (missing > sums * 0.65)][:8]
    scale = F32(factor * 2.0**-32)
    return fc(np.full((len(found), k), 127), found, scale, np.full((4, k), 127), name="cut off, of inputs")


def pairs_of_channels() -> Iterator[Dense]:
    """The upper one of two channels in a word has 24 bits: sums on both sides of 2^23, of both signs."""
    k, n = 8, 8
    x = np.stack([np.full(k, 127), np.full(k, -128), np.zeros(k)])
    weights = np.ones((n, k))
    weights[1::2] = -3
    most = 128 * k
    for gap in (1, 0, -1, -(1 << 22)):
        for sign in (1, -1):
            bias = np.where(np.arange(n) % 2 == 0, sign * (EVEN - most - gap), 7)
            yield fc(weights, bias, F32(100 / EVEN / 2), x, zp=-50, name=f"even sums {gap} below 2^23, sign {sign}")
    for even, odd in ((-128, 1), (-128, -1), (127, 127), (-128, -128), (1, 128 - 256), (127, -128)):
        weights[0::2], weights[1::2] = even, odd
        yield fc(weights, np.arange(n) * 900, F32(0.0005), x, name=f"weights {even} and {odd}")


def short_sums() -> Iterator[Dense]:
    """Endings in 32 bits: sums around 2^21, products and offsets around 2^31."""
    n = 8
    for k, mul, shift in ((64, 1, 14), (128, 1, 13), (129, 1, 14), (140, 1, 15), (300, 1, 16), (128, 3, 15)):
        x = np.stack([np.full(k, -128), np.full(k, 127), np.arange(k) % 256 - 128])
        weights = np.full((n, k), -128)
        weights[1::2] = 127
        yield shifted(weights, np.full(n, mul), np.full(n, 1 << shift >> 1), shift, x, f"{k} inputs, shift {shift}")
    x = np.stack([np.full(8, code) for code in (-128, -1, 0, 1, 127)])
    for mul in (1 << 15, (1 << 16) - 1, 1 << 17, (1 << 24) - 1, 1 << 24):
        weights = np.full((n, 8), 64)
        offset = (1 << 22) + np.arange(n) * 77 - 5
        yield shifted(weights, np.full(n, mul), offset, 23 if mul < 1 << 20 else 31, x, f"multiplier {mul}")
    x = np.stack([np.full(200, -128), np.full(200, 127), np.arange(200) - 128])
    ones, weights = np.full(n, 1), np.full((n, 200), 64)  # sums beyond 2^21 with the zero point of the input only
    yield shifted(weights, ones, np.full(n, 1 << 14), 15, x, "inputs from -128", in_zp=-128)
    yield shifted(weights, ones, np.full(n, 1 << 14), 15, x, "inputs from 127", in_zp=127)


def products_beyond_floats() -> Iterator[Dense]:
    """A multiplier of 25 bits where float32's nearest one makes a tie, and an offset that leaves 32 bits."""
    n, mul = 8, (1 << 24) + 1
    x = np.stack([np.full(8, code) for code in (-128, -3, -1, 0, 1, 127)])
    weights = np.full((n, 8), 64)
    offset = (1 << 30) - 64 * (2 * np.arange(n) + 1) * mul
    yield shifted(weights, np.full(n, mul), offset, 31, x, f"multiplier {mul}")
    yield shifted(weights, np.full(n, 1), np.full(n, (1 << 33) + (1 << 27)), 28, x, "offset of 34 bits")


def constant_channels() -> Dense:
    """Channels without weights: a large bias is replaced by a smaller one only where the code stays."""
    weights = np.zeros((8, 8))
    weights[3] = 1
    bias = np.array([1 << 30, -(1 << 30), 1 << 30, 5, 1 << 25, 1 << 24, (1 << 24) - 1, -(1 << 31)])
    scale = np.array([50, 50, 1e6, 1e6, 60, 60, 60, 20]) / float(1 << 30)
    return fc(weights, bias, scale.astype(F32), np.stack([np.full(8, 3)] * 4), name="constant channels")


def large_biases_with_weights() -> Dense:
    """Channels that saturate by their bias: with a smaller one of the same code the inputs would show."""
    weights = np.full((8, 8), -127)
    bias = np.full(8, 1 << 30)
    return fc(weights, bias, F32(127.1 / (1 << 24)), np.stack([np.full(8, 127), np.zeros(8)]), name="large biases")


@pytest.mark.parametrize(("product", "inside"), [(31999.0, True), (32001.0, False)])
def test_products_are_bounded_up_to_32000(product: float, inside: bool) -> None:
    weights, bias = np.full((1, 4), 10), np.array([300])
    scale = np.array([product / (300 + 128 * 40)], F32)
    assert is_bounded(weights, bias, scale) is inside
    assert is_bounded(weights, -bias, -scale) is inside


def depthwise(scale: float, name: str) -> Case:
    """A depthwise layer whose sums reach from -255 * 9 * 10 to 0 with weights of -10: both ends occur."""
    x = np.full((1, 3, 6, 4), -128, np.int8)
    x[:, :, 3:] = 127
    arrays = {
        "in": x, "weights": np.full((3, 3, 4), -10, np.int8), "bias": np.zeros(4, np.int32),
        "scale": np.full(1, scale, F32),
    }  # fmt: skip
    params = row_params(TensorType(x.shape, DType.S8), TensorType((1, 1, 4, 4), DType.S8)) | {
        "k_h": 3, "k_w": 3, "stride_h": 1, "stride_w": 1, "dil_h": 1, "dil_w": 1, "pad_top": 0, "pad_left": 0,
        "groups": 4, "descending": 0, "in_zp": -128, "w_zp": 0, "out_zp": -128, "out_min": -128, "out_max": 127,
        "scale_step": 0,
    }  # fmt: skip
    out = {"out": ((1, 1, 4, 4), DType.S8)}
    return make_case("dwconv_s8", arrays, params, rows=(0, 1), out=out, name=name)


def depthwise_at_the_bound() -> list[Case]:
    """Just inside and just outside of 32000, and where a product fits no 16 bits."""
    largest = 255 * 9 * 10
    return [depthwise(v / largest, f"depthwise product {v}") for v in (31999.0, -31999.0, 32001.0, 40000.0, -70000.0)]


def test_distance_from_a_tie_grows_with_the_sums_until_float32_rounds_them() -> None:
    assert thumb_fold.near_tie(0) == (1 << 16) + 1
    assert thumb_fold.near_tie(1 << 24) == (1 << 24) + (1 << 16) + 1
    assert thumb_fold.near_tie((1 << 24) + 1) == 1 << 31


def test_fused_sums_are_rounded_once() -> None:
    """205 * 5237765 is 2^30 + 1: the sum lies beyond a tie of float32 by less than float64 holds."""
    tie = fma(np.array([205, -205]), F32(5237765 * 2.0**-48), np.array([64.5, -64.5], F32))
    assert tie.tolist() == [64.5 + 2.0**-17, -64.5 - 2.0**-17]
    below = fma(np.array([205]), F32(5237763 * 2.0**-48), np.array([64.5], F32))
    assert below.tolist() == [64.5]


def rows_of_windows() -> Iterator[tuple[int, int, int, int, int, int]]:
    """Yield (in_w, out_w, k_w, stride, dilation, pad) of all small rows."""
    for in_w, k_w, stride, dilation in itertools.product((1, 2, 5, 8, 13), (1, 2, 3, 5, 9), (1, 2, 3), (1, 2)):
        span = (k_w - 1) * dilation + 1
        for pad in {0, 1, span // 2, span - 1}:
            if in_w + 2 * pad >= span:
                yield in_w, (in_w + 2 * pad - span) // stride + 1, k_w, stride, dilation, pad


def test_tiles_know_which_of_their_columns_are_padding() -> None:
    for row in rows_of_windows():
        in_w, out_w, k_w, stride, dilation, pad = row
        tiles = thumb_depthwise.cut_row(*row)
        count = -(-out_w // tiles.outputs)
        middle = (tiles.middle,) * (count - len(tiles.first) - len(tiles.last))
        for n, kind in enumerate((*tiles.first, *middle, *tiles.last)):
            begin = min(n * tiles.outputs, out_w - tiles.outputs) * stride - pad
            columns = range(begin, begin + (tiles.outputs - 1) * stride + (k_w - 1) * dilation + 1)
            missing = sum(c < 0 for c in columns), sum(c >= in_w for c in columns)
            assert tiles.kinds[kind] == missing, (row, n)
