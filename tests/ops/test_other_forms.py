"""Layers that are lowered in another form: int16 without zero point, dilated steps as columns of an image."""

from __future__ import annotations

import numpy as np
import pytest

from glowc.board import load_board
from glowc.graph.graph import Graph, Node
from glowc.graph.types import DType, QuantParams, TensorType
from glowc.lower.lowering import lower_graph
from glowc.ops.interp import run_graph
from glowc.program.interp import run_program
from glowc.program.ir import Instr


def lowered_as_meant(graph: Graph) -> Instr:
    """Return the only instruction of a graph, whose program gives what the graph means."""
    kind = graph.types["x"].dtype
    x = np.random.default_rng(1).integers(kind.qmin, kind.qmax + 1, graph.types["x"].shape).astype(kind.numpy)
    program = lower_graph(graph, load_board("mps2-an386").cpu)
    assert np.array_equal(run_program(program, {"x": x})["y"], run_graph(graph, {"x": x})["y"])
    (instr,) = [i for i in program.instrs if not i.is_marker]
    return instr


def layer(op: str, x: TensorType, w: np.ndarray, y: tuple[int, ...], **attrs: object) -> Graph:
    """A layer of int8 weights w[O, ...] between codes of the kind of `x`."""
    count = len(w)
    quant = QuantParams(tuple(np.linspace(0.01, 0.02, count).tolist()), (0,) * count, axis=0)
    types = {
        "x": x, "w": TensorType(w.shape, DType.S8, quant), "b": TensorType((count,), DType.S32),
        "y": TensorType(y, x.dtype, QuantParams((40.0,), (0,))),
    }  # fmt: skip
    consts = {"w": w, "b": np.arange(count, dtype=np.int32)}
    return Graph("net", ("x",), ("y",), (Node("layer", op, ("x", "w", "b"), ("y",), attrs),), types, consts)  # type: ignore[arg-type]


def wide_dense(zero: int, weight: int) -> Graph:
    x = TensorType((2, 64), DType.S16, QuantParams((1.0,), (zero,)))
    return layer("FullyConnected", x, np.full((4, 64), weight, np.int8), (2, 4))


@pytest.mark.parametrize(("zero", "weight", "left"), [(-700, 9, 0), (0, 9, 0), (25_000, 127, 0), (-31_000, 127, 0)])
def test_zero_point_of_int16_codes_goes_into_the_biases(zero: int, weight: int, left: int) -> None:
    assert lowered_as_meant(wide_dense(zero, weight)).int_("in_zp") == left


@pytest.mark.parametrize(("inputs", "left"), [(265, 0), (266, -31_000)])
def test_zero_point_stays_where_sums_might_leave_32_bits(inputs: int, left: int) -> None:
    assert 265 * 127 * (31_000 + (1 << 15)) < 1 << 31 < 266 * 127 * (31_000 + (1 << 15))
    x = TensorType((1, inputs), DType.S16, QuantParams((1.0,), (-31_000,)))
    graph = layer("FullyConnected", x, np.full((4, inputs), 127, np.int8), (1, 4))
    assert lowered_as_meant(graph).int_("in_zp") == left


def steps(length: int, dilation: int, pads: tuple[int, int], k: int = 3) -> Graph:
    out = length + sum(pads) - dilation * (k - 1)
    x = TensorType((1, 1, length, 5), DType.S8, QuantParams((1.0,), (-3,)), "nhwc")
    w = np.random.default_rng(2).integers(-9, 10, (6, 1, k, 5)).astype(np.int8)
    return layer(
        "Conv", x, w, (1, 1, out, 6), pads=(0, pads[0], 0, pads[1]), strides=(1, 1), dilations=(1, dilation), group=1,
        kernel_shape=(1, k), layout="nhwc",
    )  # fmt: skip


@pytest.mark.parametrize("pads", [(0, 0), (4, 4), (8, 0)])
def test_dilated_steps_are_columns_of_an_image(pads: tuple[int, int]) -> None:
    instr = lowered_as_meant(steps(24, 4, pads))
    assert [instr.int_(key) for key in ("dil_h", "dil_w", "in_w", "in_h", "k_h", "k_w")] == [1, 1, 4, 6, 3, 1]


@pytest.mark.parametrize(("length", "pads"), [(25, (4, 4)), (24, (3, 5))])
def test_steps_that_do_not_fill_an_image_stay(length: int, pads: tuple[int, int]) -> None:
    assert lowered_as_meant(steps(length, 4, pads)).int_("dil_w") == 4


@pytest.mark.parametrize(("scale", "kernel"), [(1.3137, "matmul_s8"), (1.0, "matmul_s8q31"), (0.013, "matmul_s8q31")])
def test_product_with_a_factor_of_half_and_more(scale: float, kernel: str) -> None:
    shapes = {"x": (3, 8), "b": (8, 5), "y": (3, 5)}
    zeros = {"x": (-7, scale), "b": (4, 0.5), "y": (11, 1.0)}
    types = {n: TensorType(shapes[n], DType.S8, QuantParams((zeros[n][1],), (zeros[n][0],))) for n in shapes}
    b = np.random.default_rng(3).integers(-9, 10, (8, 5)).astype(np.int8)
    graph = Graph("net", ("x",), ("y",), (Node("layer", "FixedMatMul", ("x", "b"), ("y",)),), types, {"b": b})
    assert lowered_as_meant(graph).kernel == kernel
