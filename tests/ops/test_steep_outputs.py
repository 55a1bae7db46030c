"""Layers of TensorFlow Lite of which some outputs have a factor of 1/2 or more: float32 scales, or two layers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from glowc.board import load_board
from glowc.graph.graph import Graph, Node
from glowc.graph.types import DType, QuantParams, TensorType
from glowc.kernels.base import UnfitPlan
from glowc.lower.lowering import lower_graph
from glowc.ops.interp import run_graph
from glowc.program.interp import run_program
from glowc.program.ir import Program

CPUS = ("mps2-an385", "mps2-an386", "mps3-an547", "linux-aarch64")
KINDS = ("conv", "depthwise", "two per channel", "fully connected")


def layer(kind: str, scales: np.ndarray) -> Graph:
    """One layer with an output scale of 1; `scales` are those of its outputs' weights."""
    rng, n = np.random.default_rng(len(kind)), scales.size
    channels = {"conv": 6, "depthwise": n, "two per channel": n // 2}.get(kind, 24)
    if kind == "fully connected":
        shapes, op, attrs = ((3, channels), (n, channels), (3, n)), "FullyConnected", {}
    else:
        group = 1 if kind == "conv" else channels
        shapes, op = ((1, 5, 6, channels), (n, 3, 3, channels // group), (1, 5, 6, n)), "Conv"
        attrs = {"pads": (1, 1, 1, 1), "strides": (1, 1), "dilations": (1, 1), "group": group, "layout": "nhwc",
                 "kernel_shape": (3, 3)}  # fmt: skip
    per_channel = QuantParams(tuple(float(s) for s in scales), (0,) * n, axis=0)
    types = {
        "x": TensorType(shapes[0], DType.S8, QuantParams((1.0,), (-3,))),
        "w": TensorType(shapes[1], DType.S8, per_channel), "b": TensorType((n,), DType.S32),
        "y": TensorType(shapes[2], DType.S8, QuantParams((1.0,), (5,))),
    }  # fmt: skip
    consts = {
        "w": rng.integers(-8, 9, shapes[1]).astype(np.int8),
        "b": rng.integers(-60, 60, n).astype(np.int32),
    }
    node = Node("layer", op, ("x", "w", "b"), ("y",), {**attrs, "rounding": "tflite"})
    return Graph("net", ("x",), ("y",), (node,), types, consts)


def factors(count: int, steep: int) -> np.ndarray:
    """Factors of which `steep` are 1/2 and more, the first just so; the largest other is just below."""
    usual = np.linspace(0.004, (2**31 - 1) / 2**32, count)
    usual[:: count // steep][:steep] = np.linspace(0.5, 3.7, steep)
    return usual


def lowered(graph: Graph, board: str) -> Program:
    return lower_graph(graph, load_board(board).cpu)


@pytest.mark.parametrize("steep", [0, 1, 4, 5])
@pytest.mark.parametrize("kind", KINDS)
def test_program_gives_what_the_graph_does(kind: str, steep: int) -> None:
    scales = factors(8, steep) if steep else np.linspace(0.004, 0.45, 8)
    graph = layer(kind, scales)
    x = np.random.default_rng(1).integers(-128, 128, graph.types["x"].shape).astype(np.int8)
    want = run_graph(graph, {"x": x})["y"]
    program = lowered(graph, "mps2-an385")
    assert sum(i.kernel == "scatter" for i in program.instrs) == int(0 < steep <= 4)
    assert np.array_equal(run_program(program, {"x": x})["y"], want)


@pytest.mark.parametrize("board", CPUS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_kernel_runs_the_definition_under_another_name(kind: str, board: str) -> None:
    for steep in (1, 8):
        program = lowered(layer(kind, factors(16, steep)), board)
        assert not any(isinstance(i.plan, UnfitPlan) for i in program.instrs)


@pytest.mark.parametrize("kind", KINDS)
def test_most_outputs_are_steep(kind: str) -> None:
    scales = np.array([0.731, 0.004, 1.27, 0.911, 2.13, 0.0061, 0.577, 3.79])
    graph = layer(kind, scales)
    x = np.random.default_rng(2).integers(-128, 128, graph.types["x"].shape).astype(np.int8)
    program = lowered(graph, "mps2-an386")
    kernels = [i.kernel for i in program.instrs]
    assert any(kernel.endswith("_s8q31") for kernel in kernels)  # the two others
    assert any(kernel.endswith("_s8") for kernel in kernels)
    assert np.array_equal(run_program(program, {"x": x})["y"], run_graph(graph, {"x": x})["y"])


@pytest.mark.parametrize(("factor", "kernel"), [(0.7, "conv_s8"), (0.5, "conv_s8q31")])
def test_layer_with_one_factor_stays_whole(factor: float, kernel: str) -> None:
    graph = layer("conv", np.linspace(0.1, 0.2, 8))
    one = replace(graph.types["w"], quant=QuantParams((factor,), (0,)))
    program = lowered(replace(graph, types={**graph.types, "w": one}), "mps2-an386")
    assert [i.kernel for i in program.instrs] == [kernel]
