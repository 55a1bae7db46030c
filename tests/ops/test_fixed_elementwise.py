"""Sums, products, averages, softmax and changes of quantisation as TensorFlow Lite computes them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import asdict

import numpy as np

from glowc.graph.fixed_functions import saturating_codes, softmax_table
from glowc.graph.fixed_point import multiplier
from glowc.graph.types import DType, QuantParams, TensorType, quant
from glowc.kernels.common.sums import pair_sums, sum_key
from glowc.ops.binary_codes import Codes
from glowc.ops.fixed_pairs import FixedProduct, sum_params
from glowc.ops.fixed_rescale import quantized_away, scale_params
from glowc.ops.params import OutCodes, Pairs
from glowc.ops.reduce import factor
from glowc.program.params import Params, as_mapping
from tests.kernels.case import Case, make_case
from tests.ops import test_pool


def _pair(
    rng: np.random.Generator, dtype: DType, shape: tuple[int, int], wide: bool
) -> tuple[Pairs, dict[str, np.ndarray]]:
    """Return the loops of two operands, of which the second has one row where it is not `wide`."""
    n, c = shape
    a = rng.integers(dtype.qmin, dtype.qmax + 1, (n, c)).astype(dtype.numpy)
    b = rng.integers(dtype.qmin, dtype.qmax + 1, (n if wide else 1, c)).astype(dtype.numpy)
    a[-1, 0] = b[-1, 0] = dtype.qmin
    if wide:
        return Pairs(1, (n * c, 1, 1, 1, 1, 1), (1, 0, 0, 0, 0, 0), (1, 0, 0, 0, 0, 0)), {"a": a, "b": b}
    return Pairs(2, (n, c, 1, 1, 1, 1), (c, 1, 0, 0, 0, 0), (0, 1, 0, 0, 0, 0)), {"a": a, "b": b}


def _case(
    kernel: str, arrays: dict[str, np.ndarray], p: Params, out: tuple[tuple[int, ...], DType], **kw: object
) -> Case:
    return make_case(kernel, arrays, as_mapping(p), out={"out": out}, **kw)  # type: ignore[arg-type]


def _binary(rng: np.random.Generator, dtype: DType, shape: tuple[int, int], wide: bool) -> Iterator[Case]:
    points = rng.integers(-20, 20, 3) if dtype is DType.S8 else np.zeros(3, int)
    quants = tuple(quant(float(s), int(z)) for s, z in zip(rng.uniform(0.01, 0.1, 3), points, strict=True))
    loops, arrays = _pair(rng, dtype, shape, wide)
    low = int(points[2]) if rng.random() < 0.3 else dtype.qmin
    codes = Codes(loops, int(points[0]), int(points[1]), OutCodes(int(points[2]), low, dtype.qmax))
    out = (shape, dtype)
    left = 20 if dtype is DType.S8 else 15
    for sign in "+-":
        yield _case(
            f"add_{dtype.value}q31", arrays, sum_params(codes, (quants[0], quants[1], quants[2]), left, sign), out
        )
    product = multiplier(quants[0].scale[0] * quants[1].scale[0] / (quants[2].scale[0] * 2 ** (dtype.bits - 8)))
    yield _case(f"mul_{dtype.value}q31", arrays, FixedProduct(codes, *product), out)


def _rescale(rng: np.random.Generator, x: DType, y: DType, ratio: float, alpha: float) -> Case:
    source: QuantParams = quant(0.05, 3 if x is DType.S8 else 0)
    target = TensorType((50,), y, quant(0.05 / ratio, -7 if y is DType.S8 else 0))
    span = (x.qmin, x.qmax + 1) if x.bits < 32 else (-(1 << 20), 1 << 20)
    codes = rng.integers(*span, 50).astype(x.numpy)
    return _case("rescale_q31", {"in": codes}, scale_params(source, target, alpha, 50), ((50,), y))


def kernel_cases() -> Iterator[Case]:
    """Both kinds of codes, rows that repeat, factors above and below one; ties of averages and of floats."""
    rng = np.random.default_rng(5)
    shapes = ((1, 1), (3, 7), (4, 16), (2, 41), (2, 64))
    for dtype, shape, wide in itertools.product((DType.S8, DType.S16), shapes, (True, False)):
        yield from _binary(rng, dtype, shape, wide)
    for x, y in itertools.product((DType.S8, DType.S16, DType.S32), repeat=2):
        for ratio, alpha in ((0.3, 1.0), (1.7, 0.2)):
            yield _rescale(rng, x, y, ratio, alpha)
    floats = np.asarray(
        [0.5, -0.5, 1.5, -1.5, 2.5, 0.49999997, 1e30, -1e30, np.inf, np.nan, 8388609.0, 0.0], np.float32
    )
    for dtype in (DType.S8, DType.U8, DType.S16):
        params = {"n": floats.size, "zp": 4, "scale": 1.0}
        yield make_case("quantize_away", {"in": floats}, params, out={"out": (floats.shape, dtype)})
    for n, inner in ((1, 1), (9, 4), (49, 3), (7, 8), (300, 19), (61, 1)):
        out = OutCodes(2, -128, 127)
        mul, shift = factor(quant(0.1, -5), quant(0.07, 2), n)
        params = {"outer": 2, "n": n, "inner": inner, "in_zp": -5, **asdict(out), "mul": mul, "shift": shift}
        for kind in (DType.S8, DType.S16):
            x = rng.integers(-128, 128, (2, n, inner)).astype(kind.numpy)
            yield make_case(f"reduce_mean_{kind.value}q31", {"in": x}, params, out={"out": ((2, inner), kind)})
    for n, scale, kind in ((1, 0.1, DType.S8), (2, 0.02, DType.S8), (10, 0.2, DType.S16), (33, 1.5, DType.S8)):
        table = softmax_table(scale, 1.0)
        x = rng.integers(-128, 128, (3, n)).astype(np.int8)
        params = {"outer": 3, "n": n, "inner": 1, "entries": table.size}
        yield make_case("softmax_s8q31", {"in": x, "table": table}, params, out={"out": ((3, n), kind)})
    yield from _averages()


def _averages() -> Iterator[Case]:
    """Averages over odd and even counts, of few channels and of more than a vector has, below and above 127."""
    even = test_pool.geometry(6, 7, 18, 2, 2, 0, 1, ring=6)
    long = [
        case
        for k in (11, 12)
        for case in test_pool.pool_cases(DType.S16, test_pool.geometry(12, 12, 8, k, 1, 0, 1, ring=12), (0, 13 - k))
    ]
    for case in (*test_pool.kernel_cases(), *test_pool.pool_cases(DType.S8, even, (0, 3)), *long):
        if case.instr.kernel in ("avg_pool_s8w", "avg_pool_s16w"):
            keep = {
                k: v
                for k, v in case.instr.params.items()
                if k not in ("in_zp", "out_zp", "in_scale", "out_scale", "half")
            }
            kernel = case.instr.kernel.removesuffix("w") + "q31"
            given = {"in": case.arrays["in"], "out": case.arrays["out"]}
            for half in (0, 128):
                yield make_case(kernel, given, {**keep, "include_pad": 0, "half": half}, rows=case.instr.rows)


def test_halves_of_floats_are_rounded_away_from_zero() -> None:
    x = np.asarray([0.5, -0.5, 1.5, -2.5, np.nan], np.float32)
    assert quantized_away(x, 1.0, 10, DType.S8).tolist() == [11, 9, 12, 7, 10]


def test_logistic_and_tanh_saturate_at_the_ends_of_their_codes() -> None:
    codes = np.arange(-128, 128, dtype=np.int64)
    logistic = saturating_codes(codes, 0.2, "logistic", 8, -128, 127, -128)
    tanh = saturating_codes(codes, 0.2, "tanh", 7, -128, 127, 0)
    assert (logistic[0], logistic[128], logistic[-1]) == (-128, 0, 127)
    assert (tanh[0], tanh[128], tanh[-1]) == (-128, 0, 127)
    real = np.clip(np.round(256 / (1 + np.exp(-codes * 0.2))) - 128, -128, 127)
    assert np.abs(logistic - real).max() <= 1


def test_the_codes_of_all_pairs_are_those_of_the_sum() -> None:
    rng = np.random.default_rng(2)
    instr = next(c.instr for c in _binary(rng, DType.S8, (1, 1), True) if c.instr.params.get("sign") == "-")
    a, b = np.meshgrid(np.arange(-128.0, 128.0), np.arange(-128.0, 128.0), indexing="ij")
    found, p = pair_sums(sum_key(instr)), instr.params
    (left, right), zero = found.ratios, int(p["out_zp"])
    real = (a - float(p["a_zp"])) * left + (b - float(p["b_zp"])) * right + zero
    assert np.abs(np.clip(real, *found.bounds) - found.codes).max() <= 0.5 + 1e-4
    assert left > 0 > right
