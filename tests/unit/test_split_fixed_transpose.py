"""split-fixed-transpose: the codes of a transposed convolution stay what they were, whatever its geometry."""

import numpy as np
import pytest

from glowc.frontend.tflite.importer import import_tflite
from glowc.graph.graph import Graph
from glowc.ops.interp import run_graph
from glowc.passes.base import PassCtx
from glowc.passes.layout.split_fixed_transpose import SplitFixedTranspose
from tests.tflite.writer import Build, Tensor, quant

VALID, SAME = 1, 0


def graph_of(h: int, w: int, k: tuple[int, int], stride: tuple[int, int], padding: int, less: int = 0) -> Graph:
    """Return a layer of two channels, three results; `less`: rows and columns that its result does not have."""
    rng, build = np.random.default_rng(h + w), Build()
    whole = [max(k_ - s, 0) * padding + n * s - less for n, k_, s in zip((h, w), k, stride, strict=True)]
    weights = rng.integers(-127, 128, (3, *k, 2)).astype(np.int8)
    inputs = [
        build.const(np.array((1, *whole, 3), np.int32)), build.const(weights, quant(0.01)),
        build.input((1, h, w, 2), "int16", quant(0.001)), build.const(np.array([5, -900, 0], np.int64)),
    ]  # fmt: skip
    out = Tensor((1, *whole, 3), "int16", quant(0.003))
    build.op("TRANSPOSE_CONV", inputs, out, padding=padding, strideH=stride[0], strideW=stride[1])
    return import_tflite(build.bytes(), "model", "model")


@pytest.mark.parametrize(
    ("h", "w", "k", "stride", "padding", "less"),
    [
        (3, 4, (3, 3), (2, 2), SAME, 0), (3, 4, (3, 3), (2, 2), VALID, 0), (1, 5, (3, 4), (1, 2), VALID, 0),
        (4, 1, (2, 3), (2, 1), SAME, 0), (2, 3, (2, 1), (3, 2), VALID, 0), (5, 2, (4, 4), (2, 3), SAME, 1),
        (1, 1, (3, 2), (2, 2), SAME, 0),
    ],
)  # fmt: skip
def test_phases_have_the_codes_of_the_whole(
    h: int, w: int, k: tuple[int, int], stride: tuple[int, int], padding: int, less: int
) -> None:
    graph = graph_of(h, w, k, stride, padding, less)
    split = SplitFixedTranspose().run(graph, PassCtx())
    assert {node.op for node in split.nodes} <= {"Conv", "Reshape", "Concat", "Slice", "Identity"}
    x = {graph.inputs[-1]: np.random.default_rng(0).integers(-32768, 32768, (1, h, w, 2)).astype(np.int16)}
    x |= {name: np.zeros(4, np.int32) for name in graph.inputs[:-1]}
    before, after = run_graph(graph, x), run_graph(split, x)
    assert all(np.array_equal(before[name], after[name]) for name in graph.outputs)


def test_a_result_that_leaves_inputs_out_stays_whole() -> None:
    graph = graph_of(3, 3, (2, 2), (2, 2), VALID, less=3)
    assert SplitFixedTranspose().run(graph, PassCtx()) is graph
