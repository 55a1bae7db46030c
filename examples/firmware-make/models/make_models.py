"""Writes the files of this folder: the sine network and test inputs for both networks.

    python models/make_models.py [FOLDER]

sine.onnx needs no training: a hidden layer of relu(x - knot) and the change of slope at each knot draw the sine
as a line with corners, which is what a trained network of this shape finds too. Input and output are int8, as
in firmware. digits.onnx comes from examples/digits, where its training script is.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = Path(__file__).resolve().parent
DIGITS = HERE.parents[1] / "digits"
SAMPLES = 20
KNOTS = 16
X_SCALE, X_ZERO = 2 * np.pi / 255, -128  # 0 .. 2 pi
Y_SCALE, Y_ZERO = 2.2 / 255, 0  # -1.1 .. 1.1


def sine_layers() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return (w1 [K,1], b1 [K], w2 [1,K], b2 [1]): the line through sin(knot) at equally spaced knots."""
    knots = np.linspace(0, 2 * np.pi, KNOTS + 1)
    slopes = np.diff(np.sin(knots)) / np.diff(knots)
    change = np.diff(slopes, prepend=0.0)
    return np.ones((KNOTS, 1)), -knots[:-1], change[None], np.zeros(1)


def sine_model() -> onnx.ModelProto:
    """Return the int8 QDQ model: x -> Gemm, Relu -> Gemm -> y."""
    w1, b1, w2, b2 = sine_layers()
    nodes: list[onnx.NodeProto] = []
    consts: list[onnx.TensorProto] = []

    def const(name: str, array: np.ndarray) -> str:
        consts.append(numpy_helper.from_array(array, name))
        return name

    def scaled(name: str, scale: float, zero: int, dtype: type) -> tuple[str, str]:
        return const(f"{name}_scale", np.asarray(scale, np.float32)), const(f"{name}_zero", np.asarray(zero, dtype))

    def quantise(value: str, scale: float, zero: int, result: str) -> None:
        nodes.append(helper.make_node("QuantizeLinear", [value, *scaled(result, scale, zero, np.int8)], [result]))

    def dequantise(value: str, scale: float, zero: int, dtype: type = np.int8) -> str:
        result = f"{value}_real"
        nodes.append(helper.make_node("DequantizeLinear", [value, *scaled(result, scale, zero, dtype)], [result]))
        return result

    def gemm(name: str, x: str, x_scale: float, weights: np.ndarray, bias: np.ndarray) -> str:
        w_scale = float(np.abs(weights).max()) / 127
        w = const(f"{name}_w", np.rint(weights / w_scale).astype(np.int8))
        b = const(f"{name}_b", np.rint(bias / (x_scale * w_scale)).astype(np.int32))
        inputs = [x, dequantise(w, w_scale, 0), dequantise(b, x_scale * w_scale, 0, np.int32)]
        nodes.append(helper.make_node("Gemm", inputs, [name], name=name, transB=1))
        return name

    hidden = gemm("hidden", dequantise("x", X_SCALE, X_ZERO), X_SCALE, w1, b1)
    nodes.append(helper.make_node("Relu", [hidden], ["active"], name="relu"))
    quantise("active", X_SCALE, X_ZERO, "active_q")
    line = gemm("line", dequantise("active_q", X_SCALE, X_ZERO), X_SCALE, w2, b2)
    quantise(line, Y_SCALE, Y_ZERO, "y")
    graph = helper.make_graph(
        nodes,
        "sine",
        [helper.make_tensor_value_info("x", TensorProto.INT8, [1, 1])],
        [helper.make_tensor_value_info("y", TensorProto.INT8, [1, 1])],
        consts,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sine.onnx").write_bytes(sine_model().SerializeToString())
    x = np.linspace(-128, 127, SAMPLES).round().astype(np.int8).reshape(SAMPLES, 1, 1)
    np.savez(folder / "sine_test.npz", x=x)
    shutil.copyfile(DIGITS / "digits.onnx", folder / "digits.onnx")
    with np.load(DIGITS / "digits_test.npz") as data:
        np.savez(folder / "digits_test.npz", image=data["image"][:SAMPLES])


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
