"""Sizes, depths and expansions beyond the stated limits are refused at once, with the node's name."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from glowc.board import load_board
from glowc.compiler.pipeline import compile_model
from glowc.errors import ModelError
from glowc.frontend import import_model
from tests.unit.onnx_builders import f32, model, node

TALL = {"x": "f32[1,1]"}


def refusal(proto: onnx.ModelProto) -> str:
    with pytest.raises(ModelError) as caught:
        import_model(proto)
    return str(caught.value)


@pytest.mark.parametrize("length", [2**31, 2**40, 2**62])
def test_expand_beyond_the_largest_tensor_names_the_node(length: int) -> None:
    text = refusal(model([node("Expand", "x s", "y", name="grow")], TALL, "y", {"s": [length, 1]}))
    assert 'Expand "grow": the result' in text
    assert "a tensor has at most 2,147,483,647 bytes" in text


def test_tensor_of_the_largest_size_is_imported() -> None:
    graph = import_model(model([node("Expand", "x s", "y")], TALL, "y", {"s": [(2**31 - 4) // 4, 1]}))
    assert graph.types["y"].size_bytes == 2**31 - 4


def test_input_beyond_the_largest_tensor() -> None:
    text = refusal(model([node("Relu", "x", "y")], {"x": "f32[65536,65536]"}, "y"))
    assert 'input "x" f32[65536,65536] is too large' in text


def test_only_the_first_of_several_too_large_results_is_reported() -> None:
    nodes = [node("Expand", "x s", "e", name="grow"), node("Relu", "e", "r"), node("Neg", "r", "y")]
    assert "problems" not in refusal(model(nodes, TALL, "y", {"s": [2**33, 1]}))


@pytest.mark.parametrize("amount", [10**8, 10**9, 2**62])
def test_pad_builds_no_table_of_its_own_size(amount: int) -> None:
    text = refusal(model([node("Pad", "x p", "y", name="wide")], TALL, "y", {"p": [0, amount, 0, 0]}))
    assert 'Pad "wide"' in text


def test_constant_that_would_outgrow_its_inputs_stays_an_operator() -> None:
    nodes = [node("Expand", "one s", "c"), node("ReduceMax", "c", "r", keepdims=0), node("Add", "x r", "y")]
    graph = import_model(model(nodes, TALL, "y", {"one": f32([1.0]), "s": [4096, 8192]}))
    assert max(c.size for c in graph.consts.values()) < 100


def test_constant_that_outgrows_its_inputs_and_has_no_operator_is_refused() -> None:
    nodes = [node("ConstantOfShape", "s", "c", name="fill"), node("Add", "x c", "y")]
    text = refusal(model(nodes, TALL, "y", {"s": [4096, 8192]}))
    assert 'ConstantOfShape "fill": its constant result f32[4096,8192] is too large' in text


def test_product_of_constants_that_outgrows_its_inputs_is_not_computed() -> None:
    consts = {"a": f32(np.ones((1 << 13, 1))), "b": f32(np.ones((1, 1 << 13)))}
    nodes = [node("Mul", "a b", "c"), node("ReduceMax", "c", "r", keepdims=0), node("Add", "x r", "y")]
    graph = import_model(model(nodes, TALL, "y", consts))
    assert max(c.size for c in graph.consts.values()) <= 1 << 13


def function(name: str, *calls: tuple[str, str, str]) -> onnx.FunctionProto:
    """Return a function a -> z of the domain "own" whose nodes are (operator, input, output)."""
    nodes = [
        helper.make_node(op, [read], [made], domain="own" if op.startswith("F") else "") for op, read, made in calls
    ]
    return helper.make_function(
        "own", name, ["a"], ["z"], nodes, [helper.make_opsetid("", 20), helper.make_opsetid("own", 1)]
    )


def calling(*functions: onnx.FunctionProto) -> onnx.ModelProto:
    call = node("F0", "x", "y", domain="own", name="call")
    return model([call], {"x": "f32[1,4]"}, "y", opset=20, domains=["own"], functions=functions)


def test_function_that_calls_itself() -> None:
    text = refusal(calling(function("F0", ("F0", "a", "z"))))
    assert 'own::F0 "call"' in text
    assert "nested over 64 levels deep" in text


def test_functions_that_expand_exponentially() -> None:
    levels = [function(f"F{d}", (f"F{d + 1}", "a", "b"), (f"F{d + 1}", "b", "z")) for d in range(25)]
    text = refusal(calling(*levels, function("F25", ("Relu", "a", "z"))))
    assert "expand to over 50,000 operators" in text


def test_nested_functions_within_the_limits() -> None:
    levels = [function(f"F{d}", (f"F{d + 1}", "a", "z")) for d in range(40)]
    graph = import_model(calling(*levels, function("F40", ("Relu", "a", "z"))))
    assert [n.op for n in graph.nodes] == ["Relu"]


@pytest.mark.parametrize("key", ["strides", "dilations", "kernel_shape", "pads"])
def test_window_that_leaves_int32(key: str) -> None:
    attrs = {"kernel_shape": [1, 1], key: [2**31] * (4 if key == "pads" else 2)}
    text = refusal(model([node("MaxPool", "x", "y", name="pool", **attrs)], {"x": "f32[1,1,4,4]"}, "y"))
    assert 'MaxPool "pool": attribute ' + key in text
    assert "at most 16,777,216 is supported" in text


def chain(count: int) -> onnx.ModelProto:
    names = ["x", *(f"v{i}" for i in range(count))]
    nodes = [node("Add", f"{read} x", made) for read, made in pairwise(names)]
    return model(nodes, {"x": "f32[1,8]"}, names[-1])


def fan(count: int) -> onnx.ModelProto:
    """Return a tensor split into `count` parts, each with a layer of its own, and joined again."""
    parts, made = ([f"{name}{i}" for i in range(count)] for name in "pr")
    nodes = [node("Split", "x", " ".join(parts), axis=1, num_outputs=count)]
    nodes += [node("Relu", p, r) for p, r in zip(parts, made, strict=True)]
    nodes.append(node("Concat", " ".join(made), "y", axis=1))
    return model(nodes, {"x": f"f32[1,{4 * count}]"}, "y", opset=18)


def steps_of_compiler(proto: onnx.ModelProto, folder: Path) -> int:
    """Return how many Python functions are entered while a model is compiled."""
    path, entered = folder / "net.onnx", 0
    onnx.save(proto, path)

    def count_call(_: object, event: str, __: object) -> None:
        nonlocal entered
        entered += event == "call"

    sys.setprofile(count_call)
    try:
        compile_model(path, load_board("host"))
    finally:
        sys.setprofile(None)
    return entered


@pytest.mark.parametrize("shape", [chain, fan])
def test_work_of_the_compiler_grows_in_proportion_to_the_layers(
    shape: Callable[[int], onnx.ModelProto], tmp_path: Path
) -> None:
    steps_of_compiler(shape(20), tmp_path)  # loads modules and caches
    short, long = (steps_of_compiler(shape(count), tmp_path) for count in (50, 200))
    assert long < 4.2 * short
