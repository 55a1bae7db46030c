"""Small float networks for the tests of the quantiser."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper, numpy_helper

Arrays = dict[str, np.ndarray]
F32 = onnx.TensorProto.FLOAT


def model(
    nodes: list[onnx.NodeProto], consts: Arrays, inputs: dict[str, list[int]], outputs: dict[str, list[int]]
) -> onnx.ModelProto:
    """An ONNX model of opset 17 with float inputs and outputs."""
    graph = helper.make_graph(
        nodes, "net",
        [helper.make_tensor_value_info(n, F32, s) for n, s in inputs.items()],
        [helper.make_tensor_value_info(n, F32, s) for n, s in outputs.items()],
        [numpy_helper.from_array(a, n) for n, a in consts.items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def conv_net(seed: int = 0) -> onnx.ModelProto:
    """Conv, BatchNormalization, Relu, depthwise Conv, Relu6, a residual Add, Concat, poolings, Gemm, Softmax."""
    rng = np.random.default_rng(seed)

    def f(*shape: int) -> np.ndarray:
        return (rng.normal(size=shape) / np.sqrt(np.prod(shape[1:]) + 1)).astype(np.float32)

    consts = {
        "w1": f(8, 3, 3, 3), "g": 1 + f(8), "b": f(8), "m": f(8), "v": 1 + np.abs(f(8)), "w2": f(8, 1, 3, 3),
        "b2": f(8), "six": np.float32(6), "zero": np.float32(0), "w3": f(8, 8, 1, 1), "w4": f(16, 5), "b4": f(5),
    }  # fmt: skip
    consts["w2"] = consts["w2"] * np.float32(2) ** np.arange(-4, 4, dtype=np.float32).reshape(8, 1, 1, 1)
    make = helper.make_node
    nodes = [
        make("Conv", ["x", "w1"], ["c1"], name="first", pads=[1, 1, 1, 1], strides=[2, 2]),
        make("BatchNormalization", ["c1", "g", "b", "m", "v"], ["n1"], name="norm"),
        make("Relu", ["n1"], ["r1"], name="relu"),
        make("Conv", ["r1", "w2", "b2"], ["c2"], name="depthwise", pads=[1, 1, 1, 1], group=8),
        make("Clip", ["c2", "zero", "six"], ["r2"], name="clip"),
        make("Conv", ["r2", "w3"], ["c3"], name="pointwise"),
        make("Add", ["c3", "r1"], ["sum"], name="add"),
        make("Concat", ["sum", "r1"], ["both"], name="concat", axis=1),
        make("MaxPool", ["both"], ["p1"], name="maxpool", kernel_shape=[2, 2], strides=[2, 2]),
        make("GlobalAveragePool", ["p1"], ["p2"], name="mean"),
        make("Flatten", ["p2"], ["flat"], name="flatten"),
        make("MatMul", ["flat", "w4"], ["mm"], name="matmul"),
        make("Add", ["mm", "b4"], ["logits"], name="bias"),
        make("Softmax", ["logits"], ["y"], name="softmax", axis=1),
    ]
    return model(nodes, consts, {"x": [1, 3, 12, 12]}, {"y": [1, 5]})


def branch_net() -> onnx.ModelProto:
    """Two convolutions and the shortcut beside them, which is the last in the file, and their sum."""
    rng = np.random.default_rng(3)
    shapes = {"w1": (16, 3, 3, 3), "w2": (16, 16, 3, 3), "w3": (16, 3, 1, 1)}
    consts = {n: (rng.normal(size=s) / np.sqrt(np.prod(s[1:]))).astype(np.float32) for n, s in shapes.items()}
    make = helper.make_node
    nodes = [
        make("Conv", ["x", "w1"], ["a"], name="long1", pads=[1, 1, 1, 1], strides=[2, 2]),
        make("Relu", ["a"], ["b"], name="relu"),
        make("Conv", ["b", "w2"], ["c"], name="long2", pads=[1, 1, 1, 1]),
        make("Conv", ["x", "w3"], ["d"], name="short", strides=[2, 2]),
        make("Add", ["c", "d"], ["y"], name="sum"),
    ]
    return model(nodes, consts, {"x": [1, 3, 12, 12]}, {"y": [1, 16, 6, 6]})


def images(count: int = 8, seed: int = 1) -> list[Arrays]:
    """Samples of `conv_net`."""
    rng = np.random.default_rng(seed)
    return [{"x": rng.normal(size=(1, 3, 12, 12)).astype(np.float32)} for _ in range(count)]


def dense_net() -> onnx.ModelProto:
    """One Gemm from 4 to 3 values."""
    rng = np.random.default_rng(2)
    consts = {"w": rng.normal(size=(3, 4)).astype(np.float32), "b": rng.normal(size=3).astype(np.float32)}
    node = helper.make_node("Gemm", ["x", "w", "b"], ["y"], name="dense", transB=1)
    return model([node], consts, {"x": [1, 4]}, {"y": [1, 3]})


def rows(*values: list[float]) -> list[Arrays]:
    """Samples of `dense_net`."""
    return [{"x": np.array([v], np.float32)} for v in values]


def uneven_net() -> onnx.ModelProto:
    """Four fully connected layers; the second has one output a thousand times larger than the others."""
    rng = np.random.default_rng(7)
    consts, nodes, before = {}, [], "x"
    for i, (rows, columns) in enumerate(((8, 6), (8, 8), (8, 8), (4, 8))):
        consts[f"w{i}"] = rng.normal(size=(rows, columns)).astype(np.float32)
        nodes.append(helper.make_node("Gemm", [before, f"w{i}"], [f"h{i}"], name=f"layer{i}", transB=1))
        nodes.append(helper.make_node("Relu", [f"h{i}"], [f"r{i}"], name=f"relu{i}"))
        before = f"r{i}"
    consts["w1"][0] = np.abs(consts["w1"][0]) * 1000
    consts["w2"][:, 0] /= 1000
    nodes[-1].output[0] = "y"
    return model(nodes, consts, {"x": [1, 6]}, {"y": [1, 4]})
