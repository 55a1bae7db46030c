"""The quantiser takes an If that constants or sizes decide, and says where it cannot."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from glowc.quant import QuantizeOptions, quantize_model
from tests.unit.quantize_nets import Arrays, model
from tests.unit.test_quantize_model import run

make = helper.make_node
FLOAT_EDGE = QuantizeOptions(float_edge=True)


def branch(name: str, *nodes: onnx.NodeProto, **consts: np.ndarray) -> onnx.GraphProto:
    """A branch whose result is `name`."""
    held = [numpy_helper.from_array(array, key) for key, array in consts.items()]
    return helper.make_graph(
        list(nodes), name, [], [helper.make_tensor_value_info(name, TensorProto.FLOAT, None)], held
    )


def net(then: onnx.GraphProto, other: onnx.GraphProto, *before: onnx.NodeProto) -> onnx.ModelProto:
    """MatMul, an If on "c", which `before` computes, and a MatMul."""
    rng = np.random.default_rng(0)
    consts: Arrays = {name: rng.normal(size=(8, 8)).astype(np.float32) / 3 for name in ("w1", "w2")}
    consts |= {"yes": np.array(True), "eight": np.array(8, np.int64), "last": np.array(1, np.int64)}
    nodes = [
        make("MatMul", ["x", "w1"], ["h"]), *before,
        make("If", ["c"], ["r"], name="choice", then_branch=then, else_branch=other),
        make("MatMul", ["r", "w2"], ["y"]),
    ]  # fmt: skip
    return model(nodes, consts, {"x": [4, 8]}, {"y": [4, 8]})


def samples() -> list[Arrays]:
    rng = np.random.default_rng(1)
    return [{"x": rng.normal(size=(4, 8)).astype(np.float32)} for _ in range(8)]


RELU = branch("a", make("Relu", ["h"], ["a"]))
SCALED = branch("b", make("Mul", ["h", "k"], ["m"]), make("Tanh", ["m"], ["b"]), k=np.array(0.5, np.float32))
BY_CONSTANT = [make("Identity", ["yes"], ["c"])]
BY_SIZE = [make("Shape", ["h"], ["s"]), make("Gather", ["s", "last"], ["n"]), make("Equal", ["n", "eight"], ["c"])]


@pytest.mark.parametrize("before", [BY_CONSTANT, BY_SIZE], ids=["constant", "size"])
@pytest.mark.parametrize(("then", "other", "op"), [(RELU, SCALED, "Relu"), (SCALED, RELU, "Tanh")])
def test_the_branch_that_is_taken_is_quantised(
    then: onnx.GraphProto, other: onnx.GraphProto, op: str, before: list[onnx.NodeProto]
) -> None:
    source = net(then, other, *before)
    done = quantize_model(source, samples(), FLOAT_EDGE)
    kinds = {node.op_type for node in done.model.graph.node}
    assert op in kinds
    assert not {"If", "Shape"} & kinds
    wanted, got = run(source, samples()), run(done.model, samples())
    assert np.abs(got - wanted).max() < 0.05 * np.abs(wanted).max()


def test_a_branch_may_hold_another() -> None:
    inner = branch("o", make("If", ["c"], ["o"], then_branch=RELU, else_branch=SCALED))
    done = quantize_model(net(inner, SCALED, *BY_SIZE), samples(), FLOAT_EDGE)
    assert [node.op_type for node in done.model.graph.node if "Linear" not in node.op_type] == [
        "Gemm",
        "Relu",
        "Gemm",
    ]


@pytest.mark.parametrize(
    "number", [make("ReduceMax", ["h"], ["most"], keepdims=0), make("RandomUniform", [], ["most"], shape=[1])],
    ids=["input", "chance"],
)  # fmt: skip
def test_both_branches_are_quantised_where_what_is_computed_decides(number: onnx.NodeProto) -> None:
    before = [
        number, make("Cast", ["most"], ["whole"], to=TensorProto.INT64), make("Equal", ["whole", "eight"], ["c"]),
    ]  # fmt: skip
    source = net(RELU, SCALED, *before)
    done = quantize_model(source, samples(), FLOAT_EDGE)
    assert {"Relu", "Tanh", "Where"} <= {node.op_type for node in done.model.graph.node}
    wanted, got = run(source, samples()), run(done.model, samples())
    assert np.abs(got - wanted).max() < 0.05 * np.abs(wanted).max()
