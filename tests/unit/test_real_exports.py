"""Patterns of models that exporters and onnxruntime's quantiser write: right numbers, no needless work."""

from __future__ import annotations

import numpy as np
import pytest

from glowc.graph.graph import Graph
from tests.unit.onnx_builders import f32, model, node
from tests.unit.quirk_models import Net, same_as_onnxruntime

S8, U8 = np.int8, np.uint8
RNG = np.random.default_rng(23)


def ops(graph: Graph) -> list[str]:
    return [n.op for n in graph.nodes]


def codes(*shape: int, dtype: type = np.int8) -> np.ndarray:
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max + 1, shape).astype(dtype)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def test_causal_convolution_pads_and_crops_nothing_by_itself() -> None:
    """A signal padded on the left, as temporal networks do: the Pad stands before the Reshape to an image."""
    nodes = [
        node("Pad", "x p", "a"), node("Conv", "a w", "b", dilations=[2], kernel_shape=[3]), node("Relu", "b", "c"),
        node("Conv", "c v", "d", kernel_shape=[3], dilations=[4], pads=[8, 8]),
        node("Slice", "d zero crop last", "e"), node("Relu", "e", "f"), node("Gather", "f minus_one", "y", axis=2),
    ]  # fmt: skip
    consts = {
        "w": normal(6, 4, 3), "v": normal(5, 6, 3), "p": np.asarray([0, 0, 4, 0, 0, 0]), "zero": np.asarray([0]),
        "crop": np.asarray([-8]), "last": np.asarray([2]), "minus_one": np.asarray(-1),
    }  # fmt: skip
    proto = model(nodes, {"x": "f32[1,4,20]"}, {"y": "f32[1,5]"}, consts)
    graph = same_as_onnxruntime(proto, {"x": normal(1, 4, 20)}, tolerance=1e-5, in_c=True)
    assert "Pad" not in ops(graph)
    assert "Transpose" not in ops(graph)


def test_patches_become_tokens_without_a_transpose() -> None:
    nodes = [
        node("Conv", "x w", "a", strides=[4, 4]), node("Reshape", "a s", "b"),
        node("Transpose", "b", "c", perm=[0, 2, 1]), node("MatMul", "c v", "y"),
    ]  # fmt: skip
    consts = {"w": normal(6, 3, 4, 4), "s": np.asarray([1, 6, -1]), "v": normal(6, 5)}
    proto = model(nodes, {"x": "f32[1,3,8,12]"}, {"y": "f32[1,6,5]"}, consts)
    graph = same_as_onnxruntime(proto, {"x": normal(1, 3, 8, 12)}, tolerance=1e-5, in_c=True)
    assert "Transpose" not in ops(graph)


def test_channel_shuffle_stays_interleaved() -> None:
    """Split of the channels, Concat and shuffle between convolutions: one Transpose, of groups only."""
    nodes = [
        node("Conv", "x w", "a"), node("Split", "a", "l r", axis=1), node("Conv", "r v", "r2"),
        node("Concat", "l r2", "b", axis=1), node("Reshape", "b wide", "c"),
        node("Transpose", "c", "d", perm=[0, 2, 1, 3, 4]), node("Reshape", "d narrow", "e"),
        node("Split", "e", "f g", axis=1), node("Conv", "g v", "h"), node("ReduceMean", "h", "h1", axes=[2, 3]),
        node("ReduceMean", "f", "f1", axes=[2, 3]), node("Concat", "f1 h1", "y", axis=1),
    ]  # fmt: skip
    shapes = {"wide": np.asarray([1, 2, 4, 5, 6]), "narrow": np.asarray([1, 8, 5, 6])}
    consts = {"w": normal(8, 3, 1, 1), "v": normal(4, 4, 1, 1), **shapes}
    proto = model(nodes, {"x": "f32[1,3,5,6]"}, {"y": "f32[1,8,1,1]"}, consts, opset=13)
    graph = same_as_onnxruntime(proto, {"x": normal(1, 3, 5, 6)}, tolerance=1e-5, in_c=True)
    perms = [n.ints("perm") for n in graph.nodes if n.op == "Transpose"]
    assert perms == [(0, 1, 2, 4, 3)]


def test_attention_with_time_first_settles() -> None:
    """Batch and time swapped around an Add, with a batch of one: the axes move nothing."""
    nodes = [
        node("Transpose", "x", "t", perm=[1, 0, 2]), node("MatMul", "t w", "a"), node("Add", "a t", "b"),
        node("Transpose", "b", "c", perm=[1, 0, 2]), node("Add", "c x", "y"),
    ]  # fmt: skip
    proto = model(nodes, {"x": "f32[1,7,4]"}, {"y": "f32[1,7,4]"}, {"w": normal(4, 4)})
    graph = same_as_onnxruntime(proto, {"x": normal(1, 7, 4)}, tolerance=1e-5)
    assert "Transpose" not in ops(graph)


def test_decoder_of_transposed_convolutions_has_no_copies() -> None:
    nodes = [
        node("Conv", "x w", "a", strides=[2, 2]), node("Relu", "a", "b"),
        node("ConvTranspose", "b v bias", "c", strides=[2, 2], output_padding=[1, 1], group=2), node("Relu", "c", "d"),
        node("Conv", "d u", "e"), node("ReduceMean", "e", "y", axes=[2, 3], keepdims=0),
    ]  # fmt: skip
    consts = {"w": normal(6, 2, 2, 2), "v": normal(6, 4, 3, 2), "bias": normal(8), "u": normal(3, 8, 1, 1)}
    proto = model(nodes, {"x": "f32[1,2,6,8]"}, {"y": "f32[1,3]"}, consts, opset=13)
    graph = same_as_onnxruntime(proto, {"x": normal(1, 2, 6, 8)}, tolerance=1e-5, in_c=True)
    assert "Transpose" not in ops(graph)


def test_dynamically_quantised_convolutions_stay_interleaved() -> None:
    """quantize_dynamic: DynamicQuantizeLinear, ConvInteger, Cast, Mul, Add, with a pool between two of them."""
    nodes = []
    for x, w, y in (("x", "w", "a"), ("p", "v", "b")):
        nodes += [
            node("DynamicQuantizeLinear", x, f"{x}_q {x}_s {x}_z"), node("Mul", f"{x}_s {w}_s", f"{y}_m"),
            node("ConvInteger", f"{x}_q {w} {x}_z {w}_z", f"{y}_i", pads=[1, 1, 1, 1]),
            node("Cast", f"{y}_i", f"{y}_f", to=1), node("Mul", f"{y}_f {y}_m", f"{y}_r"),
            node("Add", f"{y}_r {w}_b", f"{y}_c"), node("Relu", f"{y}_c", y),
        ]  # fmt: skip
        nodes += [node("MaxPool", "a", "p", kernel_shape=[2, 2], strides=[2, 2])] if y == "a" else []
    nodes.append(node("ReduceMean", "b", "y", axes=[2, 3], keepdims=0))
    consts = {
        "w": codes(6, 3, 3, 3), "w_z": S8(0), "w_s": f32(0.01), "w_b": normal(1, 6, 1, 1),
        "v": codes(4, 6, 3, 3), "v_z": S8(3), "v_s": f32(0.02), "v_b": normal(1, 4, 1, 1),
    }  # fmt: skip
    proto = model(nodes, {"x": "f32[1,3,8,10]"}, {"y": "f32[1,4]"}, consts, opset=13)
    graph = same_as_onnxruntime(proto, {"x": normal(1, 3, 8, 10)}, tolerance=1e-3, in_c=True)
    perms = [n.ints("perm") for n in graph.nodes if n.op == "Transpose"]
    assert perms == [(0, 2, 3, 1)]  # the input's codes


def test_weights_that_two_branches_share_through_identity() -> None:
    """The quantiser takes the copy after Identity for an activation and quantises it again."""
    net = Net()
    net.input("x", "s8[1,2,6,6]")
    net.input("z", "s8[1,2,6,6]")
    net.const("w", codes(3, 2, 3, 3))
    for name in "xz":
        net.dq(name, 0.02, S8(4))
    net.dq("w", 0.01, S8(0))
    net.op("Identity", "w_r", "w2")
    copy = net.qdq("w2", 0.0102, S8(-3))
    first, second = net.op("Conv", "x_r w_r", "a"), net.op("Conv", f"z_r {copy}", "b")
    net.q(first, 0.05, S8(1), "y")
    net.q(second, 0.05, S8(1), "u")
    feeds = {name: codes(1, 2, 6, 6) for name in "xz"}
    graph = same_as_onnxruntime(net.build({"y": "s8", "u": "s8"}), feeds)
    assert all(graph.types[n.outputs[0]].quantized for n in graph.nodes if n.op == "Conv")


@pytest.mark.parametrize("zero", [0, 117, 120, 255])
@pytest.mark.parametrize("kind", [U8, S8])
def test_average_of_windows_rounds_with_the_zero_point_of_the_model(kind: type, zero: int) -> None:
    """Equal scales make ties; onnxruntime adds the zero point of the codes as they stand before it rounds."""
    zero_point = kind(zero if kind is U8 else zero - 128)
    net = Net()
    net.input("x", f"{'u8' if kind is U8 else 's8'}[1,4,32,32]")
    net.dq("x", 0.013, zero_point)
    net.op("AveragePool", "x_r", "a", kernel_shape=[2, 2], strides=[2, 2])
    net.q("a", 0.013, zero_point, "y")
    feeds = {"x": codes(1, 4, 32, 32, dtype=kind)}
    same_as_onnxruntime(net.build({"y": "u8" if kind is U8 else "s8"}), feeds, in_c=True)
