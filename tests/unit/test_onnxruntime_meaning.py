"""What onnxruntime computes where ONNX's text leaves room, or where models that it takes used to be refused."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest

from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model
from glowc.errors import ModelError
from glowc.frontend import import_model
from glowc.ops.interp import run_graph
from tests.unit.quirk_models import Net, codes, feed, ops, optimised, same_as_onnxruntime

S8 = np.int8
RNG = np.random.default_rng(23)


@pytest.mark.parametrize("part", [0, 1])
def test_part_of_a_split_between_dequantise_and_quantise_that_nobody_reads(part: int) -> None:
    net = Net()
    net.input("x", "s8[1,11,7]")
    net.dq("x", 0.25, S8(-3))
    net.const("lengths", np.asarray([8, 3]))
    net.op("Split", "x_r lengths", "a b", axis=1)
    net.q("ab"[part], 0.25, S8(-3), "y")
    graph = same_as_onnxruntime(net.build({"y": "s8"}), feed("1,11,7"))
    assert ops(graph) == ["Split"]


def test_part_of_a_split_behind_a_transpose_that_nobody_reads() -> None:
    """The Transpose sinks through the Split, which has a part without a name."""
    net = Net()
    net.input("x", "s8[1,5,7,6]")
    net.dq("x", 0.25, S8(-3))
    net.op("Transpose", "x_r", "t", perm=[0, 2, 3, 1])
    net.q("t", 0.25, S8(-3), "tq")
    net.dq("tq", 0.25, S8(-3), "tr")
    net.const("lengths", np.asarray([4, 3]))
    net.op("Split", "tr lengths", "a b", axis=1)
    net.op("MaxPool", "a", "p", kernel_shape=[2, 2])
    net.q("p", 0.25, S8(-3), "y")
    same_as_onnxruntime(net.build({"y": "s8"}), feed("1,5,7,6"))


CUT = [
    ("AveragePool", [1, 1], [3, 3]), ("AveragePool", [2, 2], [6, 5]), ("LpPool", [2, 1], [5, 7]),
    ("Conv", [1, 1], [3, 4]), ("Conv", [2, 2], [7, 6]), ("Conv", [3, 3], [2, 2]),
]  # fmt: skip


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize(("op", "kernel", "strides"), CUT)
def test_same_padding_of_windows_with_gaps_reads_from_inside(
    op: str, kernel: list[int], strides: list[int], mode: str
) -> None:
    """The padding is negative there."""
    for height, width in ((12, 13), (5, 6)):
        net = Net(20)  # onnxruntime's AveragePool of older opsets refuses it
        net.input("x", f"f32[1,2,{height},{width}]")
        if op == "Conv":
            net.const("w", RNG.standard_normal((3, 2, *kernel)).astype(np.float32))
        inputs = "x w" if op == "Conv" else "x"
        net.op(op, inputs, "y", kernel_shape=kernel, strides=strides, auto_pad=mode)
        x = RNG.standard_normal((1, 2, height, width)).astype(np.float32)
        same_as_onnxruntime(net.build({"y": "f32"}), {"x": x}, tolerance=1e-6)


@pytest.mark.parametrize("op", ["AveragePool", "MaxPool"])
@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
def test_same_padding_of_quantised_windows_with_gaps_reads_from_inside(op: str, mode: str) -> None:
    for size, kernel, stride in ((5, 2, 6), (6, 2, 6), (12, 1, 3), (13, 2, 5)):
        net = Net()
        net.input("x", f"s8[1,2,{size},{size}]")
        net.dq("x", 0.05, S8(3))
        net.op(op, "x_r", "p", kernel_shape=[kernel, kernel], strides=[stride, stride], auto_pad=mode)
        net.q("p", 0.05, S8(3), "y")
        same_as_onnxruntime(net.build({"y": "s8"}), {"x": codes(1, 2, size, size)})


OPERATORS = [("Softmax", 1 / 300), ("Sigmoid", 1 / 200), ("AveragePool", 0.03), ("Conv", 0.03), ("Mul", 0.01)]


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(("op", "scale"), OPERATORS)
def test_equal_operators_with_two_output_scales_stay_two_integer_layers(op: str, scale: float, shared: bool) -> None:
    """Merged into one they would have two QuantizeLinear, and compute in float."""
    net = Net(20)
    net.input("x", "s8[1,2,8,6]")
    net.const("w", codes(3, 2, 1, 1))
    net.dq("w", 0.01, S8(0))
    attrs = {"AveragePool": {"kernel_shape": [2, 2]}}.get(op, {})
    for i, factor in enumerate((1.0, 1.6)):
        real = "x_r" if shared and i else net.dq("x", 0.0257, S8(-8), "x_r" if shared else f"x{i}_r")
        inputs = {"Conv": f"{real} w_r", "Mul": f"{real} {real}"}.get(op, real)
        net.op(op, inputs, f"p{i}", **attrs)
        net.q(f"p{i}", scale * factor, S8(-100), f"y{i}")
    x = {"x": codes(1, 2, 8, 6)}
    graph = same_as_onnxruntime(net.build({"y0": "s8", "y1": "s8"}), x, imported_steps=2)
    assert ops(graph).count(op) == 2
    assert "DequantizeLinear" not in ops(graph)


PAIRS = [
    [(0.02, 3), (0.013, -5)], [(0.02, 100), (0.03, -90)], [(0.011, 7), (0.011, 7)],
    [(0.02, 40), (0.015, -30), (0.03, 77), (0.012, -100), (0.02, 9)],
]  # fmt: skip


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("pairs", PAIRS)
@pytest.mark.parametrize("identity", [False, True])
def test_pairs_in_a_row_are_merged_as_onnxruntime_does(
    dtype: type, pairs: list[tuple[float, int]], identity: bool
) -> None:
    net = Net()
    net.input("x", "f32[1,3,9,7]")
    value = net.qdq("x", 0.03, dtype(30))
    for _ in range(2):
        for scale, zero in pairs:
            value = net.qdq(value, scale, dtype(zero if dtype is np.int8 else zero + 128))
        value = net.op("LeakyRelu", net.op("Identity", value, f"{value}i") if identity else value, f"{value}l")
    net.q(value, 0.02, dtype(9), "y")
    x = {"x": RNG.normal(size=(1, 3, 9, 7)).astype(np.float32)}
    graph = same_as_onnxruntime(net.build({"y": "s8" if dtype is np.int8 else "u8"}), x)
    assert not {"Requantize"} & set(ops(graph))


def test_pairs_that_others_read_or_that_differ_in_kind_stay() -> None:
    for kind in ("first read twice", "other kind", "codes are an output", "nothing in common"):
        net = Net()
        net.input("x", "f32[1,3,9,7]")
        first = net.qdq("x", 0.03, S8(-128 if kind == "nothing in common" else 3))
        zero = np.uint8(90) if kind == "other kind" else S8(127 if kind == "nothing in common" else 4)
        second = net.qdq(first, 0.013, zero)
        net.q(net.op("Relu", second, "a"), 0.02, S8(9), "y")
        outputs = {"y": "s8"}
        if kind == "first read twice":
            net.q(net.op("Sigmoid", first, "s"), 1 / 256, S8(-128), "z")
            outputs["z"] = "s8"
        if kind == "codes are an output":
            outputs[f"{first}_q"] = "s8"
        graph = import_model(net.build(outputs))
        assert ops(graph).count("QuantizeLinear") == 3 + ("z" in outputs), kind
        if kind != "nothing in common":
            same_as_onnxruntime(net.build(outputs), {"x": RNG.normal(size=(1, 3, 9, 7)).astype(np.float32)})


@pytest.mark.parametrize(("kind", "other"), [(np.int8, np.uint8), (np.uint8, np.int8)])
@pytest.mark.parametrize("length", [3, 10, 31])
def test_softmax_between_two_kinds_of_codes_is_that_of_floats(kind: type, other: type, length: int) -> None:
    """onnxruntime has an integer Softmax only for one kind; it counts whole steps of the output scale."""
    names = {np.int8: "s8", np.uint8: "u8"}
    net = Net()
    net.input("x", f"{names[kind]}[40,{length}]")
    net.dq("x", 0.06, kind(20))
    net.q(net.op("Softmax", "x_r", "p", axis=-1), 0.0037, other(3), "y")
    graph = same_as_onnxruntime(net.build({"y": names[other]}), {"x": codes(40, length, dtype=kind)}, in_c=True)
    assert "DequantizeLinear" not in ops(graph)


@pytest.mark.parametrize(("kind", "other"), [(np.int8, np.uint8), (np.uint8, np.int8)])
def test_average_from_one_kind_of_codes_to_another_is_that_of_floats(kind: type, other: type) -> None:
    """Its zero point is added after the rounding, which decides ties."""
    names = {np.int8: "s8", np.uint8: "u8"}
    net = Net()
    net.input("x", f"{names[kind]}[1,4,9,8]")
    net.dq("x", 2**-5, kind(73))
    net.op("AveragePool", "x_r", "p", kernel_shape=[2, 2], strides=[2, 2])
    net.q("p", 2**-5, other(75), "y")
    same_as_onnxruntime(net.build({"y": names[other]}), {"x": codes(1, 4, 9, 8, dtype=kind)})


@pytest.mark.parametrize("out_scale", [2 / 255, 1 / 255, 4 / 255])
@pytest.mark.parametrize("scale", [0.05, 0.1, 0.2])
def test_softsign_of_codes_rounds_ties_as_onnxruntime(scale: float, out_scale: float) -> None:
    net = Net()
    net.input("x", "s8[1,256]")
    net.dq("x", scale, S8(0))
    net.q(net.op("Softsign", "x_r", "p"), out_scale, S8(-1), "y")
    x = {"x": np.arange(-128, 128).astype(np.int8)[None]}
    same_as_onnxruntime(net.build({"y": "s8"}), x)


@pytest.mark.parametrize("axis", [0, 1])
def test_scales_of_blocks_have_either_sign_and_may_be_zero(axis: int) -> None:
    """onnxruntime's symmetric 4-bit quantiser gives a block the sign of its largest weight."""
    weights, shape = RNG.integers(-8, 8, (32, 48)), [32, 48]
    shape[axis] //= 16
    scales = RNG.normal(0, 0.05, shape).astype(np.float32)
    scales[0, 0] = 0
    net = Net(21)
    net.input("x", "f32[2,32]")
    net.const("w", weights.astype(np.int8))
    net.const("s", scales)
    net.op("DequantizeLinear", "w s", "w_r", axis=axis, block_size=16)
    net.op("MatMul", "x w_r", "y")
    x = {"x": RNG.normal(size=(2, 32)).astype(np.float32)}
    proto = net.build({"y": "f32"})
    int4 = onnx.ModelProto.FromString(proto.SerializeToString())
    packed = next(t for t in int4.graph.initializer if t.name == "w")
    packed.CopyFrom(onnx.helper.make_tensor("w", onnx.TensorProto.INT4, (32, 48), weights.reshape(-1).tolist()))
    int4.ir_version = 10
    same_as_onnxruntime(int4, x, tolerance=2e-2)  # onnxruntime rounds the activations of such products to int8
    got = run_graph(optimised(int4), x)["y"]
    real = weights * scales.repeat(16, axis)
    np.testing.assert_allclose(got, x["x"] @ real.astype(np.float32), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("kind", "op"), [
    ("s8", "Div"), ("u8", "Div"), ("s8", "Log"), ("s8", "Sqrt"), ("u8", "Sqrt"), ("s16", "Sqrt"), ("s8", "Acos"),
    ("s8", "Pow"), ("s8", "Reciprocal"),
])  # fmt: skip
def test_codes_of_what_is_no_number_are_the_lowest(kind: str, op: str) -> None:
    """0 / 0 of an attention by sums, the root of a code below zero: onnxruntime's lowest code, was the zero point."""
    net, dtype = Net(opset=21), {"s8": np.int8, "u8": np.uint8, "s16": np.int16}[kind]
    net.input("x", f"{kind}[1,256]")
    net.dq("x", 0.004, dtype(60))
    two = op in ("Div", "Pow")
    if two:
        net.input("z", f"{kind}[1,256]")
        net.dq("z", 0.0034, dtype(40))
    net.op(op, "x_r z_r" if two else "x_r", "t")
    net.q("t", 0.0022, dtype(14), "y")
    x = np.arange(-128, 128).astype(dtype)[None]
    rows = [np.full_like(x, 40), np.full_like(x, 41), x[:, ::-1]]
    for z in rows if two else rows[:1]:
        feeds = {"x": x} | ({"z": z.astype(dtype)} if two else {})
        same_as_onnxruntime(net.build({"y": kind}), feeds, in_c=z is rows[0])


def test_infinite_scale_is_refused_with_what_it_means() -> None:
    net = Net()
    net.input("x", "f32[1,4]")
    net.q(net.qdq("x", np.inf, S8(0)), 0.1, S8(0), "y")
    with pytest.raises(ModelError) as caught:
        import_model(net.build({"y": "s8"}))
    assert "scale inf must be a positive number" in str(caught.value)
    assert "every number has the same code then" in str(caught.value.hint)


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
def test_resize_to_the_same_shape_copies_whatever_the_scale(mode: str) -> None:
    net = Net()
    net.input("x", "f32[1,2,4,7]")
    net.const("scales", np.asarray([1, 1, 1.1, 1.05], np.float32))
    net.op("Resize", "x _ scales", "y", mode=mode)
    x = {"x": RNG.normal(size=(1, 2, 4, 7)).astype(np.float32)}
    same_as_onnxruntime(net.build({"y": "f32"}), x)


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
def test_resize_that_keeps_the_ratio_has_one_scale(mode: str, policy: str) -> None:
    """The ratio itself, not the rounded size by the old one."""
    net = Net(19)
    net.input("x", "f32[1,2,4,7]")
    net.const("sizes", np.asarray([9, 6]))
    attrs = {"mode": mode, "keep_aspect_ratio_policy": policy, "coordinate_transformation_mode": "asymmetric"}
    net.op("Resize", "x _ _ sizes", "y", axes=[2, 3], **attrs)
    x = {"x": RNG.normal(size=(1, 2, 4, 7)).astype(np.float32)}
    same_as_onnxruntime(net.build({"y": "f32"}), x, tolerance=1e-6)


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "MatMul", "Softmax", "AveragePool"])
@pytest.mark.parametrize(
    ("scale", "out_scale"), [(1.0, 1e-45), (3e38, 1e-20), (1e-45, 1e-40), (1e-40, 0.1), (2.7e36, 1 / 256)]
)
@pytest.mark.filterwarnings("error")
def test_scales_near_the_ends_of_float32_compile_in_silence(
    op: str, scale: float, out_scale: float, tmp_path: Path
) -> None:
    net = Net()
    net.input("x", "s8[1,1,8,8]")
    net.dq("x", scale, S8(3))
    two = {"inputs": "x_r x_r"} if op in ("Add", "Sub", "Mul", "MatMul") else {"inputs": "x_r"}
    net.op(op, two["inputs"], "p", **({"kernel_shape": [2, 2]} if op == "AveragePool" else {}))
    net.q("p", out_scale, S8(-7), "y")
    path = tmp_path / "net.onnx"
    onnx.save(net.build({"y": "s8"}), path)
    for board in ("mps2-an385", "mps3-an547"):
        compiled = compile_model(path, load_board(board), CompileOptions(plan="plain"))
        text = "".join(compiled.bundle.files.values())
        assert not re.search(r"\b(inf|nan)f?\b", text)
