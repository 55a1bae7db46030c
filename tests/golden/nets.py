"""Small networks, made with onnx.helper from a fixed seed: the cases of the golden files, also used elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx

from tests.unit.onnx_builders import f32, model, node


class _Net:
    """Collects nodes and constants of one network; `q` is the name of a tensor with its scale and zero point."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.consts: dict[str, np.ndarray | Sequence[int]] = {}

    def op(self, op: str, inputs: str, output: str, **attrs: object) -> str:
        self.nodes.append(node(op, inputs, output, name=output, **attrs))
        return output

    def params(self, name: str, scale: float, zero: int) -> str:
        self.consts |= {f"{name}_s": f32(scale), f"{name}_z": np.int8(zero)}
        return f"{name}_s {name}_z"

    def dq(self, name: str, scale: float, zero: int) -> str:
        """Dequantise an int8 graph input."""
        return self.op("DequantizeLinear", f"{name} {self.params(name, scale, zero)}", f"{name}_r")

    def qdq(self, value: str, scale: float, zero: int, *, last: bool = False) -> str:
        """Quantise a float value; dequantise it again unless it is a graph output."""
        p = self.params(value, scale, zero)
        quantised = self.op("QuantizeLinear", f"{value} {p}", f"{value}_q")
        return quantised if last else self.op("DequantizeLinear", f"{quantised} {p}", f"{value}_dq")

    def weights(self, name: str, shape: tuple[int, ...], scale: float, channels: int = 0) -> str:
        """Quantised weights (per channel of axis 0 if `channels`), dequantised."""
        self.consts[name] = self.rng.integers(-90, 91, shape).astype(np.int8)
        if channels:
            self.consts[f"{name}_s"] = (scale * (1 + np.arange(channels) / 4)).astype(np.float32)
            self.consts[f"{name}_z"] = np.zeros(channels, np.int8)
        else:
            self.params(name, scale, 0)
        return self.op("DequantizeLinear", f"{name} {name}_s {name}_z", f"{name}_r", axis=0)

    def bias(self, name: str, count: int, scale: float) -> str:
        self.consts[name] = self.rng.integers(-99, 100, count).astype(np.int32)
        self.consts |= {f"{name}_s": f32(scale), f"{name}_z": np.int32(0)}
        return self.op("DequantizeLinear", f"{name} {name}_s {name}_z", f"{name}_r")


def conv_pool() -> onnx.ModelProto:
    """int8 Conv + Relu + MaxPool, weights per channel."""
    n = _Net(1)
    x = n.dq("x", 0.5, 3)
    w = n.weights("w", (2, 1, 3, 3), 0.01, channels=2)
    n.op("Conv", f"{x} {w}", "conv", kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    n.op("Relu", "conv", "relu")
    pooled = n.op("MaxPool", n.qdq("relu", 0.25, -128), "pool", kernel_shape=[2, 2], strides=[2, 2])
    y = n.qdq(pooled, 0.25, -128, last=True)
    return model(n.nodes, {"x": "s8[1,1,6,6]"}, {y: "s8"}, n.consts)


def dense() -> onnx.ModelProto:
    """int8 Gemm with a bias, then Softmax."""
    n = _Net(2)
    x = n.dq("x", 0.125, -5)
    w = n.weights("w", (3, 8), 0.02)
    n.op("Gemm", f"{x} {w} {n.bias('b', 3, 0.125 * 0.02)}", "fc", transB=1)
    n.op("Softmax", n.qdq("fc", 0.1, 4), "soft", axis=1)
    y = n.qdq("soft", 1 / 256, -128, last=True)
    return model(n.nodes, {"x": "s8[1,8]"}, {y: "s8"}, n.consts)


def residual() -> onnx.ModelProto:
    """int8 1x1 Conv added to its own input: the sum is written over the dead branch."""
    n = _Net(3)
    x = n.dq("x", 0.5, 0)
    w = n.weights("w", (4, 4, 1, 1), 0.01)
    n.op("Conv", f"{x} {w}", "conv", kernel_shape=[1, 1])
    n.op("Add", f"{x} {n.qdq('conv', 0.4, -2)}", "sum")
    n.op("Relu", "sum", "relu")
    y = n.qdq("relu", 0.6, -128, last=True)
    return model(n.nodes, {"x": "s8[1,4,4,4]"}, {y: "s8"}, n.consts)


def depthwise() -> onnx.ModelProto:
    """int8 depthwise Conv with stride 2 after a pointwise one, then global average pooling."""
    n = _Net(4)
    x = n.dq("x", 0.5, 1)
    n.op("Conv", f"{x} {n.weights('wp', (4, 2, 1, 1), 0.01)}", "point", kernel_shape=[1, 1])
    point = n.qdq("point", 0.3, 5)
    w = n.weights("wd", (4, 1, 3, 3), 0.02, channels=4)
    n.op("Conv", f"{point} {w}", "depth", kernel_shape=[3, 3], group=4, strides=[2, 2], pads=[1, 1, 1, 1])
    n.op("GlobalAveragePool", n.qdq("depth", 0.2, -7), "mean")
    y = n.qdq("mean", 0.1, 0, last=True)
    return model(n.nodes, {"x": "s8[1,2,5,5]"}, {y: "s8"}, n.consts)


def float_mlp() -> onnx.ModelProto:
    """float32 MatMul + Add + Relu + MatMul + Softmax."""
    n = _Net(5)
    n.consts |= {
        "w1": n.rng.integers(-8, 9, (6, 5)).astype(np.float32) / 8,
        "b1": n.rng.integers(-8, 9, 5).astype(np.float32) / 8,
        "w2": n.rng.integers(-8, 9, (5, 3)).astype(np.float32) / 8,
    }
    n.op("MatMul", "x w1", "h")
    n.op("Add", "h b1", "hb")
    n.op("Relu", "hb", "r")
    n.op("MatMul", "r w2", "l")
    n.op("Softmax", "l", "y", axis=-1)
    return model(n.nodes, {"x": "f32[1,6]"}, {"y": "f32"}, n.consts)


def concat() -> onnx.ModelProto:
    """Two float branches joined along the leading axis: both write their part of the result, nothing is copied."""
    n = _Net(6)
    n.consts["w"] = n.rng.integers(-8, 9, (4, 3)).astype(np.float32) / 8
    n.op("MatMul", "a w", "left")
    n.op("Relu", "b", "right")
    n.op("Concat", "left right", "both", axis=0)
    n.op("Reshape", "both shape", "y")
    n.consts["shape"] = [3, 3]
    return model(n.nodes, {"a": "f32[2,4]", "b": "f32[1,3]"}, {"y": "f32"}, n.consts)


NETS: dict[str, Callable[[], onnx.ModelProto]] = {
    net.__name__: net for net in (conv_pool, dense, residual, depthwise, float_mlp, concat)
}
