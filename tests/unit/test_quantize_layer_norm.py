"""The quantiser takes the mean, the variance and the division of exporters before opset 17 for one normalisation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import helper

from glowc.frontend import import_model
from glowc.ops.interp import run_graph
from glowc.passes.pipeline import run_pipeline
from glowc.quant import QuantizeOptions, quantize_model
from tests.unit.quantize_nets import Arrays, model

make = helper.make_node
SHAPE = [1, 6, 16]
FLOAT_EDGE = QuantizeOptions(float_edge=True)
ROOTS = {
    "division": [make("Sqrt", ["e"], ["r"]), make("Div", ["d", "r"], ["n"])],
    "reciprocal": [make("Sqrt", ["e"], ["r"]), make("Reciprocal", ["r"], ["i"]), make("Mul", ["d", "i"], ["n"])],
    "one over": [make("Sqrt", ["e"], ["r"]), make("Div", ["one", "r"], ["i"]), make("Mul", ["i", "d"], ["n"])],
}
SQUARES = {"pow": make("Pow", ["d", "two"], ["q"]), "mul": make("Mul", ["d", "d"], ["q"])}


def norm_net(
    root: str = "division", square: str = "pow", *, axes: Sequence[int] = (-1,), opset: int = 13, gain: str = "g",
    epsilon: tuple[int, ...] = (), keep: int = 1,
) -> onnx.ModelProto:  # fmt: skip
    """MatMul, a normalisation in parts, and a MatMul behind it."""
    rng = np.random.default_rng(0)
    consts: Arrays = {
        "w1": rng.normal(size=(16, 16)).astype(np.float32) / 4, "w2": rng.normal(size=(16, 5)).astype(np.float32) / 4,
        "g": rng.uniform(0.5, 2, 16).astype(np.float32), "b": rng.normal(size=16).astype(np.float32),
        "by_row": rng.uniform(0.5, 2, (6, 1)).astype(np.float32), "two": np.float32(2), "one": np.float32(1),
        "eps": np.full(epsilon, 1e-5, np.float32), "axes": np.array(axes, np.int64),
    }  # fmt: skip

    def mean(source: str, to: str) -> onnx.NodeProto:
        if opset >= 18:
            return make("ReduceMean", [source, "axes"], [to], keepdims=keep)
        return make("ReduceMean", [source], [to], axes=list(axes), keepdims=keep)

    nodes = [
        make("MatMul", ["x", "w1"], ["h"]), mean("h", "m"), make("Sub", ["h", "m"], ["d"]), SQUARES[square],
        mean("q", "v"), make("Add", ["v", "eps"], ["e"]), *ROOTS[root], make("Mul", ["n", gain], ["s"]),
        make("Add", ["s", "b"], ["t"]), make("MatMul", ["t", "w2"], ["y"]),
    ]  # fmt: skip
    net = model(nodes, consts, {"x": SHAPE}, {"y": [1, 6, 5]})
    net.opset_import[0].version = opset
    return net


def samples() -> list[Arrays]:
    rng = np.random.default_rng(1)
    return [{"x": rng.normal(size=SHAPE).astype(np.float32)} for _ in range(8)]


def operators(net: onnx.ModelProto) -> Counter[str]:
    return Counter(node.op_type for node in net.graph.node if "Linear" not in node.op_type)


@pytest.mark.parametrize("opset", [11, 13, 17, 18, 21])
@pytest.mark.parametrize("square", SQUARES)
@pytest.mark.parametrize("root", ROOTS)
def test_parts_become_one_node_with_its_scale_and_bias(root: str, square: str, opset: int) -> None:
    done = quantize_model(norm_net(root, square, opset=opset), samples(), FLOAT_EDGE)
    onnx.checker.check_model(done.model, full_check=True)
    assert operators(done.model) == {"LayerNormalization": 1, "MatMul": 2}
    assert done.error is not None
    assert done.error < 0.02


def test_the_compiled_layer_computes_on_codes() -> None:
    done = quantize_model(norm_net(), samples())
    graph = run_pipeline(import_model(done.model))
    assert not any(graph.types[name].dtype.is_float for node in graph.nodes for name in node.outputs)


def test_axes_may_be_several_or_counted_from_the_first() -> None:
    for axes in ((2,), (1, 2), (-2, -1)):
        net = norm_net(axes=axes, gain="one")
        net.graph.initializer.remove(next(i for i in net.graph.initializer if i.name == "b"))
        net.graph.initializer.append(onnx.numpy_helper.from_array(np.float32(0.5), "b"))
        done = quantize_model(net, samples(), FLOAT_EDGE)
        assert operators(done.model)["LayerNormalization"] == 1
        assert operators(done.model)["Sqrt"] == 0


@pytest.mark.parametrize(
    "net",
    [norm_net(axes=(1,)), norm_net(epsilon=(6, 1)), norm_net(axes=(0, 2))],
    ids=["over rows", "an epsilon per row", "axes that are not the last"],
)
def test_other_chains_stay_as_they_are(net: onnx.ModelProto) -> None:
    done = quantize_model(net, samples(), FLOAT_EDGE)
    assert operators(done.model)["LayerNormalization"] == 0
    assert operators(done.model)["Sqrt"] == 1


def test_a_factor_per_row_is_not_the_scale() -> None:
    found = operators(quantize_model(norm_net(gain="by_row"), samples(), FLOAT_EDGE).model)
    assert (found["LayerNormalization"], found["Mul"], found["Add"]) == (1, 1, 1)


def test_a_difference_that_others_read_stays() -> None:
    net = norm_net()
    net.graph.node.append(make("MatMul", ["d", "w2"], ["z"]))
    net.graph.output.append(helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, [1, 6, 5]))
    done = quantize_model(net, samples(), FLOAT_EDGE)
    assert operators(done.model)["Sub"] == operators(done.model)["LayerNormalization"] == 1
    wanted, got = (run_graph(run_pipeline(import_model(m)), samples()[0]) for m in (net, done.model))
    for name, values in wanted.items():
        assert np.abs(got[name] - values).max() < 0.05 * np.abs(values).max()
