"""Sums and products of all 65,536 pairs of codes: every kernel variant, and every combination of types as onnxruntime
computes it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import onnx
import pytest

from glowc.graph.types import DType, quant
from glowc.kernels.shapes import axis_keys
from glowc.ops.binary_codes import fused_terms, mul_scale
from glowc.ops.interp import run_graph
from tests.kernels.case import Case, make_case
from tests.unit.onnx_builders import f32, model, node
from tests.unit.quirk_models import onnxruntime_outputs, optimised

F32 = np.float32
KINDS = {"s8": np.int8, "u8": np.uint8}
TYPES = list(itertools.product(KINDS, repeat=3))
SCALES = (0.05, 0.1, 0.3, 0.15, 0.025, 0.2, 0.6, 0.125, 0.07)  # with many ties
A, B = (grid.reshape(-1).astype(np.int8) for grid in np.meshgrid(*[np.arange(-128, 128)] * 2, indexing="ij"))


def kernel_cases() -> Iterator[Case]:
    """All pairs of codes, with scales that make ties: of sums both forms, of products those of int8 and of uint8."""
    axes = dict.fromkeys(axis_keys("d"), 1) | dict.fromkeys((*axis_keys("a"), *axis_keys("b")), 0)
    dense = axes | {"d0": A.size, "a0": 1, "b0": 1, "rank": 1, "out_max": 127}
    for i, (sa, sb, sy, za, zb, zy) in enumerate(((0.1, 0.15, 0.3, 23, 74, 89), (0.05, 0.3, 0.7, -128, 5, -3))):
        qa, qb, qy = quant(sa, za), quant(sb, zb), quant(sy, zy)
        zeros = {"a_zp": za, "b_zp": zb, "out_zp": zy, "out_min": -128}
        scales = {"a_scale": qa.scale[0], "b_scale": qb.scale[0], "out_scale": qy.scale[0]}
        yield _case("add_s8", dense | zeros | scales | {"sign": "+-"[i]})
        ra, rb, fixed = fused_terms(qa, qb, qy, 128 * i)
        ratios = {"a_ratio": ra, "b_ratio": rb, "fixed": fixed, "half": 128 * i, "out_min": -128}
        yield _case("add_s8f", dense | ratios)
        for kernel in ("mul_s8", "mul_s8u"):
            scale = mul_scale(qa, qb, quant(sy / 4, zy))
            half = {"half": 128} if kernel == "mul_s8u" else {}
            yield _case(kernel, dense | zeros | half | {"scale": scale, "out_min": 100 * i - 128})
    for scale, zp in ((0.0048287613317, -42), (0.0067307734862, 67)):  # products that float32 takes over a tie
        beside = {"a_zp": 0, "b_zp": 0, "out_zp": zp, "scale": scale, "out_min": -128}
        yield _case("mul_s8", dense | beside)
    steep = {"a_zp": 10, "b_zp": 127, "out_zp": -2, "scale": 0.001953125, "out_min": -128}
    steep["half"] = 128  # and the scale makes half a code: 1/2 + 255/512
    yield _case("mul_s8u", dense | steep | {"out_max": 100})
    yield _case("mul_s8u", dense | steep | {"scale": 3e38})


def _case(kernel: str, params: dict[str, int | float | str]) -> Case:
    return make_case(kernel, {"a": A, "b": B}, params, out={"out": (A.shape, DType.S8)}, name="all pairs")


def net(op: str, types: tuple[str, str, str], seed: int) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Return a model of one operator between DequantizeLinear and QuantizeLinear, and all pairs of codes."""
    rng = np.random.default_rng(seed)
    limits = [np.iinfo(KINDS[kind]) for kind in types]
    zeros = [KINDS[kind](rng.integers(i.min, i.max + 1)) for kind, i in zip(types, limits, strict=True)]
    sa, sb, sy = (f32(scale) for scale in rng.choice(SCALES, 3))
    consts = {"sa": sa, "za": zeros[0], "sb": sb, "zb": zeros[1], "sy": sy, "zy": zeros[2]}
    nodes = [
        node("DequantizeLinear", "a sa za", "ar"),
        node("DequantizeLinear", "b sb zb", "br"),
        node(op.split()[0], "ar br", "r"),
        *(node(name, "r", "c") for name in op.split()[1:]),
        node("QuantizeLinear", "c sy zy" if " " in op else "r sy zy", "y"),
    ]
    proto = model(nodes, {k: f"{kind}[256,256]" for k, kind in zip("ab", types, strict=False)}, {"y": types[2]}, consts)
    codes = [(array.astype(np.int64) + i.min + 128).astype(i.dtype) for array, i in zip((A, B), limits, strict=False)]
    return proto, {"a": codes[0].reshape(256, 256), "b": codes[1].reshape(256, 256)}


def written_down(
    op: str, types: tuple[str, str, str], proto: onnx.ModelProto, feeds: dict[str, np.ndarray]
) -> np.ndarray:
    """onnxruntime's formulas, on the codes as the model has them: of one type in integers, else in float32.

    A Relu stays, and keeps it in float32, as long as its 0 is not the lowest code.
    """
    consts = {i.name: onnx.numpy_helper.to_array(i) for i in proto.graph.initializer}
    (sa, za), (sb, zb), (sy, zy) = ((consts[f"s{k}"], consts[f"z{k}"].astype(np.int64)) for k in "aby")
    a, b = feeds["a"].astype(np.int64), feeds["b"].astype(np.int64)
    info = np.iinfo(KINDS[types[2]])
    zero = F32(zy)
    if len(set(types)) == 1 and op == "Mul":
        value = ((a - za) * (b - zb)).astype(F32) * F32(F32(sa * sb) / sy) + zero
    elif len(set(types)) == 1 and op == "Add":
        ra, rb = F32(sa / sy), F32(sb / sy)
        fixed = F32(zero - _fma(F32(za), ra, F32(rb * F32(zb))))
        value = _fma(a, ra, _fma(b, rb, fixed))
    else:
        left, right = (a - za).astype(F32) * sa, (b - zb).astype(F32) * sb
        real = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply}[op.split()[0]](left, right)
        value = np.rint((np.maximum(real, 0) if op.endswith("Relu") else real) / sy) + zero
    return np.clip(np.rint(value), info.min, info.max).astype(info.dtype)


def _fma(x: np.ndarray | F32, factor: F32, term: np.ndarray | F32) -> np.ndarray:
    return np.asarray(np.float64(1) * x * np.float64(factor) + np.asarray(term, np.float64)).astype(F32)


@pytest.mark.parametrize("types", TYPES, ids="-".join)
@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Add Relu", "Mul Relu"])
def test_every_pair_of_codes_is_that_of_onnxruntime(op: str, types: tuple[str, str, str]) -> None:
    for seed in range(2):
        proto, feeds = net(op, types, seed)
        want = written_down(op, types, proto, feeds)
        assert np.array_equal(run_graph(optimised(proto), feeds)["y"], want), seed
        if seed == 0:
            assert np.array_equal(onnxruntime_outputs(proto, feeds)["y"], want)
