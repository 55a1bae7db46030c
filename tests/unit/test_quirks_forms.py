"""Lines 11 to 18 of ONNX_QUIRKS: a model that has it gives the numbers of onnxruntime's integer kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from glowc.ops.interp import run_graph
from tests.unit.onnx_builders import f32, model, node
from tests.unit.quirk_models import (
    RNG,
    Net,
    codes,
    conv_net,
    feed,
    ops,
    optimised,
    same_as_onnxruntime,
)

S8, U8, S32 = np.int8, np.uint8, np.int32


def test_11_qoperator_model_with_a_float_island() -> None:
    """11: com.microsoft operators, MaxPool and Transpose on uint8, and an operator without a Q form."""
    ms = "com.microsoft"
    consts: dict[str, Any] = {
        "s": f32(0.05), "z": U8(120), "w": codes(3, 3, 3, 3), "sw": f32(0.01, 0.02, 0.005), "zw": np.zeros(3, S8),
        "s2": f32(1 / 256), "z2": U8(0), "g": codes(18, 4), "sg": f32(0.01), "zg": S8(0), "flat": [1, 18],
        "cb": RNG.integers(-500, 500, 4).astype(S32),
    }  # fmt: skip
    nodes = [
        node("QLinearConv", "x s z w sw zw s z", "c", pads=[1, 1, 1, 1]),
        node("QLinearAdd", "c s z x s z s z", "a", domain=ms),
        node("QLinearLeakyRelu", "a s z s z", "l", domain=ms, alpha=0.1),
        node("MaxPool", "l", "p", kernel_shape=[2, 2], strides=[2, 2]),
        node("QLinearAveragePool", "p s z s z", "v", domain=ms, kernel_shape=[2, 2]),
        node("DequantizeLinear", "v s z", "vf"),
        node("Erf", "vf", "ef"),
        node("QuantizeLinear", "ef s z", "e"),
        node("QLinearConcat", "s z e s z v s z", "k", domain=ms, axis=1),
        node("Slice", "k b0 e0 ax", "k3"),
        node("Reshape", "k3 flat", "f"),
        node("QGemm", "f s z g sg zg cb s z", "q", domain=ms),
        node("QLinearSigmoid", "q s z s2 z2", "i", domain=ms),
        node("QLinearSoftmax", "i s2 z2 s2 z2", "y", domain=ms, axis=1, opset=13),
    ]
    consts |= {"b0": [0], "e0": [2], "ax": [1]}
    consts["g"], consts["flat"] = codes(8, 4), [1, 8]
    nodes[4] = node("QLinearAveragePool", "p s z s z", "v", domain=ms, kernel_shape=[2, 2])
    proto = model(nodes, {"x": "u8[1,3,6,6]"}, {"y": "u8"}, consts, domains=[ms], opset=13)
    same_as_onnxruntime(proto, feed("1,3,6,6", U8), in_c=True)


def test_12_dynamic_quantisation_chain() -> None:
    """12: one DynamicQuantizeLinear for two products with scales and zero points per column, and a ConvInteger."""
    nodes = [node("DynamicQuantizeLinear", "x", "q s z")]
    consts: dict[str, Any] = {}
    for name in "ab":
        consts |= {f"w{name}": codes(8, 5), f"z{name}": codes(5),
                   f"s{name}": RNG.uniform(0.001, 0.02, 5).astype(np.float32),
                   f"bias{name}": RNG.standard_normal(5).astype(np.float32)}  # fmt: skip
        nodes += [
            node("MatMulInteger", f"q w{name} z z{name}", f"i{name}"),
            node("Cast", f"i{name}", f"f{name}", to=1),
            node("Mul", f"s s{name}", f"t{name}"),
            node("Mul", f"f{name} t{name}", f"m{name}"),
            node("Add", f"m{name} bias{name}", f"y{name}"),
        ]
    proto = model(nodes, {"x": "f32[3,8]"}, "ya yb", consts)
    x = {"x": RNG.standard_normal((3, 8)).astype(np.float32)}
    graph = same_as_onnxruntime(proto, x, in_c=True)
    assert sorted(ops(graph)) == ["DynamicQuantizeLinear", "FullyConnectedDynamic", "FullyConnectedDynamic"]


def test_12_gather_on_uint8_table_conv_integer_and_fused_matmul() -> None:
    """12: Gather on a uint8 table, then DQ; ConvInteger; DynamicQuantizeMatMul of com.microsoft."""
    consts: dict[str, Any] = {
        "t": codes(9, 16, dtype=U8), "st": f32(0.02), "zt": U8(130), "four": [1, 4, 4, 4], "wc": codes(4, 4, 3, 3),
        "zc": S8(0), "sc": f32(0.01), "two": [4, 16], "w": codes(16, 3), "sw": f32(0.01, 0.02, 0.03), "zw": codes(3),
    }  # fmt: skip
    nodes = [
        node("Gather", "t i", "g"),
        node("DequantizeLinear", "g st zt", "r"),
        node("Reshape", "r four", "r4"),
        node("DynamicQuantizeLinear", "r4", "q s z"),
        node("ConvInteger", "q wc z zc", "c", pads=[1, 1, 1, 1]),
        node("Cast", "c", "cf", to=1),
        node("Mul", "s sc", "m"),
        node("Mul", "cf m", "d"),
        node("Reshape", "d two", "d2"),
        node("DynamicQuantizeMatMul", "d2 w sw zw", "y", domain="com.microsoft"),
    ]
    proto = model(nodes, {"i": "s64[4]"}, "y", consts, domains=["com.microsoft"])
    same_as_onnxruntime(proto, {"i": np.asarray([1, 8, 0, 3])}, tolerance=1e-6, in_c=True)


POOLS: dict[str, list[tuple[str, str, dict[str, Any]]]] = {
    "AveragePool": [("AveragePool", "x_r", {"kernel_shape": [5, 4]})],
    "GlobalAveragePool+Flatten": [("GlobalAveragePool", "x_r", {}), ("Flatten", "v0", {})],
    "ReduceMean+Reshape": [("ReduceMean", "x_r", {"axes": [2, 3]}), ("Reshape", "v0 flat", {})],
    "ReduceMean attribute": [("ReduceMean", "x_r", {"axes": [2, 3], "keepdims": 0})],
    "ReduceMax": [("ReduceMax", "x_r", {"axes": [2, 3], "keepdims": 0})],
    "MaxPool": [("MaxPool", "x_r", {"kernel_shape": [5, 4]})],
}


@pytest.mark.parametrize("form", POOLS)
def test_13_forms_of_global_pooling(form: str) -> None:
    """13: global pooling by AveragePool, GlobalAveragePool, ReduceMean, ReduceMax, MaxPool."""
    net = Net(17)
    net.input("x", "s8[1,6,5,4]")
    net.dq("x", 0.05, S8(2))
    net.const("flat", np.asarray([1, 6], np.int64))
    for i, (op, inputs, attrs) in enumerate(POOLS[form]):
        net.op(op, inputs, f"v{i}", **attrs)
    net.q(f"v{len(POOLS[form]) - 1}", 0.017, S8(-9), "y")
    same_as_onnxruntime(net.build({"y": "s8"}), feed("1,6,5,4"))


def test_13_two_means_in_a_row_with_axes_as_inputs() -> None:
    """13: two one-axis ReduceMean (axes as input), quantised in between."""
    net = Net(18)
    net.input("x", "s8[1,6,5,4]")
    net.dq("x", 0.05, S8(2))
    net.const("a3", np.asarray([3], np.int64)), net.const("a2", np.asarray([2], np.int64))
    net.op("ReduceMean", "x_r a3", "m", keepdims=0)
    net.op("ReduceMean", f"{net.qdq('m', 0.03, S8(0))} a2", "n", keepdims=0)
    net.q("n", 0.017, S8(-9), "y")
    same_as_onnxruntime(net.build({"y": "s8"}), feed("1,6,5,4"))


def test_14_shape_subgraph_is_folded() -> None:
    """14: Shape, Gather, Unsqueeze, Concat, Expand, ConstantOfShape, Equal, Where, Mod, Cast; weights by Slice."""
    consts: dict[str, Any] = {
        "zero": np.int64(0), "ax": [0], "tail": [8], "one": f32(1.0), "minus": [-1], "sizes": [1, 1],
        "three": np.int64(3),
        "w": RNG.standard_normal((8, 6)).astype(np.float32), "b0": [0], "b4": [3], "b8": [6], "a1": [1],
    }  # fmt: skip
    nodes = [
        node("Shape", "x", "sh"),
        node("Gather", "sh zero", "n"),
        node("Mod", "n three", "nm"),
        node("Unsqueeze", "n ax", "nu"),
        node("Concat", "nu tail", "dims", axis=0),
        node("Expand", "one dims", "ones"),
        node("ConstantOfShape", "sizes", "zeros"),
        node("Equal", "dims minus", "eq"),
        node("Where", "eq sizes dims", "target"),
        node("Reshape", "x target", "xr"),
        node("Cast", "nm", "nf", to=1),
        node("Slice", "w b0 b4 a1", "w0"),
        node("Slice", "w b4 b8 a1", "w1"),
        node("Concat", "w1 w0", "wz", axis=1),
        node("Add", "xr ones", "xa"),
        node("Mul", "xa nf", "xm"),
        node("MatMul", "xm wz", "y0"),
        node("Add", "y0 zeros", "y"),
    ]
    proto = model(nodes, {"x": "f32[4,8]"}, "y", consts)
    graph = same_as_onnxruntime(proto, {"x": RNG.standard_normal((4, 8)).astype(np.float32)}, tolerance=1e-5)
    assert set(ops(graph)) <= {"FullyConnected", "Add", "Mul"}


def test_14_gelu_as_an_erf_chain_with_constant_nodes() -> None:
    """14: Gelu as Div, Erf, Add, Mul, Mul; Constant nodes."""
    nodes = [
        node("Constant", "", "root", value_float=2**0.5),
        node("Constant", "", "one", value_float=1.0),
        node("Constant", "", "half", value_float=0.5),
        node("Div", "x root", "d"),
        node("Erf", "d", "e"),
        node("Add", "e one", "a"),
        node("Mul", "x a", "m"),
        node("Mul", "m half", "y"),
    ]
    x = RNG.standard_normal((2, 9)).astype(np.float32)
    same_as_onnxruntime(model(nodes, {"x": "f32[2,9]"}, "y"), {"x": x}, tolerance=1e-6)


def test_14_gru_bidirectional_and_linear_before_reset() -> None:
    """14: GRU with linear_before_reset=1, bidirectional, initial state by Expand of a shape."""
    rng = RNG
    consts: dict[str, Any] = {
        "w": rng.standard_normal((2, 9, 4)).astype(np.float32), "r": rng.standard_normal((2, 9, 3)).astype(np.float32),
        "b": rng.standard_normal((2, 18)).astype(np.float32), "z": f32(0.0), "dims": [2, 1, 3],
    }  # fmt: skip
    nodes = [
        node("Expand", "z dims", "h0"),
        node("GRU", "x w r b _ h0", "y", hidden_size=3, direction="bidirectional", linear_before_reset=1),
    ]
    x = rng.standard_normal((5, 1, 4)).astype(np.float32)
    same_as_onnxruntime(model(nodes, {"x": "f32[5,1,4]"}, "y", consts), {"x": x}, tolerance=1e-5)


@pytest.mark.parametrize("attrs", [{"pads": [0, 0, 1, 1]}, {"pads": [2, 1, 1, 0]}, {"auto_pad": "SAME_UPPER"}])
def test_15_asymmetric_pads(attrs: dict[str, Any]) -> None:
    """15: asymmetric pads and SAME_UPPER."""
    net = conv_net()
    conv = next(n for n in net.nodes if n.op_type == "Conv")
    del conv.attribute[:]
    conv.attribute.extend(onnx.helper.make_attribute(k, v) for k, v in (attrs | {"strides": [2, 2]}).items())
    same_as_onnxruntime(net.build({"y": "s8"}), feed("1,3,6,6"), in_c=True)


def test_15_separate_pad_and_count_include_pad() -> None:
    """15: a Pad before Conv is folded into it; AveragePool with count_include_pad."""
    net = conv_net()
    conv = next(n for n in net.nodes if n.op_type == "Conv")
    del conv.attribute[:]
    conv.input[0] = "p"
    net.const("pads", np.asarray([0, 0, 1, 1, 0, 0, 1, 1], np.int64))
    net.nodes.insert(net.nodes.index(conv), node("Pad", "x_r pads", "p"))
    net.dq("y", 0.09, S8(-3), "yr")
    net.op("AveragePool", "yr", "v", kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1)
    net.q("v", 0.05, S8(0), "z")
    graph = same_as_onnxruntime(net.build({"z": "s8"}), feed("1,3,6,6"))
    assert "Pad" not in ops(graph)


@pytest.mark.parametrize("opset", [10, 13, 17, 20, 21, 23])
def test_16_opsets_unused_domains_and_initialisers_as_inputs(opset: int) -> None:
    """16: opsets 10 and up, unused domains, initialisers listed as inputs, symbolic dimensions."""
    net = Net(opset)
    net.input("x", "s8[N,8]")
    net.dq("x", 0.05, S8(2))
    net.const("w", codes(8, 4))
    net.dq("w", 0.01, S8(0))
    net.op("MatMul", "x_r w_r", "m")
    net.q("m", 0.1, S8(3), "y")
    proto = net.build({"y": "s8"})
    proto.graph.input.append(onnx.helper.make_tensor_value_info("w", onnx.TensorProto.INT8, [8, 4]))
    proto.opset_import.append(onnx.helper.make_opsetid("ai.onnx.training", 1))
    same_as_onnxruntime(proto, {"x": codes(2, 8)}, symbols={"N": 2})


def test_16_layer_normalization_at_opset_12() -> None:
    """16: LayerNormalization in a model that says opset 12, as onnxruntime's fusions leave it."""
    consts = {"g": RNG.standard_normal(8).astype(np.float32), "b": RNG.standard_normal(8).astype(np.float32)}
    proto = model([node("LayerNormalization", "x g b", "y")], {"x": "f32[2,8]"}, "y", consts, opset=12, ir_version=7)
    same_as_onnxruntime(proto, {"x": RNG.standard_normal((2, 8)).astype(np.float32)}, tolerance=1e-5)


@pytest.mark.parametrize(
    ("shape", "weights", "attrs"),
    [
        ("1,1,6,6", (8, 1, 3, 3), {}),
        ("1,1,12,6", (4, 1, 10, 4), {}),
        ("1,1,12,9", (4, 1, 10, 8), {"strides": [2, 1]}),
        ("1,3,15,1", (4, 3, 15, 1), {}),
        ("1,4,6,6", (8, 1, 3, 3), {"group": 4}),
    ],
)
def test_17_depthwise_multiplier_on_one_channel_and_odd_kernels(
    shape: str, weights: tuple[int, ...], attrs: dict[str, Any]
) -> None:
    """17: multiplier 8 on 1 channel is group=1; kernels 10x4, 10x8, 15x1; multiplier 2 on 4 channels."""
    net = Net()
    net.input("x", f"s8[{shape}]")
    net.dq("x", 0.03, S8(5))
    net.const("w", codes(*weights))
    net.dq("w", np.full(weights[0], 0.01), np.zeros(weights[0], S8), axis=0)
    net.op("Conv", "x_r w_r", "c", **attrs)
    net.q("c", 0.09, S8(-3), "y")
    same_as_onnxruntime(net.build({"y": "s8"}), feed(shape), in_c=True)


@pytest.mark.parametrize("signed", [0.0, 1.0])
def test_18_requant_shift_of_integers_in_floats(signed: float) -> None:
    """18: no runtime knows RequantShift; its text is clip(floor((x * mul + add) / div + 0.5))."""
    w = RNG.integers(-20, 21, (4, 3, 3, 3)).astype(np.float32)
    mul, add = (
        RNG.integers(100, 900, (4, 1, 1)).astype(np.float32),
        RNG.integers(-9000, 9000, (4, 1, 1)).astype(np.float32),
    )
    attrs = {
        key: onnx.numpy_helper.from_array(f32(v))
        for key, v in (("div", 65536), ("n_levels_out", 256), ("signed", signed))
    }
    nodes = [node("Conv", "x w", "c"), node("RequantShift", "c mul add", "y", **attrs)]
    proto = model(nodes, {"x": "f32[1,3,6,6]"}, "y", {"w": w, "mul": mul, "add": add}, opset=10)
    x = RNG.integers(0, 256, (1, 3, 6, 6)).astype(np.float32)
    conv = model(nodes[:1], {"x": "f32[1,3,6,6]"}, "c", {"w": w}, opset=13)
    acc = ReferenceEvaluator(conv).run(None, {"x": x})[0].astype(np.float64)
    low, high = (-128, 127) if signed else (0, 255)
    wanted = np.clip(np.floor((acc * mul + add) / 65536 + 0.5), low, high)
    graph = optimised(proto)
    assert np.array_equal(run_graph(graph, {"x": x})["y"], wanted)
    assert all(graph.types[n.outputs[0]].dtype.is_integer for n in graph.nodes if n.op == "Conv")
