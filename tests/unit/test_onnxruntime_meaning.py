"""What onnxruntime computes where ONNX's text leaves room, or where models that it takes used to be refused."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.quirk_models import Net, codes, feed, ops, same_as_onnxruntime

S8 = np.int8
RNG = np.random.default_rng(23)


@pytest.mark.parametrize("part", [0, 1])
def test_part_of_a_split_between_dequantise_and_quantise_that_nobody_reads(part: int) -> None:
    net = Net()
    net.input("x", "s8[1,11,7]")
    net.dq("x", 0.25, S8(-3))
    net.const("lengths", np.asarray([8, 3]))
    net.op("Split", "x_r lengths", "a b", axis=1)
    net.q("ab"[part], 0.25, S8(-3), "y")
    graph = same_as_onnxruntime(net.build({"y": "s8"}), feed("1,11,7"))
    assert ops(graph) == ["Split"]


CUT = [
    ("AveragePool", [1, 1], [3, 3]), ("AveragePool", [2, 2], [6, 5]), ("LpPool", [2, 1], [5, 7]),
    ("Conv", [1, 1], [3, 4]), ("Conv", [2, 2], [7, 6]), ("Conv", [3, 3], [2, 2]),
]  # fmt: skip


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize(("op", "kernel", "strides"), CUT)
def test_same_padding_of_windows_with_gaps_reads_from_inside(
    op: str, kernel: list[int], strides: list[int], mode: str
) -> None:
    """The padding is negative there."""
    for height, width in ((12, 13), (5, 6)):
        net = Net(20)  # onnxruntime's AveragePool of older opsets refuses it
        net.input("x", f"f32[1,2,{height},{width}]")
        if op == "Conv":
            net.const("w", RNG.standard_normal((3, 2, *kernel)).astype(np.float32))
        inputs = "x w" if op == "Conv" else "x"
        net.op(op, inputs, "y", kernel_shape=kernel, strides=strides, auto_pad=mode)
        x = RNG.standard_normal((1, 2, height, width)).astype(np.float32)
        same_as_onnxruntime(net.build({"y": "f32"}), {"x": x}, tolerance=1e-6)


@pytest.mark.parametrize("op", ["AveragePool", "MaxPool"])
@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
def test_same_padding_of_quantised_windows_with_gaps_reads_from_inside(op: str, mode: str) -> None:
    for size, kernel, stride in ((5, 2, 6), (6, 2, 6), (12, 1, 3), (13, 2, 5)):
        net = Net()
        net.input("x", f"s8[1,2,{size},{size}]")
        net.dq("x", 0.05, S8(3))
        net.op(op, "x_r", "p", kernel_shape=[kernel, kernel], strides=[stride, stride], auto_pad=mode)
        net.q("p", 0.05, S8(3), "y")
        same_as_onnxruntime(net.build({"y": "s8"}), {"x": codes(1, 2, size, size)})
