"""Lines 1 to 10 of ONNX_QUIRKS: a model that has it gives the numbers of onnxruntime's integer kernels."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from glowc.ops.interp import run_graph
from tests.unit.onnx_builders import f32
from tests.unit.quirk_models import (
    RNG,
    Net,
    codes,
    conv_net,
    feed,
    onnxruntime_outputs,
    ops,
    optimised,
    same_as_onnxruntime,
)

S8, U8, S32 = np.int8, np.uint8, np.int32


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
