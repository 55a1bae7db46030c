"""Small attention blocks for tests: built node by node, quantised by onnxruntime, answered by onnxruntime."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.conftest import require_module


@dataclass(frozen=True)
class Block:
    """Sizes of one encoder block; `decomposed` writes LayerNormalization and Gelu as chains of simple operators,
    `packed` has one projection to query, key and value, `row` is the one that a Gather at the end selects."""

    batch: int = 1
    length: int = 8
    heads: int = 2
    width: int = 16
    masked: bool = False
    decomposed: bool = False
    packed: bool = False
    row: int | None = None

    @property
    def label(self) -> str:
        """A short name for test ids."""
        words = ["masked"] * self.masked + ["decomposed"] * self.decomposed + ["packed"] * self.packed
        words += [] if self.row is None else [f"row{self.row}"]
        return "-".join([f"b{self.batch}s{self.length}h{self.heads}w{self.width}", *words])


class _Net:
    def __init__(self, seed: int) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.consts: list[onnx.TensorProto] = []
        self.rng = np.random.default_rng(seed)

    def const(self, array: np.ndarray | float | Sequence[int]) -> str:
        name = f"c{len(self.consts)}"
        value = np.asarray(array)
        value = value.astype(np.float32) if value.dtype == np.float64 else value
        self.consts.append(numpy_helper.from_array(value, name))
        return name

    def add(self, op: str, *inputs: str, **attrs: Any) -> str:
        out = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [out], name=f"n{len(self.nodes)}_{op}", **attrs))
        return out

    def dense(self, x: str, width: int, out: int) -> str:
        weights = self.const(self.rng.normal(0, width**-0.5, (width, out)))
        return self.add("Add", self.add("MatMul", x, weights), self.const(self.rng.normal(0, 0.1, out)))

    def norm(self, x: str, width: int, decomposed: bool) -> str:
        scale, bias = self.const(self.rng.normal(1, 0.1, width)), self.const(self.rng.normal(0, 0.1, width))
        if not decomposed:
            return self.add("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-5)
        apart = self.add("Sub", x, self.add("ReduceMean", x, axes=[-1], keepdims=1))
        square = self.add("Pow", apart, self.const(2.0))
        variance = self.add("Add", self.add("ReduceMean", square, axes=[-1], keepdims=1), self.const(1e-5))
        normal = self.add("Div", apart, self.add("Sqrt", variance))
        return self.add("Add", self.add("Mul", normal, scale), bias)

    def gelu(self, x: str, decomposed: bool) -> str:
        if not decomposed:
            return self.add("Gelu", x, approximate="none")
        erf = self.add("Erf", self.add("Div", x, self.const(2**0.5)))
        return self.add("Mul", self.add("Mul", x, self.add("Add", erf, self.const(1.0))), self.const(0.5))


def build(block: Block, seed: int = 0) -> onnx.ModelProto:
    """Return the model: x [batch, length, width] float32 -> y of the same shape, of one row without its axis."""
    net, head = _Net(seed), block.width // block.heads
    shape = net.const(np.asarray([block.batch, block.length, block.heads, head], np.int64))
    flat = net.const(np.asarray([block.batch, block.length, block.width], np.int64))
    x = net.norm("x", block.width, block.decomposed)
    if block.packed:
        joined = net.const(np.asarray([block.batch, block.length, 3, block.heads, head], np.int64))
        qkv = net.add("Reshape", net.dense(x, block.width, 3 * block.width), joined)
        qkv = net.add("Transpose", qkv, perm=[2, 0, 3, 1, 4])
        q, k, v = (net.add("Gather", qkv, net.const(np.asarray(i, np.int64)), axis=0) for i in range(3))
        k = net.add("Transpose", k, perm=[0, 1, 3, 2])
    else:
        q, k, v = (net.add("Reshape", net.dense(x, block.width, block.width), shape) for _ in range(3))
        q, v = (net.add("Transpose", t, perm=[0, 2, 1, 3]) for t in (q, v))
        k = net.add("Transpose", k, perm=[0, 2, 3, 1])
    scores = net.add("MatMul", q, k)
    scores = net.add("Div", scores, net.const(head**0.5))
    if block.masked:
        future = np.triu(np.full((block.length, block.length), -8.0, np.float32), 1)
        scores = net.add("Add", scores, net.const(future))
    mixed = net.add("MatMul", net.add("Softmax", scores, axis=-1), v)
    mixed = net.add("Reshape", net.add("Transpose", mixed, perm=[0, 2, 1, 3]), flat)
    x = net.add("Add", x, net.dense(mixed, block.width, block.width))
    x = net.norm(x, block.width, block.decomposed)
    wide = net.gelu(net.dense(x, block.width, 2 * block.width), block.decomposed)
    x = net.add("Add", x, net.dense(wide, 2 * block.width, block.width))
    sizes = [(block.batch, block.length, block.width)] * 2
    if block.row is not None:
        x = net.add("Gather", x, net.const(np.asarray(block.row, np.int64)), axis=1)
        sizes[1] = (block.batch, block.width)
    net.nodes[-1].output[0] = "y"
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, size) for n, size in zip("xy", sizes, strict=True)]
    graph = helper.make_graph(net.nodes, "block", infos[:1], infos[1:], net.consts)
    opset = 17 if block.decomposed else 20
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    onnx.checker.check_model(model)
    return model


def samples(block: Block, count: int) -> np.ndarray:
    """Return inputs with a leading sample axis."""
    rng = np.random.default_rng(9)
    return rng.normal(0, 1, (count, block.batch, block.length, block.width)).astype(np.float32)


def save(block: Block, folder: Path) -> Path:
    """Write the float model."""
    path = folder / "float.onnx"
    onnx.save(build(block), path)
    return path


def quantized(block: Block, folder: Path, *, unsigned: bool, calibration: int = 8) -> Path:
    """Write the model quantised to QDQ by onnxruntime."""
    tool = require_module("onnxruntime.quantization")

    class Reader(tool.CalibrationDataReader):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            self.left: Iterator[np.ndarray] = iter(samples(block, calibration))

        def get_next(self) -> dict[str, np.ndarray] | None:
            array = next(self.left, None)
            return None if array is None else {"x": array}

    kind = tool.QuantType.QUInt8 if unsigned else tool.QuantType.QInt8
    path = folder / "qdq.onnx"
    tool.quantize_static(
        save(block, folder), path, Reader(), quant_format=tool.QuantFormat.QDQ, per_channel=not unsigned,
        activation_type=kind, weight_type=tool.QuantType.QInt8,
    )  # fmt: skip
    return path


def answers(path: Path, inputs: np.ndarray) -> np.ndarray:
    """Return what onnxruntime's integer kernels give for each sample."""
    ort = require_module("onnxruntime")
    options = ort.SessionOptions()
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    if any(i.data_type == onnx.TensorProto.UINT8 for i in onnx.load(path).graph.initializer):
        options.add_session_config_entry("session.x64quantprecision", "1")  # no sums of two products in 16 bits
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return np.stack([session.run(None, {"x": x})[0] for x in inputs])
