"""LayerNormalization and RMSNormalization: floats against onnx.reference, codes against the formula and onnxruntime."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from glowc.errors import ModelError
from glowc.graph.graph import Node
from glowc.graph.types import DType, TensorType, quant
from glowc.ops.base import OpError
from glowc.ops.layer_norm import folded, on_codes
from glowc.ops.registry import get_op
from tests.conftest import require_module
from tests.kernels.case import Case, make_case
from tests.ops.one_node import check, graph_of, lowered, onnx_run

RNG = np.random.default_rng(8)
LIBM = "the sums run in another order than numpy's"


def row(shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray:
    return RNG.normal(size=shape).astype(dtype)


@pytest.mark.parametrize("axis", [-1, 1, 2, 3, 0])
@pytest.mark.parametrize("biased", [True, False])
def test_float_equals_onnx(axis: int, biased: bool) -> None:
    x = row((2, 3, 5, 7)) * 3
    inputs = [x, row(x.shape[axis:]), row(x.shape[axis:])][: 3 if biased else 2]
    attrs = {"axis": axis, "epsilon": 1e-3}
    (y,) = check("LayerNormalization", inputs, attrs, rtol=1e-6)
    np.testing.assert_allclose(y, onnx_run("LayerNormalization", inputs, attrs)[0], rtol=1e-5, atol=1e-5)


def test_mean_and_inverse_deviation_are_outputs() -> None:
    inputs = [row((4, 3, 6)), row((6,)), row((6,))]
    seen = check("LayerNormalization", inputs, {"axis": -1}, out_quants=(None, None, None), rtol=1e-6)
    for got, want in zip(seen, onnx_run("LayerNormalization", inputs, {"axis": -1}, 3), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(6,), (1, 6), (1,), (3, 6)])
def test_scale_broadcasts_to_the_row(shape: tuple[int, ...]) -> None:
    x, axis = row((2, 3, 6)), 1 if shape == (3, 6) else 2
    (y,) = check("LayerNormalization", [x, row(shape), row(shape)], {"axis": axis}, consts=(1, 2), rtol=1e-6)
    assert y.shape == x.shape


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rms_divides_by_the_root_of_the_mean_square(dtype: str) -> None:
    x, scale = row((5, 9), dtype) + 2, row((9,), dtype)
    (y,) = check("RMSNormalization", [x, scale], {"axis": -1, "epsilon": 1e-5}, rtol=1e-6)
    want = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * scale
    np.testing.assert_allclose(y, want, rtol=1e-5)


@pytest.mark.parametrize("op", ["LayerNormalization", "RMSNormalization"])
@pytest.mark.parametrize("kind", [DType.S8, DType.S16])
@pytest.mark.parametrize("n", [1, 7, 64, 300])
def test_codes_are_within_one_step_of_real_numbers(op: str, kind: DType, n: int) -> None:
    spread = 1 if kind is DType.S8 else 256
    x = RNG.integers(kind.qmin, kind.qmax, (40, n), endpoint=True).astype(kind.numpy)
    scale, bias = row((n,)), row((n,))
    parts = [scale, bias] if op == "LayerNormalization" else [scale]
    qx, qy = quant(0.04 / spread, 5), quant(0.06 / spread, -9)
    consts = tuple(range(1, len(parts) + 1))
    attrs = {"axis": -1, "epsilon": 1e-5}
    (y,) = check(op, [x, *parts], attrs, quants=[qx], out_quants=[qy], consts=consts)
    real = (x.astype(np.float64) - 5) * float(qx.scale[0])
    apart = real - real.mean(-1, keepdims=True) if op == "LayerNormalization" else real
    want = apart / np.sqrt((apart**2).mean(-1, keepdims=True) + 1e-5) * scale + (bias if len(parts) > 1 else 0)
    codes = np.clip(np.rint(want / float(qy.scale[0])) - 9, kind.qmin, kind.qmax)
    assert np.abs(y - codes).max() <= 1
    assert (y != codes).mean() <= 1e-3


def test_constant_rows_give_the_bias() -> None:
    x = np.full((3, 8), 17, np.int8)
    (y,) = check(
        "LayerNormalization", [x, np.ones(8, np.float32), np.full(8, 0.5, np.float32)], {"axis": -1, "epsilon": 0.0},
        quants=[quant(0.1, 4)], out_quants=[quant(0.25, 1)], consts=(1, 2),
    )  # fmt: skip
    assert (y == 3).all()


def ort_codes(x: np.ndarray, scale: np.ndarray, bias: np.ndarray, sx: float, sy: float) -> np.ndarray:
    """Return onnxruntime's DequantizeLinear - LayerNormalization - QuantizeLinear."""
    ort = require_module("onnxruntime")
    consts = {"sx": np.float32(sx), "zx": np.int8(3), "sy": np.float32(sy), "zy": np.int8(-6), "w": scale, "b": bias}
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "sx", "zx"], ["r"]),
        helper.make_node("LayerNormalization", ["r", "w", "b"], ["n"], axis=-1, epsilon=1e-5),
        helper.make_node("QuantizeLinear", ["n", "sy", "zy"], ["y"]),
    ]
    infos = [helper.make_tensor_value_info(n, TensorProto.INT8, x.shape) for n in ("x", "y")]
    held = [onnx.numpy_helper.from_array(np.asarray(a), n) for n, a in consts.items()]
    graph = helper.make_graph(nodes, "g", infos[:1], infos[1:], held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"x": x})[0])


def test_codes_agree_with_onnxruntime_but_for_near_ties() -> None:
    """At most one step, in at most 0.1 % of the elements (seen: 1 of 10,000 and fewer)."""
    different = total = 0
    for n in (16, 64, 100, 768):
        for _ in range(4):
            sx, sy = (float(v) for v in RNG.uniform(0.005, 0.1, 2))
            x = np.clip(RNG.normal(0, 40, (60_000 // n, n)), -128, 127).astype(np.int8)
            scale, bias = row((n,)), row((n,))
            want = ort_codes(x, scale, bias, sx, sy).astype(np.int64)
            constants = folded(scale, bias, 1e-5, n, quant(sx, 3), quant(sy, -6))
            got = on_codes(x, *constants, 3, -6, DType.S8, centre=True)
            assert np.abs(got - want).max() <= 1
            different, total = different + int((got != want).sum()), total + want.size
    assert different <= total / 10_000


def test_wrong_parts_are_refused() -> None:
    node = Node("n", "LayerNormalization", ("x", "s"), ("y",), {"axis": -1})
    x = TensorType((2, 6), DType.F32)
    with pytest.raises(OpError, match="does not broadcast"):
        get_op(node.op).infer(node, (x, TensorType((5,), DType.F32)))
    with pytest.raises(OpError, match="is not float"):
        get_op(node.op).infer(node, (x, TensorType((6,), DType.S8)))
    arrays = [np.zeros((1, 20_000), np.int8), np.ones(20_000, np.float32)]
    long = graph_of(node.op, arrays, {"axis": -1}, quants=[quant(0.1, 0)], out_quants=[quant(0.1, 0)], consts=(1,))
    with pytest.raises(ModelError, match="rows of at most"):
        lowered(long, arrays)


def kernel_cases() -> Iterator[Case]:
    for kind in (DType.S8, DType.S16):
        spread = 1 if kind is DType.S8 else 256
        for n in (1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 64, 65, 1000):
            for centre in (0, 1):
                x = RNG.integers(kind.qmin, kind.qmax, (5, n), endpoint=True).astype(kind.numpy)
                x[0] = x[0, 0]
                points = ((3, -7), (-128, 127), (127, -128))[n % 3]
                gain, shift, e = folded(row((n,)), row((n,)), 1e-5, n, quant(0.03 / spread, 0), quant(0.05 / spread, 0))
                params = {"rows": 5, "n": n, "in_zp": points[0], "out_zp": points[1], "e": e, "centre": centre}
                arrays = {"in": x, "gain": gain, "shift": shift}
                yield make_case(f"layer_norm_{kind.value}", arrays, params, out={"out": (x.shape, kind)})
    for n in (257, 258):  # the last whose spread fits 32 bits, and one more
        x = np.where(np.arange(2 * n).reshape(2, n) % n < n // 2, -128, 127).astype(np.int8)
        x[1] = 127
        gain, shift, e = folded(row((n,)), row((n,)), 1e-5, n, quant(0.03, 0), quant(0.05, 0))
        for centre in (0, 1):
            params = {"rows": 2, "n": n, "in_zp": -128, "out_zp": 3, "e": e, "centre": centre}
            arrays = {"in": x, "gain": gain, "shift": shift}
            yield make_case("layer_norm_s8", arrays, params, out={"out": (x.shape, DType.S8)})
    for e in (0.0, float(np.inf)):
        arrays = {"in": np.full((1, 4), -5, np.int8), "gain": row((4,)), "shift": row((4,))}
        params = {"rows": 1, "n": 4, "in_zp": 2, "out_zp": 0, "e": e, "centre": 1}
        yield make_case("layer_norm_s8", arrays, params, out={"out": ((1, 4), DType.S8)})
    for kind in (DType.F32, DType.F64):
        for n in (1, 5, 64):
            for centre, biased, stats in ((1, 1, ""), (0, 0, ""), (1, 0, "stats_"), (0, 1, "stats_")):
                arrays = {"in": row((4, n), kind.numpy.name) + 1, "scale": row((n,), kind.numpy.name)}
                arrays["bias"] = row((n,), kind.numpy.name)
                params = {"rows": 4, "n": n, "epsilon": 1e-3, "centre": centre, "biased": biased}
                out = {"out": ((4, n), kind)}
                if stats:
                    out |= {"mean": ((4, 1), DType.F32), "inverse": ((4, 1), DType.F32)}
                yield make_case(
                    f"layer_norm_{stats}{kind.value}", arrays, params, out=out, rtol=1e-5, atol=1e-5, why=LIBM
                )
