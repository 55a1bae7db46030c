"""Every line of ONNX_QUIRKS: a model that has it gives the numbers of onnxruntime's integer kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from glowc.graph.interp import run_graph
from tests.unit.onnx_builders import f32, model, node
from tests.unit.quirk_models import RNG, Net, codes, onnxruntime_outputs, optimised, same_as_onnxruntime

S8, U8, S32 = np.int8, np.uint8, np.int32


def conv_net(act: tuple[str, dict[str, Any]] | None = None, zero: int = -3, **bias: Any) -> Net:
    """Return DQ -> Conv -> (act) -> Q on x[1,3,6,6] with per-channel weights."""
    net = Net()
    net.input("x", "s8[1,3,6,6]")
    net.const("w", codes(4, 3, 3, 3))
    net.dq("x", 0.03, S8(5))
    net.dq("w", [0.01, 0.02, 0.015, 0.005], np.zeros(4, S8), axis=0)
    net.const("b", bias.get("values", RNG.integers(-900, 900, 4).astype(S32)))
    net.dq("b", bias.get("scale", f32(0.0003, 0.0006, 0.00045, 0.00015)), bias.get("zero", np.zeros(4, S32)), axis=0)
    y = net.op("Conv", "x_r w_r b_r", "c", pads=[1, 1, 1, 1])
    if act is not None:
        y = net.op(act[0], f"{y} {act[1].get('inputs', '')}", "a")
    net.q(y, 0.09, S8(zero), "y")
    return net


def feed(text: str, dtype: type = S8) -> dict[str, np.ndarray]:
    return {"x": codes(*map(int, text.split(",")), dtype=dtype)}


def ops(graph: Any) -> list[str]:
    return [n.op for n in graph.nodes]


def test_01_zero_initialiser_is_bias_and_zero_point() -> None:
    """1: one all-zero int32 initialiser is the bias and its own zero point."""
    net = conv_net()
    net.nodes = [n for n in net.nodes if n.output[0] != "b_r"]
    net.const("b", np.zeros(4, S32))
    net.op("DequantizeLinear", "b b_s b", "b_r", axis=0)
    net.nodes.sort(key=lambda n: n.op_type != "DequantizeLinear")
    same_as_onnxruntime(net.build({"y": "s8"}), feed("1,3,6,6"), in_c=True)


def test_02_axis_3_on_a_vector() -> None:
    """2: onnxruntime refuses such a node unless it is fused away; the meaning is that of axis 0."""
    net = conv_net()
    judge = net.build({"y": "s8"})
    odd = onnx.ModelProto.FromString(judge.SerializeToString())
    for n in odd.graph.node:
        if n.output[0] == "b_r":
            n.attribute[0].i = 3
    same_as_onnxruntime(odd, feed("1,3,6,6"), judge=judge)


def test_03_tf2onnx_layout_reshape_bias_names_and_symbolic_batch() -> None:
    """3: NHWC input, int8 Transpose before DQ, Reshape between Q and DQ, MatMul + Add of an int32-DQ bias."""
    net = Net(13)
    net.input("in;put/x:0", "s8[unk__123,6,6,3]")
    net.op("Transpose", "in;put/x:0", "t", perm=[0, 3, 1, 2])
    net.dq("t", 0.03, S8(5))
    net.const("w", codes(4, 3, 3, 3))
    net.dq("w", [0.01, 0.02, 0.015, 0.005], np.zeros(4, S8), axis=0)
    net.op("Conv", "t_r w_r", "c", strides=[2, 2])
    net.const("lo", f32(0.0)), net.const("hi", f32(6.0))
    net.op("Clip", "c lo hi", "a")
    net.q("a", 6 / 255, S8(-128), "q")
    net.op("Transpose", "q", "qt", perm=[0, 2, 3, 1])
    net.const("shape", np.asarray([-1, 16], np.int64))
    net.op("Reshape", "qt shape", "flat")
    net.dq("flat", 6 / 255, S8(-128))
    net.const("m", codes(16, 5)), net.const("mb", RNG.integers(-300, 300, 5).astype(S32))
    net.dq("m", 0.01, S8(0)), net.dq("mb", np.float32(0.01) * np.float32(6 / 255), S32(0))
    net.op("MatMul", "flat_r m_r", "mm")
    net.op("Add", "mm mb_r", "ma")
    net.q("ma", 0.05, S8(-20), "Identity;out/y:0")
    feeds = {"in;put/x:0": codes(1, 6, 6, 3)}
    graph = same_as_onnxruntime(net.build({"Identity;out/y:0": "s8"}), feeds, in_c=True, batch_size=1)
    assert not {"Relu", "Clip", "Add", "MatMul"} & set(ops(graph))


@pytest.mark.parametrize("op", ["Conv", "MatMul"])
def test_04_weight_only_int8(op: str) -> None:
    """4: int8 weights, float activations: the codes stay in flash."""
    net = Net(21)
    shape, weights = ("f32[1,3,6,6]", (4, 3, 3, 3)) if op == "Conv" else ("f32[2,12]", (12, 4))
    net.input("x", shape)
    net.const("w", codes(*weights))
    net.dq("w", f32(0.01, 0.02, 0.03, 0.004), np.zeros(4, S8), axis=0 if op == "Conv" else 1)
    net.op(op, "x w_r", "y")
    x = RNG.standard_normal((1, 3, 6, 6) if op == "Conv" else (2, 12)).astype(np.float32)
    proto = net.build({"y": "f32"})
    # onnxruntime quantises the activations of such a MatMul by itself, so its unoptimised form is the judge.
    judge = {"y": _reference(proto, {"x": x})}
    graph = optimised(proto)
    np.testing.assert_allclose(run_graph(graph, {"x": x})["y"], judge["y"], rtol=1e-5, atol=1e-5)
    assert any(a.dtype == np.int8 for a in graph.consts.values())
    assert not any(a.dtype == np.float32 and a.ndim > 1 for a in graph.consts.values())


def _reference(proto: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> np.ndarray:
    from onnx.reference import ReferenceEvaluator

    return np.asarray(ReferenceEvaluator(proto).run(None, feeds)[0])


@pytest.mark.parametrize("shape", [(), (1,)])
def test_05_scalar_parameters_have_shape_nothing_or_one(shape: tuple[int, ...]) -> None:
    """5: scale and zero point of shape [] or [1]."""
    net = Net()
    net.input("x", "s8[2,9]")
    net.dq("x", np.full(shape, 0.1), np.full(shape, 3, S8))
    net.op("Sigmoid", "x_r", "s")
    net.const("y_s", np.full(shape, 1 / 256, np.float32)), net.const("y_z", np.full(shape, -128, S8))
    net.op("QuantizeLinear", "s y_s y_z", "y")
    same_as_onnxruntime(net.build({"y": "s8"}), feed("2,9"))


@pytest.mark.parametrize("scalar", [False, True])
def test_06_bias_int32_per_channel_or_scalar(scalar: bool) -> None:
    """6: int32 DQ bias per channel (axis 0) or with one scale."""
    net = conv_net()
    if scalar:
        net.const("w_s", f32(0.01)), net.const("w_z", S8(0))
        net.const("b_s", np.float32(0.03) * np.float32(0.01)), net.const("b_z", S32(0))
        for n in net.nodes:
            if n.op_type == "DequantizeLinear":
                del n.attribute[:]
    same_as_onnxruntime(net.build({"y": "s8"}), feed("1,3,6,6"))


def test_06_bias_int8_with_its_own_scale_and_zero_point() -> None:
    """6: MatMul, then Add of an int8 bias that has a scale and a non-zero zero point."""
    net = Net()
    net.input("x", "s8[2,16]")
    net.dq("x", 0.05, S8(-7))
    net.const("w", codes(16, 5)), net.const("b", codes(5))
    net.dq("w", 0.01, S8(0)), net.dq("b", 0.004, S8(-43))
    net.op("MatMul", "x_r w_r", "m")
    net.op("Add", f"{net.qdq('m', 0.06, S8(4))} b_r", "a")
    net.q("a", 0.05, S8(1), "y")
    same_as_onnxruntime(net.build({"y": "s8"}), feed("2,16"))


WEIGHT_AXES = [("Conv", 0, {}), ("Gemm", 0, {"transB": 1}), ("Gemm", 1, {}), ("MatMul", 1, {})]


@pytest.mark.parametrize(("op", "axis", "attrs"), WEIGHT_AXES)
def test_07_weight_axis(op: str, axis: int, attrs: dict[str, int]) -> None:
    """7: per-channel axis of Conv 0, Gemm 0 (transB) and 1, MatMul 1."""
    net = Net()
    net.input("x", "s8[1,3,6,6]" if op == "Conv" else "s8[2,12]")
    net.dq("x", 0.03, S8(5))
    net.const("w", codes(*((4, 3, 3, 3) if op == "Conv" else (4, 12) if axis == 0 else (12, 4))))
    net.dq("w", [0.01, 0.02, 0.015, 0.005], np.zeros(4, S8), axis=axis)
    net.op(op, "x_r w_r", "c", **attrs)
    net.q("c", 0.2, S8(2), "y")
    same_as_onnxruntime(net.build({"y": "s8"}), feed("1,3,6,6" if op == "Conv" else "2,12"))


def test_07_conv_transpose_axis_1() -> None:
    """7: ConvTranspose has its outputs on axis 1 of the weights; onnxruntime computes it in float."""
    net = Net()
    net.input("x", "s8[1,3,4,4]")
    net.dq("x", 0.03, S8(5))
    net.const("w", codes(3, 2, 2, 2))
    net.dq("w", [0.01, 0.02], np.zeros(2, S8), axis=1)
    net.op("ConvTranspose", "x_r w_r", "y", strides=[2, 2])
    same_as_onnxruntime(net.build({"y": "f32"}), feed("1,3,4,4"), tolerance=1e-5)


def test_07_uint8_weights_with_a_zero_point() -> None:
    """7: uint8 per-tensor weights with a non-zero zero point."""
    net = Net()
    net.input("x", "u8[1,3,6,6]")
    net.dq("x", 0.03, U8(120))
    net.const("w", codes(4, 3, 3, 3, dtype=U8))
    net.dq("w", 0.01, U8(131))
    net.op("Conv", "x_r w_r", "c")
    net.q("c", 0.2, U8(99), "y")
    same_as_onnxruntime(net.build({"y": "u8"}), feed("1,3,6,6", U8), in_c=True)


def test_08_shared_dequantize_and_float_output() -> None:
    """8: one DQ read by q, k, v and a residual; Q -> DQ at the end with a float output."""
    net = Net()
    net.input("x", "s8[4,8]")
    net.dq("x", 0.05, S8(2))
    for name in "qkv":
        net.const(f"w{name}", codes(8, 8))
        net.dq(f"w{name}", 0.01, S8(0))
        net.op("MatMul", f"x_r w{name}_r", name)
        net.qdq(name, 0.08, S8(-4))
    net.op("Mul", "q_qr k_qr", "qk")
    net.op("Add", f"{net.qdq('qk', 0.3, S8(0))} v_qr", "o")
    net.op("Add", f"{net.qdq('o', 0.31, S8(3))} x_r", "r")
    y = net.qdq("r", 0.307, S8(-1))
    graph = same_as_onnxruntime(net.build({y: "f32"}), feed("4,8"))
    assert ops(graph).count("DequantizeLinear") == 1


@pytest.mark.parametrize(("act", "zero"), [("Relu", -128), ("Relu", -20), ("Clip", -128), ("Clip", -60)])
def test_09_activation_is_absent_kept_or_needed(act: str, zero: int) -> None:
    """9: Relu and Clip(0, 6) between Conv and Q, with the bound at the end of the range or inside it.

    onnxruntime fuses Clip into a float Conv.
    """
    net = conv_net((act, {"inputs": "lo hi" if act == "Clip" else ""}), zero)
    net.const("lo", f32(0.0)), net.const("hi", f32(6.0))
    graph = same_as_onnxruntime(net.build({"y": "s8"}), feed("1,3,6,6"), steps=int(act == "Clip"))
    assert act not in ops(graph)
    same_as_onnxruntime(conv_net(None, zero).build({"y": "s8"}), feed("1,3,6,6"))


def test_10_layer_normalization_and_gelu_and_softmax_quantised() -> None:
    """10: LayerNormalization with int8 scale and int32 bias, Gelu, Softmax: within one step of onnxruntime's float."""
    net = Net(20)
    net.input("x", "s8[4,16]")
    net.dq("x", 0.05, S8(2))
    net.const("g", codes(16)), net.const("b", RNG.integers(-999, 999, 16).astype(S32))
    net.dq("g", 0.01, S8(0)), net.dq("b", 0.0005, S32(0))
    net.op("LayerNormalization", "x_r g_r b_r", "n")
    net.op("Gelu", net.qdq("n", 0.03, S8(-5)), "ge")
    net.op("Softmax", net.qdq("ge", 0.03, S8(-100)), "s")
    net.q("s", 1 / 256, S8(-128), "y")
    proto, feeds = net.build({"y": "s8"}), feed("4,16")
    wanted = onnxruntime_outputs(proto, feeds)["y"].astype(int)
    assert np.abs(run_graph(optimised(proto), feeds)["y"].astype(int) - wanted).max() <= 1


def test_10_constants_gather_concat_resize_and_the_rest() -> None:
    """10: quantised constants of Add, Mul, Concat; Gather on an int8 table; ReduceMean, Resize, MaxPool, Squeeze."""
    net = Net()
    net.input("i", "s64[1,4]")
    net.const("table", codes(10, 8))
    net.dq("table", 0.05, S8(3))
    net.op("Gather", "table_r i", "g")
    net.const("c1", codes(8)), net.const("c2", codes(1, 4, 8))
    net.dq("c1", 0.02, S8(1)), net.dq("c2", 0.05, S8(3))
    net.op("Mul", f"{net.qdq('g', 0.05, S8(3))} c1_r", "m")
    net.op("Concat", f"{net.qdq('m', 0.05, S8(3))} c2_r", "k", axis=1)
    net.const("four", np.asarray([1, 1, 8, 8], np.int64))
    net.op("Reshape", f"{net.qdq('k', 0.05, S8(3))} four", "r4")
    net.op("MaxPool", net.qdq("r4", 0.05, S8(3)), "p", kernel_shape=[2, 2], strides=[2, 2])
    net.const("scales", f32(1, 1, 2, 2))
    net.op("Resize", f"{net.qdq('p', 0.05, S8(3))} _ scales", "u", mode="nearest", nearest_mode="floor",
           coordinate_transformation_mode="asymmetric")  # fmt: skip
    net.const("axes", np.asarray([0], np.int64))
    net.op("Squeeze", f"{net.qdq('u', 0.05, S8(3))} axes", "y0")
    net.q("y0", 0.05, S8(3), "y")
    graph = same_as_onnxruntime(net.build({"y": "s8"}), {"i": np.asarray([[1, 9, 0, 4]])})
    assert not any(graph.types[n.outputs[0]].dtype.is_float for n in graph.nodes)


def test_10_hard_sigmoid_times_x_and_reshape_gemm_reshape() -> None:
    """10: HardSwish as HardSigmoid * x; MatMul + Add as Reshape - Gemm - Reshape."""
    net = Net()
    net.input("x", "s8[1,3,8]")
    net.dq("x", 0.05, S8(2))
    net.op("HardSigmoid", "x_r", "h", alpha=1 / 6, beta=0.5)
    net.op("Mul", f"x_r {net.qdq('h', 1 / 256, S8(-128))}", "m")
    net.const("two", np.asarray([3, 8], np.int64)), net.const("three", np.asarray([1, 3, 5], np.int64))
    net.op("Reshape", f"{net.qdq('m', 0.03, S8(-120))} two", "r")
    net.const("w", codes(8, 5)), net.const("b", RNG.integers(-400, 400, 5).astype(S32))
    net.dq("w", 0.01, S8(0)), net.dq("b", np.float32(0.03) * np.float32(0.01), S32(0))
    net.op("Gemm", f"{net.qdq('r', 0.03, S8(-120))} w_r b_r", "g")
    net.op("Reshape", f"{net.qdq('g', 0.02, S8(7))} three", "y0")
    net.q("y0", 0.02, S8(7), "y")
    same_as_onnxruntime(net.build({"y": "s8"}), feed("1,3,8"), in_c=True)


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
    acc = _reference(conv, {"x": x}).astype(np.float64)
    low, high = (-128, 127) if signed else (0, 255)
    wanted = np.clip(np.floor((acc * mul + add) / 65536 + 0.5), low, high)
    graph = optimised(proto)
    assert np.array_equal(run_graph(graph, {"x": x})["y"], wanted)
    assert all(graph.types[n.outputs[0]].dtype.is_integer for n in graph.nodes if n.op == "Conv")
