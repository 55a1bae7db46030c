"""Quantised exports: what onnxruntime's quantiser leaves in float, and what its runtime then makes of it."""

from __future__ import annotations

import numpy as np
import pytest

from glowc.errors import ModelError
from glowc.frontend import import_model
from glowc.graph.graph import Graph
from glowc.graph.types import DType
from glowc.ops.interp import run_graph
from tests.unit.onnx_builders import f32, model, node
from tests.unit.quirk_models import Net, codes, onnxruntime_outputs, optimised, same_as_onnxruntime

S8, U8 = np.int8, np.uint8
RNG = np.random.default_rng(31)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def kinds(graph: Graph, op: str) -> list[DType]:
    return [graph.types[n.inputs[0]].dtype for n in graph.nodes if n.op == op]


@pytest.mark.parametrize("relu", [False, True])
def test_transposed_convolution_that_qoperator_leaves_in_float(relu: bool) -> None:
    """No QLinearConvTranspose exists: float weights stand between DequantizeLinear and QuantizeLinear."""
    net = Net()
    net.input("x", "u8[1,6,5,5]")
    net.dq("x", 0.021, U8(7))
    net.const("w", normal(6, 4, 2, 2))
    net.const("b", normal(4))
    y = net.op("ConvTranspose", "x_r w b", "t", strides=[2, 2], kernel_shape=[2, 2])
    y = net.op("Relu", y, "r") if relu else y
    net.q(y, 0.13, U8(0 if relu else 120), "y")
    proto, feeds = net.build({"y": "u8"}), {"x": codes(1, 6, 5, 5, dtype=U8)}
    (y,), (wanted,) = run_graph(optimised(proto), feeds).values(), onnxruntime_outputs(proto, feeds).values()
    steps = np.abs(y.astype(np.int64) - wanted)
    assert steps.max() <= 1
    assert (steps > 0).mean() < 0.005  # near-ties: onnxruntime sums in float


@pytest.mark.parametrize("clip", ["", "Relu"])
@pytest.mark.parametrize("bias", [False, True])
def test_convolution_that_was_left_out_of_quantisation(bias: bool, clip: str) -> None:
    """nodes_to_exclude: onnxruntime gives the layer int8 weights all the same."""
    net = Net()
    net.input("x", "s8[1,6,9,9]")
    net.dq("x", 0.021, S8(7))
    net.const("w", normal(4, 6, 3, 3))
    net.const("b", normal(4))
    y = net.op("Conv", "x_r w b" if bias else "x_r w", "t", kernel_shape=[3, 3])
    y = net.op(clip, y, "r") if clip else y
    net.q(y, 0.23, S8(-128 if clip else 3), "y")
    graph = same_as_onnxruntime(net.build({"y": "s8"}), {"x": codes(1, 6, 9, 9)}, in_c=True, imported_steps=3)
    assert kinds(graph, "Conv") == [DType.S8]


def test_dense_layers_that_were_left_out_of_quantisation() -> None:
    net = Net()
    net.input("x", "s8[3,24]")
    net.dq("x", 0.03, S8(-4))
    for name, array in (("w", normal(24, 10)), ("b", normal(10)), ("v", normal(10, 8)), ("c", normal(8))):
        net.const(name, array)
    first = net.qdq(net.op("Gemm", "x_r w b", "g"), 0.11, S8(2))
    second = net.op("Add", net.op("MatMul", f"{first} v", "m") + " c", "a")
    net.q(second, 0.2, S8(5), "y")
    graph = same_as_onnxruntime(net.build({"y": "s8"}), {"x": codes(3, 24)}, in_c=True, imported_steps=6)
    assert kinds(graph, "FullyConnected") == [DType.S8, DType.S8]


def test_product_without_bias_keeps_its_float_weights() -> None:
    net = Net()
    net.input("x", "s8[3,24]")
    net.dq("x", 0.03, S8(-4))
    net.const("w", normal(24, 10))
    net.q(net.op("MatMul", "x_r w", "m"), 0.2, S8(5), "y")
    graph = same_as_onnxruntime(net.build({"y": "s8"}), {"x": codes(3, 24)}, in_c=True)
    assert kinds(graph, "FullyConnected") == [DType.F32]


def test_float_bias_beside_quantised_weights_is_rounded_in_float32() -> None:
    """Quantisation-aware training writes such models; many biases lie near a half."""
    net = Net()
    net.input("x", "s8[1,2,1,1]")
    net.dq("x", 0.1, S8(0))
    net.const("w", codes(2000, 2, 1, 1))
    net.dq("w", 0.037, S8(0))
    net.const("b", (np.arange(2000) * 0.5 * np.float32(np.float32(0.1) * np.float32(0.037))).astype(np.float32))
    net.q(net.op("Conv", "x_r w_r b", "c"), 0.0037, S8(0), "y")
    same_as_onnxruntime(net.build({"y": "s8"}), {"x": np.zeros((1, 2, 1, 1), S8)})


def test_mask_of_minus_infinity_is_named_with_what_to_do() -> None:
    nodes = [node("QuantizeLinear", "x s z", "q", name="mask_q"), node("DequantizeLinear", "q s z", "y")]
    proto = model(nodes, {"x": "f32[2]"}, {"y": "f32"}, {"s": f32(np.inf), "z": S8(0)})
    with pytest.raises(ModelError, match="mask_q") as caught:
        import_model(proto.SerializeToString())
    assert "nodes_to_exclude" in str(caught.value.hint)


def batch_norm(net: Net, x: str, channels: int, out: str) -> str:
    """Add a BatchNormalization with statistics of its own."""
    for key, array in (("g", normal(channels)), ("b", normal(channels)), ("m", normal(channels))):
        net.const(f"{out}_{key}", array)
    net.const(f"{out}_v", np.abs(normal(channels)) + np.float32(0.1))
    return net.op("BatchNormalization", f"{x} {out}_g {out}_b {out}_m {out}_v", out)


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("kind", [S8, U8])
def test_batch_normalisation_that_no_convolution_takes(kind: type, relu: bool) -> None:
    """Networks with pre-activation, or Conv-Relu-BatchNormalization: the quantiser leaves it in float."""
    text, zero = ("s8", S8(-9)) if kind is S8 else ("u8", U8(119))
    net = Net()
    net.input("x", f"{text}[1,12,9,7]")
    net.dq("x", 0.031, zero)
    y = batch_norm(net, "x_r", 12, "n")
    y = net.op("Relu", y, "r") if relu else y
    y = net.qdq(y, 0.04, kind(zero if not relu else np.iinfo(kind).min))
    net.const("w", codes(5, 12, 3, 3) // 2)  # sums of two products by a uint8 fit 16 bits
    net.dq("w", 0.02, S8(0))
    net.q(net.op("Conv", f"{y} w_r", "c"), 0.3, zero, "y")
    graph = same_as_onnxruntime(net.build({"y": text}), {"x": codes(1, 12, 9, 7, dtype=kind)}, in_c=True)
    assert not any(t.dtype.is_float for t in graph.types.values())
    assert "ChannelLines" in {n.op for n in graph.nodes}


def test_prelu_of_channels_and_batch_normalisation_of_a_signal() -> None:
    """Face recognition and ECG networks: PRelu with a slope per channel, on an image and on [N, C, T]."""
    net = Net()
    net.input("x", "s8[1,10,40]")
    net.dq("x", 0.05, S8(3))
    net.const("w", codes(8, 10, 5))
    net.const("slope", np.linspace(-0.2, 0.4, 8, dtype=np.float32).reshape(8, 1))
    net.dq("w", 0.01, S8(0))
    first = net.qdq(net.op("Conv", "x_r w_r", "c", kernel_shape=[5]), 0.2, S8(-2))
    second = net.qdq(net.op("PRelu", f"{first} slope", "p"), 0.15, S8(-20))
    net.q(net.op("Relu", batch_norm(net, second, 8, "n"), "r"), 0.11, S8(-128), "y")
    graph = same_as_onnxruntime(net.build({"y": "s8"}), {"x": codes(1, 10, 40)}, in_c=True)
    assert not any(t.dtype.is_float for t in graph.types.values())


@pytest.mark.parametrize("op", ["GatherND", "GatherElements", "ReverseSequence"])
def test_picked_codes_change_their_scale(op: str) -> None:
    """Indexing with a list exports as GatherND; the result has a scale of its own."""
    net = Net()
    net.input("x", "s8[5,4]")
    net.dq("x", 0.02, S8(11))
    index = {"GatherND": [[4], [0], [2]], "GatherElements": [[3, 0], [1, 1]], "ReverseSequence": [2, 3, 1, 5]}[op]
    net.const("i", np.asarray(index, np.int64))
    attrs = {"GatherElements": {"axis": 1}, "ReverseSequence": {"time_axis": 0, "batch_axis": 1}}.get(op, {})
    net.q(net.op(op, "x_r i", "g", **attrs), 0.017, S8(-3), "y")
    graph = same_as_onnxruntime(net.build({"y": "s8"}), {"x": codes(5, 4)}, in_c=True)
    assert not any(t.dtype.is_float for t in graph.types.values())


@pytest.mark.parametrize("kind", [S8, np.int16])
@pytest.mark.parametrize("counted", [0, 1])
@pytest.mark.parametrize(("kernel", "stride", "pad"), [(3, 2, 1), (3, 2, 0), (2, 2, 0), (3, 3, 1)])
def test_average_over_windows_that_ceil_mode_adds(
    kernel: int, stride: int, pad: int, counted: int, kind: type[np.signedinteger]
) -> None:
    """PyTorch exports count_include_pad=1 always; onnxruntime's int8 pool then counts what lies after the image."""
    dtype = f"s{np.iinfo(kind).bits}"
    net = Net(opset=21)
    net.input("x", f"{dtype}[1,5,8,9]")
    net.dq("x", 0.021, kind(-11))
    attrs = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pad] * 4}
    net.q(net.op("AveragePool", "x_r", "a", ceil_mode=1, count_include_pad=counted, **attrs), 0.019, kind(4), "y")
    proto = net.build({"y": dtype})
    x = codes(1, 5, 8, 9, dtype=kind)
    same_as_onnxruntime(proto, {"x": x}, in_c=True, imported_steps=None)


def test_every_code_through_batch_normalisation_is_that_of_onnxruntime() -> None:
    """The factors are computed in onnxruntime's order: 2.6 million codes of other networks differ nowhere."""
    net = Net()
    net.input("x", "s8[1,256,16,16]")
    net.dq("x", 0.031, S8(-9))
    net.q(batch_norm(net, "x_r", 256, "n"), 0.04, S8(5), "y")
    x = np.broadcast_to(np.arange(-128, 128, dtype=S8).reshape(16, 16), (1, 256, 16, 16)).copy()
    graph = same_as_onnxruntime(net.build({"y": "s8"}), {"x": x})
    assert "ChannelLines" in {n.op for n in graph.nodes}
