"""Operators between int16 codes give the same codes on every CPU.

One network has those that compute in integers, whose codes are those of numpy; the other those that compute in float
between the codes, in an order and with functions that are the same everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def network_of_reals() -> onnx.ModelProto:
    """Return a model of int16 operators that compute in float."""
    net, rng = _Net(), np.random.default_rng(2)
    for op in ("Sigmoid", "Tanh", "Exp", "Erf", "Gelu", "Selu", "Elu", "Softplus", "Mish", "HardSwish", "Sqrt", "Log"):
        net.add(op, ["xf"], 3.0)
    for op in ("Sin", "Atan", "Reciprocal"):
        net.add(op, ["xf"], 3.0)
    net.add("Gelu", ["xf"], 3.0, approximate="tanh")
    for op in ("Div", "Pow"):
        net.add(op, ["xf", "uf"], 6.0)
    net.consts |= {name: rng.standard_normal(n).astype(np.float32) for name, n in (("g", 12), ("b", 12), ("c", 8))}
    net.consts |= {"rows": np.array([2, 3]), "sizes": np.array([1, 1, 2, 2], np.float32)}
    net.add("LayerNormalization", ["xf", "g", "b"], 3.0, axis=-1)
    net.add("InstanceNormalization", ["xf", "c", "c"], 3.0)
    net.add("Softmax", ["xf"], 1.0, axis=1)
    net.add("LogSoftmax", ["xf"], 8.0, axis=-1)
    for op in ("ReduceMean", "ReduceL2", "ReduceLogSumExp"):
        net.add(op, ["xf", "rows"], 20.0)
    net.add("LRN", ["xf"], 3.0, size=3)
    net.add("Resize", ["xf", "", "sizes"], 3.0, mode="linear")
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


def codes_on(name: str, model: onnx.ModelProto, folder: Path) -> dict[str, np.ndarray]:
    """Return the outputs of a model on a board."""
    board = load_board(name)
    require_tool(board.cpu.cc)
    path = folder / f"{name}.onnx"
    onnx.save(model, path)
    write_bundle(compile_model(path, board, CompileOptions(name="net")), folder / name)
    info = load_bundle(folder / name)
    outputs = execute(info, board, {p.name: p.to_bundle(samples()[p.name]) for p in info.inputs}).outputs
    return {p.name: p.to_exported(outputs[p.name]) for p in info.outputs}


def differing(got: Mapping[str, np.ndarray], want: Mapping[str, np.ndarray]) -> dict[str, int]:
    return {n: int((got[n] != a).sum()) for n, a in want.items() if not np.array_equal(got[n], a)}


@pytest.mark.qemu
@pytest.mark.parametrize("name", BOARDS)
def test_integers_of_sixteen_bits_are_the_same_on_every_cpu(name: str, tmp_path: Path) -> None:
    assert differing(codes_on(name, network(), tmp_path), wanted()) == {}


@pytest.mark.qemu
@pytest.mark.parametrize("name", BOARDS[1:])
def test_reals_between_codes_of_sixteen_bits_are_the_same_on_every_cpu(name: str, tmp_path: Path) -> None:
    want = codes_on("host", network_of_reals(), tmp_path)
    assert differing(codes_on(name, network_of_reals(), tmp_path), want) == {}
