"""RequantShift: the integer form against the float formula, and the cases of the kernels that end in a shift."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from glowc.graph.types import DType, TensorType
from glowc.kernels.shapes import axis_keys
from glowc.ops.requant_shift import Shift, float_formula
from tests.kernels.case import Case, make_case
from tests.kernels.params import row_params
from tests.ops.dense import make_dense

ENDS = {"out_zp": -128, "out_min": -128, "out_max": 127, "shift": 16}


def constants(rng: np.random.Generator, channels: int, bits: int = 16) -> dict[str, np.ndarray]:
    """Return multipliers and offsets; negative ones and ties among them."""
    return {
        "mul": rng.integers(-700, 700, channels).astype(np.int32),
        "offset": rng.integers(-(2**20), 2**20, channels).astype(np.int64) + (1 << bits >> 1),
    }


def scales(rng: np.random.Generator, channels: int, *, rest: int) -> dict[str, np.ndarray]:
    """Return positive multipliers, and offsets whose part below a multiplier is under `rest`; many ties."""
    mul = rng.choice([256, 257, 514, 4096], channels).astype(np.int32)
    offset = mul * rng.integers(-3000, 3000, channels) + 32768 + rng.integers(0, rest, channels)
    return {"mul": mul, "offset": offset.astype(np.int64)}


def conv_case(
    rng: np.random.Generator, dtype: DType, *, group: int = 1, planar: bool = False, pad: int = 1, k: int = 3,
    shape: tuple[int, int, int, int] = (3, 5, 6, 5), w_zp: int = 0, rest: int = 0,
) -> Case:  # fmt: skip
    """Return one convolution that ends in a shift; depthwise when group > 1. `shape` is in_c, out_c, height, width."""
    c, out_c, h, w = (4, 4, 6, 5) if group > 1 else shape
    in_shape = (1, c, h, w) if planar else (1, h, w, c)
    out = TensorType((1, h + 2 * pad + 1 - k, w + 2 * pad + 1 - k, out_c), DType.S8)
    params = row_params(TensorType(in_shape, dtype), out, planar=planar) | {
        "k_h": k, "k_w": k, "stride_h": 1, "stride_w": 1, "dil_h": 1, "dil_w": 1, "pad_top": pad, "pad_left": pad,
        "groups": group, "w_zp": w_zp, "in_zp": -128 if dtype is DType.S8 else 0, **ENDS,
    }  # fmt: skip
    weights = rng.integers(-127, 128, (k, k, out_c) if group > 1 else (out_c, k, k, c)).astype(np.int8)
    low, high = (dtype.qmin, dtype.qmax + 1) if dtype is DType.S8 else (-128, 256)
    x = rng.integers(low, high, in_shape)
    arrays = {"in": x.astype(dtype.numpy), "weights": weights, **constants(rng, out_c)}
    if rest:
        arrays |= scales(rng, out_c, rest=rest)
    name = f"{'dwconv' if group > 1 else 'conv'}_{dtype.value}rs"
    return make_case(name, arrays, params, rows=(0, out.shape[1]), out={"out": (out.shape, DType.S8)})


def fc_case(rng: np.random.Generator, dtype: DType, k: int, n: int, rows: int = 1, rest: int = 0) -> Case:
    """Return one fc_*rs case, of several rows as a convolution."""
    x = rng.integers(dtype.qmin, dtype.qmax + 1, (rows, k)) // (1 if dtype is DType.S8 else 100)
    arrays = {
        "in": x.astype(dtype.numpy),
        "weights": rng.integers(-127, 128, (n, k)).astype(np.int8),
        **(scales(rng, n, rest=rest) if rest else constants(rng, n)),
    }
    return make_dense(f"fc_{dtype.value}rs", arrays, {"w_zp": 0, "in_zp": -3, **ENDS}, out=DType.S8)


def kernel_cases() -> Iterator[Case]:
    """Every kernel that ends in a shift, and RequantShift alone."""
    rng = np.random.default_rng(5)
    for dtype, group, planar in itertools.product((DType.S8, DType.S16), (1, 4), (False, True)):
        yield conv_case(rng, dtype, group=group, planar=planar, pad=int(not planar))
    for c, k, w_zp in itertools.product((4, 16, 18), (1, 3), (0, 5)):
        yield conv_case(rng, DType.S8, pad=k // 2, k=k, shape=(c, 7, 4, 8), w_zp=w_zp)
    yield conv_case(rng, DType.S8, planar=True, shape=(3, 6, 5, 12))
    for rest, group in itertools.product((1, 200), (1, 4)):
        yield conv_case(rng, DType.S8, group=group, shape=(6, 9, 7, 7), rest=rest)
        yield from (fc_case(rng, DType.S8, 21, 19, rows=rows, rest=rest) for rows in (1, 5))
    for group in (1, 4):  # multipliers of 1/4, 256 and between
        case = conv_case(rng, DType.S8, group=group, shape=(6, 9, 7, 7), rest=1)
        mul, offset = case.arrays["mul"], case.arrays["offset"]
        mul[:] = rng.choice([(1 << 14) - 1, 1 << 14, 99999, (1 << 24) - 1, 1 << 24], mul.shape)
        offset[:] = 32768 + mul.astype(np.int64) * rng.integers(-50, 50, mul.shape)
        mul[0], offset[0] = 1 << 18, 32768 + 65537  # more than a code, less than the multiplier
        weights = case.arrays["weights"]
        weights[:] //= 64
        channel = weights[0] if group == 1 else weights[..., 0]
        channel[...] = np.eye(1, channel.size, dtype=np.int8).reshape(channel.shape)  # sums that do not saturate
        yield case
    for rest, planar, k in itertools.product((1, 200), (False, True), (1, 3)):
        yield conv_case(rng, DType.S16, planar=planar, pad=k // 2, k=k, shape=(3, 9, 7, 7), rest=rest)
    for rows, dtype, k in itertools.product((1, 2), (DType.S8, DType.S16), (1, 7, 16, 33)):
        yield fc_case(rng, dtype, k, 6, rows=rows)
    axes = dict.fromkeys(axis_keys("d"), 1) | dict.fromkeys((*axis_keys("a"), *axis_keys("b")), 0)
    codes = rng.integers(-128, 128, (2, 30)).astype(np.int8)
    for sign in "+-":
        loops = axes | {
            "d0": 30,
            "a0": 1,
            "b0": 1,
            "rank": 1,
            "sign": sign,
            "a_zp": -128,
            "b_zp": 5,
            **ENDS,
            "shift": 9,
        }
        arrays = {"a": codes[0], "b": codes[1], **constants(rng, 1, 9)}
        yield make_case("add_s8rs", arrays, loops, out={"out": ((30,), DType.S8)})
        wide = {"mul": np.asarray([1 << 24], np.int32), "offset": np.asarray([5 << 24], np.int64)}
        yield make_case("add_s8rs", arrays | wide, loops | {"shift": 25, "out_max": 90}, out={"out": ((30,), DType.S8)})
    for dtype, to in ((DType.S32, DType.S8), (DType.S8, DType.S8), (DType.S16, DType.S16)):
        wide = rng.integers(-200000, 200000, (2, 3, 7)) if dtype is DType.S32 else rng.integers(-128, 128, (2, 3, 7))
        arrays = {"in": wide.astype(dtype.numpy), **constants(rng, 3)}
        yield make_case(
            "requant_shift", arrays, {"outer": 2, "channels": 3, "inner": 7, "in_zp": 1, **ENDS},
            out={"out": ((2, 3, 7), to)},
        )  # fmt: skip
    for dtype in (DType.F32, DType.F64):
        x = rng.integers(-200000, 200000, (2, 3, 7)).astype(dtype.numpy)
        arrays = {"in": x, "mul": rng.integers(1, 700, 3).astype(np.float64), "add": np.asarray([0.0, 5.0, -7.0])}
        params = {"outer": 2, "channels": 3, "inner": 7, "out_min": -128, "out_max": 127, "out_zp": 0, "div": 65536.0}
        yield make_case(f"requant_shift_{dtype.value}", arrays, params, out={"out": ((2, 3, 7), dtype)})


@pytest.mark.parametrize("div", [1, 2, 256, 65536, 3])
def test_integer_form_is_the_float_formula(div: int) -> None:
    """Over ties (half up) and signs; onnx's text is clip(floor((x * mul + add) / div + 0.5))."""
    x = np.arange(-5000, 5000)
    for mul, add in ((1, 0), (514, 0), (-257, 13), (32768, 32768)):
        wanted = float_formula(x.astype(np.float32), np.asarray(mul), np.asarray(add), div, -128, 127)
        assert np.array_equal(Shift((mul,), (add,), div, -128, 127).apply(x, -1), wanted)
