"""Inputs of which the user gives the whole shape or the value."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from glowc.compiler.options import CompileOptions
from glowc.errors import InputError, ModelError
from glowc.frontend import given_arrays, import_model
from glowc.ops.interp import run_graph
from tests.unit.onnx_builders import model, node


def two_rates() -> onnx.ModelProto:
    """x[N, T] and the integer sr: 2 x at 8000, 3 x or (an If in the If) 4 x elsewhere."""

    def branch(name: str, nodes: list[onnx.NodeProto], out: str) -> onnx.GraphProto:
        value = helper.make_tensor_value_info(out, TensorProto.FLOAT, None)
        return helper.make_graph(nodes, name, [], [value])

    def times(factor: float, out: str) -> list[onnx.NodeProto]:
        constant = helper.make_node("Constant", [], [f"k{out}"], value_float=factor)
        return [constant, helper.make_node("Mul", ["x", f"k{out}"], [out])]

    inner = helper.make_node(
        "If", ["wide"], ["b"], name="inner",
        then_branch=branch("three", times(3, "c"), "c"), else_branch=branch("four", times(4, "d"), "d"),
    )  # fmt: skip
    outer = helper.make_node(
        "If", ["low"], ["y"], name="rate",
        then_branch=branch("two", times(2, "a"), "a"), else_branch=branch("inner", [inner], "b"),
    )  # fmt: skip
    nodes = [node("Equal", "sr eight", "low"), node("Equal", "sr sixteen", "wide"), outer]
    consts = {"eight": np.asarray(8000), "sixteen": np.asarray(16000)}
    return model(nodes, {"x": "f32[N,T]", "sr": "s64[]"}, {"y": "f32"}, consts)


@pytest.mark.parametrize(("rate", "factor"), [(8000, 2), (16000, 3), (44100, 4)])
def test_value_of_an_input_decides_branches_in_branches(rate: int, factor: int) -> None:
    graph = import_model(two_rates(), input_shapes={"x": (2, 3)}, set_inputs={"sr": (rate,)})
    assert graph.inputs == ("x",)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(run_graph(graph, {"x": x})["y"], factor * x)


@pytest.mark.parametrize(("rate", "factor"), [(8000, 2), (16000, 3), (44100, 4)])
def test_input_that_stays_one_decides_branches_in_branches_at_run_time(rate: int, factor: int) -> None:
    graph = import_model(two_rates(), input_shapes={"x": (2, 3)})
    assert graph.inputs == ("x", "sr")
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(run_graph(graph, {"x": x, "sr": np.asarray(rate)})["y"], factor * x)


def test_shape_of_one_input_where_a_symbol_stands_for_two_sizes() -> None:
    proto = model([node("Relu", "x", "y")], {"x": "f32[?,3,h,h]"}, {"y": "f32"})
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "h"
    assert import_model(proto, input_shapes={"x": (1, 3, 48, 192)}).types["y"].shape == (1, 3, 48, 192)


def test_symbol_of_a_given_shape_holds_for_other_inputs() -> None:
    nodes = [node("Relu", "x", "y"), node("Relu", "s", "t")]
    proto = model(nodes, {"x": "f32[N,T]", "s": "f32[2,N,8]"}, {"y": "f32", "t": "f32"})
    graph = import_model(proto, input_shapes={"x": (3, 5)})
    assert graph.types["t"].shape == (2, 3, 8)


def test_input_without_any_shape_gets_one() -> None:
    proto = model([node("Relu", "x", "y")], {"x": "f32[1]"}, {"y": "f32"})
    proto.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(ModelError) as caught:
        import_model(proto)
    assert "--input-shape x=" in str(caught.value.hint)
    assert import_model(proto, input_shapes={"x": (4, 2)}).types["y"].shape == (4, 2)


def test_unknown_dimension_names_the_option_for_the_whole_shape() -> None:
    with pytest.raises(ModelError) as caught:
        import_model(model([node("Relu", "x", "y")], {"x": "f32[1,3,?,?]"}, {"y": "f32"}))
    assert "--input-shape x=1x3x1x1" in str(caught.value.hint)


def refused(
    input_shapes: dict[str, tuple[int, ...]] | None = None, set_inputs: dict[str, tuple[int | float, ...]] | None = None
) -> InputError:
    with pytest.raises(InputError) as caught:
        import_model(two_rates(), input_shapes=input_shapes, set_inputs=set_inputs)
    return caught.value


def test_shapes_that_do_not_fit() -> None:
    proto = model([node("Relu", "x", "y")], {"x": "f32[1,3,h,w]"}, {"y": "f32"})
    with pytest.raises(InputError) as caught:
        import_model(proto, input_shapes={"x": (1, 3, 4)})
    assert caught.value.details == ("x=1x3x4: the model has x [1, 3, h, w], of 4 dimensions",)
    with pytest.raises(InputError) as caught:
        import_model(proto, input_shapes={"x": (1, 4, 8, 8)})
    assert caught.value.details == ("x=1x4x8x8: the model has x [1, 3, h, w]",)
    assert refused({"q": (1,)}).hint == "its inputs: x, sr"


def test_values_that_do_not_fit() -> None:
    assert refused(set_inputs={"rate": (1,)}).details == ("--set-input rate=...",)
    assert refused(set_inputs={"sr": (0.5,)}).details == ("sr=0.5 is no s64",)
    assert refused(set_inputs={"sr": (1, 2)}).details == ("sr: 2 values for the shape []",)
    assert refused(set_inputs={"x": (1,)}).details == ("x has the shape [N, T]",)


def test_one_value_fills_a_shape_and_more_are_its_elements() -> None:
    proto = model([node("Add", "x w", "y")], {"x": "f32[2,3]", "w": "f32[2,3]"}, {"y": "f32"})
    np.testing.assert_array_equal(given_arrays(proto, {}, {"w": (0.5,)})["w"], np.full((2, 3), 0.5, np.float32))
    arrays = given_arrays(proto, {}, {"w": tuple(range(6))})
    assert arrays["w"].dtype == np.float32
    np.testing.assert_array_equal(arrays["w"], np.arange(6).reshape(2, 3))


def test_header_of_a_bundle_tells_what_was_given() -> None:
    options = CompileOptions(input_shapes={"x": (1, 3, 48, 192)}, set_inputs={"sr": (16000,), "a": (0.5, 1)})
    assert options.text().endswith("--input-shape x=1x3x48x192 --set-input a=0.5,1 --set-input sr=16000")
