"""Decoders of exported networks: transposed convolutions between quantised layers run as integer convolutions.

onnxruntime computes them in float, so that near-ties may round the other way: 14 of 614,400 codes differ by one step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from glowc.board import load_cpu
from glowc.lower.lowering import lower_graph
from glowc.ops.interp import run_graph
from glowc.program.interp import run_program
from tests.unit.quirk_models import Net, codes, onnxruntime_outputs, optimised, same_as_onnxruntime

S8, U8 = np.int8, np.uint8
RNG = np.random.default_rng(41)

WINDOWS: dict[str, dict[str, Any]] = {
    "upsampling by 2": {"kernel_shape": [2, 2], "strides": [2, 2]},
    "generator": {"kernel_shape": [4, 4], "strides": [2, 2], "pads": [1, 1, 1, 1]},
    "first layer of a generator": {"kernel_shape": [4, 4]},
    "output padding": {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]},
    "odd result": {"kernel_shape": [3, 3], "strides": [2, 2]},
    "odd result, padded": {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
    "rows and columns differ": {"kernel_shape": [5, 2], "strides": [3, 1], "pads": [0, 1, 2, 0]},
    "columns that nothing reaches": {"kernel_shape": [1, 2], "strides": [2, 3], "output_padding": [1, 1]},
    "stride 1": {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]},
}


def quantised(window: dict[str, Any], kind: type = S8, *, size: tuple[int, ...] = (5, 6), per_channel: bool = True,
              weight_zero: int = 0, clip: str = "", batch: int = 1) -> Net:  # fmt: skip
    """Return DequantizeLinear -> ConvTranspose [-> Relu or Clip] -> QuantizeLinear with 6 -> 4 channels."""
    text, zero = ("s8", S8(-9)) if kind is S8 else ("u8", U8(119))
    net = Net()
    net.input("x", f"{text}[{batch},6,{','.join(map(str, size))}]")
    net.dq("x", 0.031, zero)
    net.const("w", codes(6, 4, *window["kernel_shape"]))
    scale = np.array([0.004, 0.01, 0.007, 0.0031], np.float32) if per_channel else np.float32(0.006)
    points = np.full(4, weight_zero, S8) if per_channel else S8(weight_zero)
    net.dq("w", scale, points, axis=1)
    net.const("b", RNG.integers(-3000, 3000, 4).astype(np.int32))
    net.dq("b", np.float32(0.031) * scale, np.zeros(4, np.int32) if per_channel else np.int32(0), axis=0)
    y = net.op("ConvTranspose", "x_r w_r b_r", "t", **window)
    if clip == "Clip":
        net.const("low", np.float32(0))
        net.const("high", np.float32(6))
        y = net.op("Clip", f"{y} low high", "c")
    elif clip:
        y = net.op(clip, y, "c")
    net.q(y, 0.07, zero, "y")
    return net


def check(net: Net, kind: type, *shape: int) -> None:
    """The codes of onnxruntime but for near-ties, and no float in the graph; lowered instructions give the same."""
    proto, feeds = net.build({"y": "s8" if kind is S8 else "u8"}), {"x": codes(*shape, dtype=kind)}
    graph = optimised(proto)
    (y,), (wanted,) = run_graph(graph, feeds).values(), onnxruntime_outputs(proto, feeds).values()
    assert y.dtype == wanted.dtype
    steps = np.abs(y.astype(np.int64) - wanted)
    assert steps.max() <= 1
    assert (steps > 0).mean() < 0.005
    assert "ConvTranspose" not in {n.op for n in graph.nodes}
    assert not any(graph.types[name].dtype.is_float for n in graph.nodes for name in n.outputs)
    np.testing.assert_array_equal(run_program(lower_graph(graph, load_cpu("cortex-m4")), feeds)["y"], y)


@pytest.mark.parametrize("name", WINDOWS)
def test_transposed_convolution_is_computed_in_integers(name: str) -> None:
    check(quantised(WINDOWS[name]), S8, 1, 6, 5, 6)


@pytest.mark.parametrize("clip", ["Relu", "Clip"])
@pytest.mark.parametrize("kind", [S8, U8])
def test_what_clamps_behind_it_is_fused(kind: type, clip: str) -> None:
    check(quantised(WINDOWS["generator"], kind, clip=clip), kind, 1, 6, 5, 6)


def test_weights_with_a_zero_point_fill_up_with_it() -> None:
    check(quantised(WINDOWS["output padding"], per_channel=False, weight_zero=17), S8, 1, 6, 5, 6)


@pytest.mark.parametrize("window", [{"kernel_shape": [8], "strides": [4]}, {"kernel_shape": [3], "pads": [1, 1]}])
def test_decoder_of_a_signal(window: dict[str, Any]) -> None:
    check(quantised(window, size=(9,)), S8, 1, 6, 9)


def test_batches_stay_apart() -> None:
    check(quantised(WINDOWS["upsampling by 2"], batch=3), S8, 3, 6, 5, 6)


def test_groups_and_dilations_stay_in_float() -> None:
    net = Net()
    net.input("x", "s8[1,6,5,6]")
    net.dq("x", 0.031, S8(-9))
    net.const("w", codes(6, 1, 3, 3))
    net.dq("w", 0.006, S8(0))
    y = net.op("ConvTranspose", "x_r w_r", "t", group=6, strides=[2, 2])
    net.q(net.op("ConvTranspose", f"{net.qdq(y, 0.02, S8(3))} w_r", "u", dilations=[2, 2]), 0.07, S8(0), "y")
    same_as_onnxruntime(net.build({"y": "s8"}), {"x": codes(1, 6, 5, 6)}, in_c=True)
