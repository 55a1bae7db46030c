"""The imported graph computes what the ONNX file says: numpy references of its operators against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from glowc.frontend import import_model
from glowc.graph.graph import Graph
from glowc.ops.base import Call
from glowc.ops.registry import get_op
from tests.conftest import require_module
from tests.unit.onnx_builders import f32, model, node

RNG = np.random.default_rng(1)


def evaluate(graph: Graph, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    values = {**graph.consts, **feeds}
    for n in graph.nodes:
        outs = tuple(graph.types[out] for out in n.outputs if out)
        call = Call(n, tuple(values[i] if i else None for i in n.inputs), graph.in_types(n), outs)
        values.update(zip(n.outputs, get_op(n.op).reference(call), strict=False))
    return [values[name] for name in graph.outputs]


def compare(proto: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> None:
    runtime = require_module("onnxruntime")
    graph = import_model(proto, keep_unknown=True)
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = runtime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    for have, want in zip(evaluate(graph, feeds), session.run(None, feeds), strict=True):
        assert have.shape == want.shape
        if have.dtype.kind in "iu":
            # Before the passes, codes are computed in float32, where a tie may fall to the other side.
            difference = np.abs(have.astype(int) - want.astype(int))
            assert difference.max() <= 1
            assert np.count_nonzero(difference) <= 0.02 * difference.size
        else:  # sums in another order
            assert np.allclose(have, want, rtol=1e-5, atol=1e-6)


W1, W2 = RNG.normal(size=(4, 2, 3)).astype(np.float32), RNG.normal(size=(4, 1, 3, 2)).astype(np.float32)

CASES: list[tuple[str, str, str, dict[str, Any], dict[str, Any], int]] = [
    ("Conv", "2,2,11", "w", {"w": W1}, {"strides": [2], "auto_pad": "SAME_LOWER"}, 13),
    ("Conv", "1,2,11", "w b", {"w": W1, "b": f32(1, 2, 3, 4)}, {"dilations": [2], "pads": [1, 3]}, 13),
    ("Conv", "1,2,9,8", "w", {"w": W2}, {"group": 2, "strides": [2, 3], "auto_pad": "SAME_UPPER"}, 13),
    ("ConvTranspose", "1,4,5,6", "w", {"w": W2}, {"strides": [2, 2], "output_shape": [11, 13]}, 13),
    ("ConvTranspose", "1,4,5", "w", {"w": W1}, {"strides": [2], "auto_pad": "SAME_UPPER"}, 13),
    ("MaxPool", "1,2,11", "", {}, {"kernel_shape": [3], "strides": [2], "pads": [1, 0]}, 13),
    ("AveragePool", "1,2,9", "", {}, {"kernel_shape": [4], "pads": [1, 2], "count_include_pad": 1}, 13),
    ("AveragePool", "1,2,7,7", "", {}, {"kernel_shape": [3, 2], "strides": [2, 2], "auto_pad": "SAME_UPPER"}, 13),
    ("GlobalAveragePool", "1,2,7,5", "", {}, {}, 13),
    ("GlobalMaxPool", "1,2,7", "", {}, {}, 13),
    ("Softmax", "2,3,4", "", {}, {}, 11),
    ("Softmax", "2,3,4", "", {}, {"axis": 0}, 13),
    ("Slice", "5,6", "s e a t", {"s": [-1, 1], "e": [-9, 100], "a": [0, -1], "t": [-2, 3]}, {}, 13),
    ("Pad", "3,4", "p v a", {"p": [2, 1], "v": f32(0.5), "a": [-1]}, {}, 19),
    ("Pad", "3,4", "p", {"p": [0, -1, 1, 2]}, {}, 13),
    ("Pad", "3,4", "p", {"p": [0, 2, 1, 2]}, {"mode": "reflect"}, 13),
    ("Expand", "3,1", "s", {"s": [2, 1, 4]}, {}, 13),
    ("Tile", "3,2", "r", {"r": [2, 3]}, {}, 13),
    ("Flatten", "2,3,4", "", {}, {"axis": -2}, 13),
    ("ReduceMean", "2,3,4", "a", {"a": [-1, 0]}, {"keepdims": 0}, 18),
    ("ReduceSum", "2,3,4", "", {}, {}, 13),
    ("Clip", "2,9", "_ h", {"h": f32(0.3)}, {}, 13),
    ("Gemm", "3,2", "w c", {"w": RNG.normal(size=(3, 5)).astype(np.float32), "c": f32(1, 2, 3, 4, 5)},
     {"transA": 1, "alpha": 0.5, "beta": 2.0}, 13),
    ("TopK", "2,6", "k", {"k": [3]}, {"axis": 0 - 1}, 13),
    ("Resize", "1,2,4,4", "_ k", {"k": f32(1, 1, 2, 1.5)}, {"mode": "nearest"}, 13),
    ("Resize", "1,2,4,4", "_ _ n", {"n": [1, 2, 7, 3]}, {"mode": "linear"}, 13),
    ("Upsample", "1,2,4,4", "k", {"k": f32(1, 1, 2, 2)}, {"mode": "nearest"}, 9),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0]}-{c[1]}-{c[5]}")
def test_normal_form_means_the_same(case: tuple[Any, ...]) -> None:
    op, shape, ins, consts, attrs, opset = case
    outs = {"y": "f32", "z": "s64"} if op == "TopK" else {"y": "f32"}
    nodes = [node(op, f"x {ins}", " ".join(outs), **attrs)]
    x = RNG.normal(size=tuple(map(int, shape.split(",")))).astype(np.float32)
    compare(model(nodes, {"x": f"f32[{shape}]"}, outs, consts, opset=opset), {"x": x})


def test_nary_mean_and_max() -> None:
    inputs = {name: RNG.normal(size=(2, 3)).astype(np.float32) for name in "abc"}
    types = dict.fromkeys(inputs, "f32[2,3]")
    compare(model([node("Mean", "a b c", "y")], types, "y", opset=13), inputs)
    compare(model([node("Max", "a b c", "y")], types, "y", opset=13), inputs)


def test_split_into_uneven_parts() -> None:
    x = RNG.normal(size=(2, 7)).astype(np.float32)
    proto = model([node("Split", "x", "a b c", axis=1, num_outputs=3)], {"x": "f32[2,7]"}, "a b c", opset=18)
    compare(proto, {"x": x})


def codes(shape: tuple[int, ...], dtype: type = np.uint8) -> np.ndarray:
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max + 1, shape).astype(dtype)


QUANT = {
    "sx": f32(0.02131),
    "zx": np.uint8(120),
    "sw": f32(0.01073),
    "zw": np.uint8(130),
    "sy": f32(0.09571),
    "zy": np.uint8(99),
}


@pytest.mark.parametrize(
    ("op", "ins", "consts", "attrs"),
    [
        ("QLinearConv", "w sw zw sy zy b", {"w": codes((4, 3, 3, 3)), "b": np.arange(4, dtype=np.int32)}, {}),
        ("QLinearMatMul", "w sw zw sy zy", {"w": codes((8, 5))}, {}),
    ],
)
def test_qlinear_operator_means_the_same(op: str, ins: str, consts: dict[str, Any], attrs: dict[str, Any]) -> None:
    nodes = [node(op, f"x sx zx {ins}", "y", **attrs)]
    proto = model(nodes, {"x": "u8[1,3,8,8]"}, {"y": "u8"}, {**QUANT, **consts}, opset=13)
    compare(proto, {"x": codes((1, 3, 8, 8))})


@pytest.mark.parametrize(
    ("op", "ins", "attrs"),
    [
        ("QLinearAdd", "sx zx x sx zx sy zy", {}),
        ("QLinearMul", "sx zx x sx zx sy zy", {}),
        ("QLinearAveragePool", "sx zx sy zy", {"kernel_shape": [2, 2], "pads": [1, 0, 0, 1]}),
        ("QLinearGlobalAveragePool", "sx zx sy zy", {}),
        ("QLinearLeakyRelu", "sx zx sy zy", {"alpha": 0.1}),
        ("QLinearSigmoid", "sx zx sw zw", {}),
    ],
)
def test_microsoft_qlinear_operator_means_the_same(op: str, ins: str, attrs: dict[str, Any]) -> None:
    nodes = [node(op, f"x {ins}", "y", domain="com.microsoft", **attrs)]
    proto = model(nodes, {"x": "u8[1,3,8,8]"}, {"y": "u8"}, QUANT, opset=13, domains=["com.microsoft"])
    compare(proto, {"x": codes((1, 3, 8, 8))})


def test_qdq_with_per_axis_weights_means_the_same() -> None:
    nodes = [
        node("DequantizeLinear", "x sx zx", "xr"),
        node("DequantizeLinear", "w sc zc", "wr", axis=0),
        node("Conv", "xr wr", "yr"),
        node("QuantizeLinear", "yr sy zy", "y"),
    ]
    consts = {**QUANT, "w": codes((4, 3, 3, 3), np.int8), "sc": f32(0.01, 0.02, 0.03, 0.04), "zc": np.zeros(4, np.int8)}
    proto = model(nodes, {"x": "u8[1,3,8,8]"}, {"y": "u8"}, consts, opset=13)
    compare(proto, {"x": codes((1, 3, 8, 8))})
