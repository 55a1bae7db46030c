"""split-groups: grouped convolutions become one convolution per group, with the same bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from glowc.graph.graph import Graph
from tests.unit.quirk_models import RNG, Net, codes, feed, ops, optimised, same_as_onnxruntime

Case = tuple[int, int, int, int]
"""Input channels, output channels, groups, kernel size."""


def grouped(case: Case, *, weights: type = np.int8, **attrs: Any) -> Net:
    """Return DQ -> Conv in groups -> Q on x[1, C, 7, 6], with per-channel scales for int8 weights."""
    channels, out, groups, size = case
    net = Net()
    net.input("x", f"s8[1,{channels},7,6]")
    net.dq("x", 0.03, np.int8(5))
    net.const("w", codes(out, channels // groups, size, size, dtype=weights))
    scale: Any = RNG.uniform(0.5, 1.5, out).astype(np.float32) * np.float32(0.01)
    zero, axis = np.zeros(out, np.int8), dict[str, Any](axis=0)
    if weights is not np.int8:
        scale, zero, axis = np.float32(0.01), weights(119), {}
    net.dq("w", scale, zero, **axis)
    net.const("b", RNG.integers(-900, 900, out).astype(np.int32))
    net.dq("b", np.float32(0.03) * scale, np.zeros_like(zero, np.int32), **axis)
    net.op("Conv", "x_r w_r b_r", "c", group=groups, **attrs)
    net.q("c", 0.2, np.int8(-9), "y")
    return net


def groups_of(graph: Graph) -> list[int]:
    return [node.int_("group") for node in graph.nodes if node.op == "Conv"]


@pytest.mark.parametrize("case", [(16, 24, 2, 3), (12, 6, 3, 2), (32, 32, 4, 1), (8, 16, 4, 3)])
def test_groups_give_the_bytes_of_onnxruntime(case: Case) -> None:
    net = grouped(case, pads=[1, 0, 0, 1], strides=[2, 1])
    graph = same_as_onnxruntime(net.build({"y": "s8"}), feed(f"1,{case[0]},7,6"), in_c=True)
    assert groups_of(graph) == [1] * case[2]
    assert ops(graph).count("Slice") == case[2]


def test_weights_with_a_zero_point_are_split_too() -> None:
    net = grouped((16, 8, 2, 3), weights=np.uint8)
    graph = same_as_onnxruntime(net.build({"y": "s8"}), feed("1,16,7,6"), in_c=True)
    assert groups_of(graph) == [1, 1]


@pytest.mark.parametrize(
    "case", [(8, 8, 8, 3), (8, 16, 8, 3), (8, 8, 4, 1), (128, 128, 64, 2)], ids=["depthwise", "multiplier", "2", "64"]
)
def test_depthwise_layers_small_windows_and_many_groups_stay(case: Case) -> None:
    assert groups_of(optimised(grouped(case).build({"y": "s8"}))) == [case[2]]


def test_layer_without_groups_stays() -> None:
    assert ops(optimised(grouped((8, 8, 1, 3)).build({"y": "s8"}))).count("Conv") == 1


def test_float_layer_in_groups() -> None:
    net = Net()
    net.input("x", "f32[2,12,7,6]")
    net.const("w", RNG.normal(0, 1, (9, 4, 3, 3)).astype(np.float32))
    net.op("Conv", "x w", "y", group=3)
    x = {"x": RNG.normal(0, 1, (2, 12, 7, 6)).astype(np.float32)}
    graph = same_as_onnxruntime(net.build({"y": "f32"}), x, tolerance=1e-5, in_c=True)
    assert groups_of(graph) == [1, 1, 1]
