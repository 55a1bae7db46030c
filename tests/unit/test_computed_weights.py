"""Weights, biases and scales that are inputs of the model: kernels that prepare constants are not for such layers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model
from tests.e2e.models import outputs_on
from tests.unit.onnx_builders import f32, model, node
from tests.unit.quirk_models import RNG, onnxruntime_outputs

BOARDS = ("host", "rpi-pico", "mps2-an385", "mps2-an386", "mps2-an505", "mps2-an500", "mps3-an547", "linux-aarch64",
          "linux-armhf")  # fmt: skip
DYNAMIC = (
    node("DynamicQuantizeLinear", "x", "xq xs xz"), node("MatMulInteger", "xq w xz", "i"), node("Cast", "i", "f", to=1),
    node("Mul", "xs ws", "m"), node("Mul", "f m", "o"), node("Add", "o b", "y"),
)  # fmt: skip
QDQ = {"s": f32(0.05), "z": np.int8(3), "sw": f32(0.02), "zw": np.int8(0), "sy": f32(0.3), "zy": np.int8(-4)}


def _float(op: str, x: str, w: str, b: str, **attrs: object) -> onnx.ModelProto:
    return model([node(op, "x w b", "y", **attrs)], {"x": f"f32{x}", "w": f"f32{w}", "b": f"f32{b}"}, {"y": "f32"}, {})


def _codes(op: str, x: str, w: str, **attrs: object) -> onnx.ModelProto:
    nodes = [
        node("DequantizeLinear", "x s z", "xd"), node("DequantizeLinear", "w sw zw", "wd"),
        node(op, "xd wd", "r", **attrs), node("QuantizeLinear", "r sy zy", "y"),
    ]  # fmt: skip
    return model(nodes, {"x": f"s8{x}", "w": f"s8{w}"}, {"y": "s8"}, QDQ)


def _dynamic(weights: bool) -> onnx.ModelProto:
    """Return a fully connected layer of int8 weights whose scale and bias, or weights, are inputs."""
    computed = {"w": "s8[32,16]"} if weights else {"ws": "f32[16]", "b": "f32[16]"}
    consts = {"w": RNG.integers(-99, 99, (32, 16)).astype(np.int8), "ws": f32(0.1), "b": np.ones(16, np.float32)}
    fixed = {name: array for name, array in consts.items() if name not in computed}
    return model(list(DYNAMIC), {"x": "f32[4,32]", **computed}, {"y": "f32"}, fixed)


NETS = {
    "conv": lambda: _float("Conv", "[1,8,6,6]", "[8,8,3,3]", "[8]"),
    "planar": lambda: _float("Conv", "[1,1,6,6]", "[8,1,3,3]", "[8]"),
    "depthwise": lambda: _float("Conv", "[1,16,6,6]", "[16,1,3,3]", "[16]", group=16),
    "transposed": lambda: _float("ConvTranspose", "[1,8,5,5]", "[8,8,2,2]", "[8]", strides=[2, 2]),
    "gemm": lambda: _float("Gemm", "[2,32]", "[16,32]", "[16]", transB=1),
    "lstm": lambda: _float("LSTM", "[4,1,8]", "[1,32,8]", "[1,32,8]", hidden_size=8),
    "norm": lambda: _float("LayerNormalization", "[1,5,8]", "[8]", "[8]"),
    "conv codes": lambda: _codes("Conv", "[1,8,6,6]", "[8,8,3,3]"),
    "gemm codes": lambda: _codes("Gemm", "[2,32]", "[16,32]", transB=1),
    "dynamic weights": lambda: _dynamic(True),
    "dynamic scale": lambda: _dynamic(False),
}


@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("name", NETS)
def test_layers_with_computed_weights_compile_for_every_cpu(name: str, board: str, tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    onnx.save(NETS[name](), path)
    assert compile_model(path, load_board(board), CompileOptions(name="net")).bundle.layers


@pytest.mark.qemu
@pytest.mark.parametrize("board", ["mps2-an386", "mps3-an547"])
@pytest.mark.parametrize("name", ["conv", "planar"])
def test_convolution_whose_weights_are_an_input_runs_on_an_fpu(name: str, board: str, tmp_path: Path) -> None:
    proto = NETS[name]()
    shapes = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in proto.graph.input}
    feeds = {key: RNG.normal(size=shape).astype(np.float32) for key, shape in shapes.items()}
    onnx.save(proto, tmp_path / "net.onnx")
    compiled = compile_model(tmp_path / "net.onnx", load_board(board), CompileOptions(name="net"))
    got = outputs_on(compiled, {key: array[None] for key, array in feeds.items()})["y"][0]
    np.testing.assert_allclose(got, onnxruntime_outputs(proto, feeds)["y"], rtol=0, atol=1e-5)
