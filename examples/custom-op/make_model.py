"""Writes model.onnx (a net with both operators), input.npz and output.npz: samples and what numpy computes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from my_ops import energy, soft_threshold
from onnx import TensorProto, helper, numpy_helper

HERE = Path(__file__).resolve().parent


def main() -> None:
    """Make the files beside this script."""
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((4, 3)).astype(np.float32)
    nodes = [
        helper.make_node("SoftThreshold", ["x"], ["quiet"], name="threshold", domain="my.dsp", threshold=0.25),
        helper.make_node("FrameEnergy", ["quiet"], ["energy"], name="energy", domain="my.dsp"),
        helper.make_node("MatMul", ["energy", "weights"], ["y"], name="classify"),
    ]
    graph = helper.make_graph(
        nodes,
        "custom_op",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3])],
        [numpy_helper.from_array(weights, "weights")],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("my.dsp", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), HERE / "model.onnx")
    x = rng.standard_normal((5, 1, 4, 16)).astype(np.float32)
    np.savez(HERE / "input.npz", x=x)
    np.savez(HERE / "output.npz", y=energy(soft_threshold(x, 0.25)) @ weights)


if __name__ == "__main__":
    main()
