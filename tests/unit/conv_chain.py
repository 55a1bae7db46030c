"""A model of convolutions, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import onnx.helper as oh
from onnx import TensorProto


def conv_chain(
    path: Path, hw: tuple[int, int], channels: Sequence[int], *, pooled: bool = False, kernel: int = 3,
    depthwise: bool = False, classes: int = 0,
) -> Path:  # fmt: skip
    """Write convolutions from each number of channels to the next one, int8 in QDQ form; `pooled`: halved each time.

    `depthwise`: as many groups as channels. Kernels are 3x3, or of another odd size. `classes`: outputs of a Gemm of
    the means over all pixels.
    """
    rng, nodes, value = np.random.default_rng(0), [], "x_q"
    consts = {"s": np.float32(0.02), "ws": np.float32(0.01), "bs": np.float32(0.0002)}
    most = 90 if depthwise or kernel == 1 else 12  # of a weight, for codes all over
    consts |= {"z": np.int8(-128), "z8": np.int8(0), "z32": np.int32(0)}
    for n, (c, out_c) in enumerate(pairwise(channels)):
        consts[f"w{n}_q"] = rng.integers(-most, most + 1, (out_c, 1 if depthwise else c, kernel, kernel), dtype=np.int8)
        consts[f"b{n}_q"] = rng.integers(-500, 500, out_c, dtype=np.int32)
        nodes += [
            oh.make_node("DequantizeLinear", [value, "s", "z"], [f"x{n}"]),
            oh.make_node("DequantizeLinear", [f"w{n}_q", "ws", "z8"], [f"w{n}"]),
            oh.make_node("DequantizeLinear", [f"b{n}_q", "bs", "z32"], [f"b{n}"]),
            oh.make_node(
                "Conv",
                [f"x{n}", f"w{n}", f"b{n}"],
                [f"c{n}"],
                kernel_shape=(kernel, kernel),
                pads=4 * (kernel // 2,),
                group=c if depthwise else 1,
            ),
        ]
        if pooled:
            nodes.append(oh.make_node("MaxPool", [f"c{n}"], [f"p{n}"], kernel_shape=(2, 2), strides=(2, 2)))
        value = f"y{n}_q"
        nodes.append(oh.make_node("QuantizeLinear", [f"p{n}" if pooled else f"c{n}", "s", "z"], [value]))
    if classes:
        consts |= {"wg_q": rng.integers(-most, most + 1, (classes, channels[-1]), dtype=np.int8)}
        consts |= {"bg_q": rng.integers(-500, 500, classes, dtype=np.int32)}
        nodes += [
            oh.make_node("DequantizeLinear", [value, "s", "z"], ["last"]),
            oh.make_node("GlobalAveragePool", ["last"], ["mean"]),
            oh.make_node("QuantizeLinear", ["mean", "s", "z"], ["mean_q"]),
            oh.make_node("DequantizeLinear", ["mean_q", "s", "z"], ["mean_r"]),
            oh.make_node("Flatten", ["mean_r"], ["flat"]),
            oh.make_node("DequantizeLinear", ["wg_q", "ws", "z8"], ["wg"]),
            oh.make_node("DequantizeLinear", ["bg_q", "bs", "z32"], ["bg"]),
            oh.make_node("Gemm", ["flat", "wg", "bg"], ["scores"], transB=1),
            oh.make_node("QuantizeLinear", ["scores", "s", "z"], ["scores_q"]),
        ]
        value = "scores_q"
    graph = oh.make_graph(
        nodes,
        "chain",
        [oh.make_tensor_value_info("x_q", TensorProto.INT8, (1, channels[0], *hw))],
        [oh.make_tensor_value_info(value, TensorProto.INT8, None)],
        [onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in consts.items()],
    )
    onnx.save(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 17)], ir_version=9), path)
    return path
