"""Folding, functions, odd but legal files, and the real models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from glowc.frontend import import_model
from glowc.frontend.reader import c_identifier
from glowc.graph.graph import Graph
from glowc.graph.types import DType
from glowc.ops.verify import verify
from tests.unit.onnx_builders import ELEMENTS, f32, model, node, value

MODELS = Path(__file__).resolve().parents[3] / "shared" / "models"


def imported(*args: Any, **kwargs: Any) -> Graph:
    graph = import_model(model(*args, **kwargs), keep_unknown=True)
    verify(graph)
    return graph


def ops(graph: Graph) -> list[str]:
    return [n.op for n in graph.nodes]


def test_shape_chain_folds_away() -> None:
    """Quirk 14: Shape/Gather/Unsqueeze/Concat/ConstantOfShape/Range/Cast build shapes at run time."""
    nodes = [
        node("Shape", "x", "s"),
        node("Gather", "s i", "n"),
        node("Unsqueeze", "n a", "u"),
        node("Concat", "u m", "c", axis=0),
        node("ConstantOfShape", "c", "z", value=onnx.numpy_helper.from_array(np.asarray([2.0], np.float32))),
        node("Range", "lo n d", "r"),
        node("Cast", "r", "rf", to=TensorProto.FLOAT),
        node("Expand", "rf c2", "e"),
        node("Add", "x z", "x1"),
        node("Add", "x1 e", "y"),
    ]
    consts = {"i": np.int64(0), "a": [0], "m": [3], "lo": np.int64(0), "d": np.int64(1), "c2": [1, 3]}
    graph = imported(nodes, {"x": "f32[3,3]"}, "y", consts)
    assert ops(graph) == ["Add", "Add"]
    assert graph.consts["z"].tolist() == [[2.0] * 3] * 3
    assert graph.consts["e"].tolist() == [[0.0, 1.0, 2.0]]


def test_where_equal_mod_fold() -> None:
    """Quirk 14: dynamo exports compute masks of constants."""
    nodes = [
        node("Mod", "c two", "m"), node("Equal", "m zero", "q"),
        node("Where", "q c zero", "w"), node("Cast", "w", "wf", to=1), node("Mul", "x wf", "y"),
    ]  # fmt: skip
    consts = {"c": [1, 2, 3, 4], "two": np.int64(2), "zero": np.int64(0)}
    graph = imported(nodes, {"x": "f32[4]"}, "y", consts)
    assert ops(graph) == ["Mul"]
    assert graph.consts["wf"].tolist() == [0, 2, 0, 4]


def test_large_expansion_stays_an_operator() -> None:
    nodes = [node("Expand", "c s", "e"), node("Add", "x e", "y")]
    graph = imported(nodes, {"x": "f32[128,128]"}, "y", {"c": f32(1), "s": [128, 128]})
    assert ops(graph) == ["Expand", "Add"]


def test_shape_with_start_and_end() -> None:
    nodes = [node("Shape", "x", "s", start=1, end=-1), node("Reshape", "x s", "y")]
    graph = imported(nodes, {"x": "f32[1,6,1]"}, "y", opset=19)
    assert graph.types["y"].shape == (6,)


def test_initialisers_listed_as_inputs_are_no_inputs() -> None:
    """Quirk 16, IR version 3."""
    graph = imported([node("Add", "x w", "y")], {"x": "f32[2]", "w": "f32[2]"}, "y", {"w": f32(1, 2)}, ir_version=3)
    assert graph.inputs == ("x",)


def test_unused_domains_and_dead_nodes_do_not_matter() -> None:
    """Quirk 16."""
    nodes = [node("Nonsense", "x", "dead", domain="org.example"), node("Relu", "x", "y")]
    graph = import_model(
        model(nodes, {"x": "f32[2]"}, "y", domains=["org.example", "com.microsoft"]), keep_unknown=True
    )
    assert ops(graph) == ["Relu"]


def test_layer_normalization_in_opset_12() -> None:
    """Quirk 16: an operator younger than the opset."""
    nodes = [node("LayerNormalization", "x w", "y")]
    graph = imported(nodes, {"x": "f32[2,3]"}, "y", {"w": f32(1, 2, 3)}, opset=12)
    assert graph.types["y"].shape == (2, 3)


def test_custom_operator_of_the_default_domain_keeps_its_numbers() -> None:
    """Quirks 16, 18: RequantShift has tensors as attributes."""
    tensor = onnx.numpy_helper.from_array(f32(65536))
    nodes = [node("RequantShift", "x m a", "y", div=tensor, name="r")]
    graph = imported(nodes, {"x": "f32[1,2,1,1]"}, "y", {"m": f32(1), "a": f32(2)}, opset=10)
    assert graph.nodes[0].attrs["div"] == 65536.0
    assert graph.types["y"].shape == (1, 2, 1, 1)


def test_nodes_may_stand_in_any_order() -> None:
    nodes = [node("Relu", "a", "y"), node("Add", "x x", "a")]
    assert ops(imported(nodes, {"x": "f32[2]"}, "y")) == ["Add", "Relu"]


def test_wrong_value_info_is_not_believed() -> None:
    proto = model([node("Add", "x x", "a"), node("Add", "a a", "y")], {"x": "f32[2,3]"}, "y")
    proto.graph.value_info.append(value("a", "s8[99]"))
    graph = import_model(proto)
    assert str(graph.types["y"]) == "f32[2,3]"


def test_model_functions_are_inlined() -> None:
    body = [helper.make_node("Mul", ["a", "a"], ["t"]), helper.make_node("Transpose", ["t"], ["b"])]
    body[1].attribute.append(onnx.AttributeProto(name="perm", type=onnx.AttributeProto.INTS, ref_attr_name="order"))
    function = helper.make_function(
        "mine", "SquareT", ["a"], ["b"], body, [helper.make_opsetid("", 21)], attributes=["order"]
    )
    nodes = [node("SquareT", f"{i}", f"{o}", domain="mine", name=f"f{i}", order=[1, 0]) for i, o in ("xm", "my")]
    graph = imported(nodes, {"x": "f32[2,3]"}, "y", domains=["mine"], functions=[function])
    assert ops(graph) == ["Mul", "Transpose", "Mul", "Transpose"]
    assert graph.types["y"].shape == (2, 3)
    assert graph.nodes[0].origin == ("fx",)


def test_operator_without_definition_is_expanded_by_its_onnx_function(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import glowc.frontend.builder as builder
    import glowc.frontend.importer as importer
    from glowc.ops.registry import find_op

    for module in (builder, importer):
        monkeypatch.setattr(module, "find_op", lambda name: None if name == "ReduceSumSquare" else find_op(name))
    proto = model([node("ReduceSumSquare", "x a", "y", name="r")], {"x": "f32[2,3]"}, "y", {"a": [1]}, opset=18)
    graph = import_model(proto)
    assert ops(graph) == ["Mul", "ReduceSum"]
    assert graph.types["y"].shape == (2, 1)
    assert graph.nodes[-1].attrs == {"axes": (1,), "keepdims": 1}


def test_if_with_known_condition_is_replaced_by_its_branch() -> None:
    branches = {
        key: helper.make_graph([node(op, "x", "out")], key, [], [value("out", "f32[2]")])
        for key, op in (("then_branch", "Relu"), ("else_branch", "Neg"))
    }
    graph = imported([node("If", "c", "y", **branches)], {"x": "f32[2]"}, "y", {"c": np.asarray(False)})
    assert ops(graph) == ["Neg"]


def test_defaults_of_onnx_are_explicit_where_the_operator_knows_them() -> None:
    graph = imported([node("LeakyRelu", "x", "y")], {"x": "f32[2]"}, "y")
    assert graph.nodes[0].attrs["alpha"] == pytest.approx(0.01)


def test_equal_node_names_are_told_apart() -> None:
    nodes = [node("Add", "x x", "a", name="n"), node("Add", "a a", "y", name="n")]
    graph = imported(nodes, {"x": "f32[2]"}, "y")
    assert [n.name for n in graph.nodes] == ["n", "n.1"]
    assert [n.origin for n in graph.nodes] == [("n",), ("n",)]


def test_unnamed_nodes_are_called_by_operator_and_position() -> None:
    graph = imported([node("Add", "x x", "a"), node("Add", "a a", "y")], {"x": "f32[2]"}, "y")
    assert graph.nodes[1].origin == ("Add_1",)


def test_unread_second_output_is_left_out() -> None:
    graph = imported([node("TopK", "x k", "v i")], {"x": "f32[5]"}, "v", {"k": [2]})
    assert graph.nodes[0].outputs == ("v", "")


def test_lone_symbolic_first_dimension_is_batch_1() -> None:
    """Quirk 3: unk__123."""
    proto = model([node("Add", "x x", "y")], {"x": "f32[unk__123,4]"}, "y")
    assert import_model(proto).types["y"].shape == (1, 4)
    assert import_model(proto, batch_size=3).types["y"].shape == (3, 4)
    assert import_model(proto, symbols={"unk__123": 2}).types["y"].shape == (2, 4)


def test_batch_symbol_counts_wherever_it_stands() -> None:
    proto = model([node("Add", "x h", "y")], {"x": "f32[N,4]", "h": "f32[3,N,4]"}, "y")
    assert import_model(proto).types["y"].shape == (3, 1, 4)


def test_dimension_without_any_name_is_called_by_input_and_axis() -> None:
    proto = model([node("Add", "x x", "y")], {"x": "f32[1,?,4]"}, "y")
    assert import_model(proto, symbols={"x[1]": 7}).types["y"].shape == (1, 7, 4)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("kws_s", "kws_s"),
        ("my-net.v2", "my_net_v2"),
        ("2nd", "net_2nd"),
        ("int", "int_net"),
        ("---", "model"),
    ],
)
def test_network_name_is_a_c_identifier(text: str, name: str) -> None:
    assert c_identifier(text) == name


def test_name_comes_from_the_file_unless_given(tmp_path: Path) -> None:
    path = tmp_path / "my-net.onnx"
    onnx.save(model([node("Add", "x x", "y")], {"x": "f32[2]"}, "y"), path)
    assert import_model(path).name == "my_net"
    assert import_model(path, name="other").name == "other"


def test_external_data_are_read(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    proto = model([node("Add", "x w", "y")], {"x": "f32[64]"}, "y", {"w": np.arange(64, dtype=np.float32)})
    onnx.save(proto, path, save_as_external_data=True, location="net.bin", size_threshold=0)
    assert import_model(path).consts["w"].tolist() == list(range(64))


def test_every_element_kind_of_inputs() -> None:
    for text in ("f16", "f32", "f64", "s8", "u8", "s16", "u16", "s32", "s64", "bool"):
        assert text in ELEMENTS
        graph = imported([node("Identity", "x", "y")], {"x": f"{text}[2]"}, {"y": text})
        assert graph.types["y"].dtype == DType(text)


@pytest.mark.shared
@pytest.mark.skipif(not MODELS.is_dir(), reason="no shared models")
@pytest.mark.parametrize("path", sorted(MODELS.glob("*/model*.onnx")), ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_real_models_are_imported(path: Path) -> None:
    graph = import_model(path, keep_unknown=True)
    verify(graph)
    proto = onnx.load(path)
    consts = {t.name for t in proto.graph.initializer}
    assert graph.inputs == tuple(v.name for v in proto.graph.input if v.name not in consts)
    assert graph.outputs == tuple(v.name for v in proto.graph.output)
    assert not {n.op for n in graph.nodes} & {"Shape", "Constant", "Unsqueeze", "Flatten", "QLinearConv"}
