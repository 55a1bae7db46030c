"""One network with every int16 operator that computes in integers: the same codes on every CPU, those of numpy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model, write_bundle
from glowc.machine.execute import execute, load_bundle
from tests.conftest import require_tool
from tests.fuzz.check import interpreted

BOARDS = ("host", "mps2-an385", "mps2-an386", "mps3-an547", "linux-aarch64", "linux-armhf")
SHAPE = [1, 8, 10, 12]


class _Net:
    """DequantizeLinear, an operator, QuantizeLinear, for each of them."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)
        self.consts: dict[str, np.ndarray] = {"scale": np.float32(1.5e-4), "zero": np.int16(0), "zero8": np.int8(0)}
        self.nodes = [helper.make_node("DequantizeLinear", [x, "scale", "zero"], [f"{x}f"]) for x in ("x", "u")] + [
            helper.make_node("Transpose", ["uf"], ["ut"], perm=[0, 1, 3, 2])
        ]
        self.outputs: list[str] = []

    def add(self, op: str, inputs: Sequence[str], reach: float, **attrs: object) -> None:
        name = f"{op}{len(self.outputs)}"
        self.consts[f"{name}_s"] = np.float32(reach / 20000)
        self.nodes += [
            helper.make_node(op, inputs, [f"{name}_f"], **attrs),
            helper.make_node("QuantizeLinear", [f"{name}_f", f"{name}_s", "zero"], [name]),
        ]
        self.outputs.append(name)

    def weights(self, name: str, *shape: int) -> str:
        self.consts |= {f"{name}_q": self.rng.integers(-127, 128, shape).astype(np.int8), f"{name}_s": np.float32(0.01)}
        self.nodes.append(helper.make_node("DequantizeLinear", [f"{name}_q", f"{name}_s", "zero8"], [name]))
        return name

    def model(self) -> onnx.ModelProto:
        inputs = [helper.make_tensor_value_info(n, TensorProto.INT16, SHAPE) for n in "xu"]
        outputs = [helper.make_tensor_value_info(n, TensorProto.INT16, None) for n in self.outputs]
        consts = [numpy_helper.from_array(np.asarray(a), n) for n, a in self.consts.items()]
        graph = helper.make_graph(self.nodes, "net", inputs, outputs, consts)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def network() -> onnx.ModelProto:
    """Return a model of int16 operators that have integer kernels."""
    net = _Net()
    for op in ("Add", "Sub", "Mul", "Max", "Min"):
        net.add(op, ["xf", "uf"], 6.0)
    net.add("MatMul", ["xf", "ut"], 60.0)
    net.add("MatMul", ["xf", net.weights("wm", 12, 20)], 9.0)
    net.add("Conv", ["xf", net.weights("wc", 6, 8, 3, 3)], 9.0)
    net.add("Conv", ["xf", net.weights("wd", 8, 1, 3, 3)], 9.0, group=8)
    net.add("AveragePool", ["xf"], 3.0, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    net.add("MaxPool", ["xf"], 3.0, kernel_shape=[2, 2])
    net.add("GlobalAveragePool", ["xf"], 1.0)
    net.add("Softmax", ["xf"], 1.0, axis=-1)
    net.add("Clip", ["xf"], 2.0)
    net.add("Relu", ["xf"], 3.0)
    net.add("Concat", ["xf", "uf"], 5.0, axis=1)
    return net.model()


@cache
def samples() -> dict[str, np.ndarray]:
    """Return two samples; the second has only the ends of the range."""
    rng = np.random.default_rng(1)
    both = {n: rng.integers(-32768, 32768, (2, *SHAPE)).astype(np.int16) for n in "xu"}
    for array in both.values():
        array[1] = rng.choice([-32768, 32767], SHAPE)
    return both


@cache
def wanted() -> dict[str, np.ndarray]:
    """Return what numpy computes."""
    return interpreted(network(), samples())


@pytest.mark.qemu
@pytest.mark.parametrize("name", BOARDS)
def test_codes_of_int16_are_the_same_on_every_cpu(name: str, tmp_path: Path) -> None:
    board = load_board(name)
    require_tool(board.cpu.cc)
    path = tmp_path / "net.onnx"
    onnx.save(network(), path)
    write_bundle(compile_model(path, board, CompileOptions(name="net")), tmp_path / "net")
    info = load_bundle(tmp_path / "net")
    outputs = execute(info, board, {p.name: p.to_bundle(samples()[p.name]) for p in info.inputs}).outputs
    got = {p.name: p.to_exported(outputs[p.name]) for p in info.outputs}
    assert {n: int((got[n] != a).sum()) for n, a in wanted().items() if not np.array_equal(got[n], a)} == {}
