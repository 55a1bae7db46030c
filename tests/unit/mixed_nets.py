"""QDQ files with codes of 8 and of 16 bits."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Kind = type[np.int8] | type[np.int16] | type[np.uint8]


class Net:
    """A QDQ file as it grows."""

    def __init__(self, seed: int = 0) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.consts: list[onnx.TensorProto] = []
        self.rng = np.random.default_rng(seed)

    def const(self, name: str, array: np.ndarray) -> str:
        self.consts.append(numpy_helper.from_array(array, name))
        return name

    def pair(self, value: str, kind: Kind, scale: float, zero: int, *, to: str = "") -> str:
        """Quantise and dequantise a value; the codes are called `to`."""
        codes = to or f"{value}_{kind.__name__}"
        params = [self.const(f"{codes}_s", np.float32(scale)), self.const(f"{codes}_z", np.asarray(zero, kind))]
        self.nodes.append(helper.make_node("QuantizeLinear", [value, *params], [codes]))
        self.nodes.append(helper.make_node("DequantizeLinear", [codes, *params], [f"{codes}_f"]))
        return f"{codes}_f"

    def conv(self, value: str, name: str, channels: tuple[int, int]) -> str:
        weights = self.rng.integers(-127, 128, (*channels, 3, 3)).astype(np.int8)
        params = [self.const(f"{name}_ws", np.float32(0.01)), self.const(f"{name}_wz", np.int8(0))]
        self.nodes.append(
            helper.make_node("DequantizeLinear", [self.const(f"{name}_w", weights), *params], [f"{name}_wf"])
        )
        self.nodes.append(helper.make_node("Conv", [value, f"{name}_wf"], [name], name=name, pads=[1, 1, 1, 1]))
        return name

    def model(self, shape: list[int], output: str, out_shape: list[int], kind: Kind) -> onnx.ModelProto:
        element = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
        graph = helper.make_graph(
            self.nodes, "mixed", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info(output, element, out_shape)], self.consts,
        )  # fmt: skip
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def mixed_net(wide_zero: int = 0) -> onnx.ModelProto:
    """Convolutions of int8, int16 and int8, int16 codes of a zero point between them; the last result is an output."""
    net = Net()
    value = net.conv(net.pair("x", np.int8, 0.0213, 3), "first", (8, 3))
    value = net.pair(net.pair(value, np.int8, 0.0617, -5), np.int16, 3.3e-4, wide_zero)
    value = net.conv(value, "wide", (8, 8))
    value = net.pair(net.pair(value, np.int16, 9e-4, wide_zero), np.int8, 0.2103, 11)
    net.pair(net.conv(value, "last", (4, 8)), np.int8, 0.8973, 0, to="y")
    return net.model([1, 3, 8, 8], "y", [1, 4, 8, 8], np.int8)


def conversions(kinds: list[Kind], zeros: list[int]) -> onnx.ModelProto:
    """Pairs of codes of 8 and 16 bits behind each other."""
    net = Net()
    value = "x"
    for number, (kind, zero) in enumerate(zip(kinds, zeros, strict=True)):
        scale = 0.013 * (1 + 0.3 * number) / (256 if kind is np.int16 else 1)
        value = net.pair(value, kind, scale, zero, to="y" if number == len(kinds) - 1 else f"c{number}")
    return net.model([1000], "y", [1000], kinds[-1])
