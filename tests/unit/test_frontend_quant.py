"""QuantizeLinear/DequantizeLinear and QOperator forms at import: scales and zero points move into types."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from glowc.errors import ModelError
from glowc.frontend import import_model
from glowc.graph.graph import Graph
from glowc.graph.numerics import dequantize
from glowc.graph.text import dump
from glowc.graph.types import DType
from glowc.ops.interp import run_graph
from glowc.ops.verify import verify
from tests.unit.onnx_builders import f32, model, node, qdq_conv


def imported(*args: Any, **kwargs: Any) -> Graph:
    graph = import_model(model(*args, **kwargs), keep_unknown=True)
    verify(graph)
    return graph


def body(graph: Graph) -> list[str]:
    lines = [line.strip().split(" from ")[0] for line in dump(graph).splitlines()]
    return [line for line in lines if line.startswith("%")]


def ops(graph: Graph) -> list[str]:
    return [n.op for n in graph.nodes]


def test_qdq_convolution_has_quantisation_in_types() -> None:
    graph = import_model(qdq_conv())
    verify(graph)
    lines = body(graph)
    assert lines[0] == "%x.q : s8[1,3,4,4] q(0.5, 3) = AssignQuant(%x)"
    assert lines[1] == "%xr : f32[1,3,4,4] = DequantizeLinear(%x.q)"
    assert lines[-1] == '%y : s8[1,2,4,4] q(0.25, -1) = QuantizeLinear(%yr) {dtype="s8"}'
    weights = graph.types["w"].quant
    assert weights is not None
    assert (weights.axis, weights.zero_point) == (0, (0, 0))
    assert graph.types["b"].dtype == DType.S32


def test_origin_is_the_onnx_node_name() -> None:
    graph = import_model(qdq_conv())
    assert {n.op: n.origin for n in graph.nodes}["Conv"] == ("conv",)


def test_one_initialiser_as_bias_and_zero_point() -> None:
    """Quirk 1: the all-zero bias is also the zero point of its own DequantizeLinear."""
    nodes = [node("DequantizeLinear", "b s b", "y", axis=0)]
    nodes += [node("Add", "x y", "out")]
    graph = imported(nodes, {"x": "f32[1,2]"}, "out", {"b": np.zeros(2, np.int32), "s": f32(0.5, 0.25)})
    assert "const %b : s32[2] q([0.5, 0.25], [0, 0], axis=0) = [0, 0]" in dump(graph)


def test_dequantize_axis_3_of_a_vector() -> None:
    """Quirk 2: a 1-D tensor has one axis, whatever the attribute says."""
    nodes = [node("DequantizeLinear", "b s", "br", axis=3), node("Add", "x br", "y")]
    graph = imported(nodes, {"x": "f32[1,2]"}, "y", {"b": np.ones(2, np.int32), "s": f32(0.5, 0.25)})
    assert graph.types["b"].quant is not None
    assert graph.types["b"].quant.axis == 0


def test_transpose_before_first_dequantize() -> None:
    """Quirk 3: tf2onnx moves int8 data before it says what they mean."""
    nodes = [node("Transpose", "x", "t", perm=[0, 2, 1]), node("DequantizeLinear", "t s z", "y")]
    graph = imported(nodes, {"x": "s8[1,2,3]"}, "y", {"s": f32(0.5), "z": np.int8(1)})
    assert body(graph) == [
        "%t : s8[1,3,2] = Transpose(%x) {perm=[0, 2, 1]}",
        "%t.q : s8[1,3,2] q(0.5, 1) = AssignQuant(%t)",
        "%y : f32[1,3,2] = DequantizeLinear(%t.q)",
    ]


def test_reshape_between_quantize_and_dequantize_keeps_the_quantisation() -> None:
    """Quirk 3: int8 Reshape between Q and DQ."""
    nodes = [
        node("QuantizeLinear", "x s z", "q"),
        node("Reshape", "q k", "r"),
        node("DequantizeLinear", "r s z", "y"),
    ]
    graph = imported(nodes, {"x": "f32[2,3]"}, "y", {"s": f32(0.5), "z": np.int8(1), "k": [6]})
    assert ops(graph) == ["QuantizeLinear", "Reshape", "DequantizeLinear"]
    assert str(graph.types["r"].quant) == str(graph.types["q"].quant)


def test_names_with_colons_and_semicolons_survive() -> None:
    """Quirk 3."""
    graph = imported([node("Relu", "a;b/c:0", "y:0", name="n;1/x:2")], {"a;b/c:0": "f32[2]"}, "y:0")
    assert graph.inputs == ("a;b/c:0",)
    assert graph.outputs == ("y:0",)
    assert graph.nodes[0].origin == ("n;1/x:2",)


def test_weight_only_quantisation() -> None:
    """Quirk 4: int8 weights after a DequantizeLinear, float activations."""
    nodes = [node("DequantizeLinear", "w s", "wr", axis=0), node("Conv", "x wr", "y")]
    consts = {"w": np.ones((2, 3, 1, 1), np.int8), "s": f32(0.5, 0.25)}
    graph = imported(nodes, {"x": "f32[1,3,4,4]"}, "y", consts)
    assert ops(graph) == ["DequantizeLinear", "Conv"]


@pytest.mark.parametrize("shape", [(), (1,)])
def test_scale_as_scalar_or_vector_of_one(shape: tuple[int, ...]) -> None:
    """Quirk 5."""
    consts = {"s": np.full(shape, 0.5, np.float32), "z": np.full(shape, 3, np.uint8)}
    graph = imported([node("QuantizeLinear", "x s z", "y")], {"x": "f32[1,1,4]"}, {"y": "u8"}, consts)
    assert body(graph) == ['%y : u8[1,1,4] q(0.5, 3) = QuantizeLinear(%x) {dtype="u8"}']


def test_int8_bias_with_its_own_zero_point() -> None:
    """Quirk 6."""
    nodes = [node("DequantizeLinear", "b s z", "br"), node("Add", "x br", "y")]
    graph = imported(nodes, {"x": "f32[1,2]"}, "y", {"b": np.ones(2, np.int8), "s": f32(0.5), "z": np.int8(-7)})
    assert "s8[2] q(0.5, -7)" in dump(graph)


def test_weight_axis_1_and_negative_axis() -> None:
    """Quirk 7: Gemm without transB and MatMul have the channels on axis 1."""
    for axis in (1, -1):
        nodes = [node("DequantizeLinear", "w s", "wr", axis=axis), node("MatMul", "x wr", "y")]
        graph = imported(nodes, {"x": "f32[1,3]"}, "y", {"w": np.ones((3, 2), np.int8), "s": f32(1, 2)})
        assert graph.types["w"].quant is not None
        assert graph.types["w"].quant.axis == 1


def test_shared_dequantize_of_raw_input_gets_one_assign() -> None:
    """Quirk 8: several readers of one quantised value."""
    nodes = [node("DequantizeLinear", "x s", f"y{i}") for i in range(4)]
    graph = imported(nodes, {"x": "s8[2]"}, "y0 y1 y2 y3", {"s": f32(0.5)})
    assert ops(graph).count("AssignQuant") == 1


def test_quantised_constant_table() -> None:
    """Quirk 10: Gather on an int8 table through DequantizeLinear."""
    nodes = [node("DequantizeLinear", "t s", "tr"), node("Gather", "tr x", "y")]
    graph = imported(nodes, {"x": "s64[3]"}, "y", {"t": np.ones((5, 2), np.int8), "s": f32(0.5)})
    assert ops(graph) == ["DequantizeLinear", "Gather"]


def test_max_pool_directly_on_codes_keeps_quantisation() -> None:
    """Quirk 11: QOperator models run MaxPool and Reshape on uint8."""
    nodes = [
        node("QuantizeLinear", "x s z", "q"),
        node("MaxPool", "q", "m", kernel_shape=[2, 2], strides=[2, 2]),
        node("DequantizeLinear", "m s z", "y"),
    ]
    graph = imported(nodes, {"x": "f32[1,1,4,4]"}, "y", {"s": f32(0.5), "z": np.uint8(9)})
    assert ops(graph) == ["QuantizeLinear", "MaxPool", "DequantizeLinear"]
    assert "%m : u8[1,1,2,2] q(0.5, 9)" in dump(graph)


def test_cast_of_codes_reads_plain_integers() -> None:
    nodes = [node("QuantizeLinear", "x s", "q"), node("Cast", "q", "y", to=TensorProto.FLOAT)]
    graph = imported(nodes, {"x": "f32[2]"}, "y", {"s": f32(0.5)})
    assert "%q.raw : u8[2] = AssignQuant(%q)" in body(graph)


def test_missing_zero_point_is_0_and_output_dtype_counts() -> None:
    graph = imported([node("QuantizeLinear", "x s", "y")], {"x": "f32[2]"}, {"y": "u8"}, {"s": f32(0.5)})
    assert "u8[2] q(0.5, 0)" in dump(graph)
    int16 = [node("QuantizeLinear", "x s", "y", output_dtype=TensorProto.INT16)]
    assert "s16[2] q(0.5, 0)" in dump(imported(int16, {"x": "f32[2]"}, {"y": "s16"}, {"s": f32(0.5)}))


def test_microsoft_quantize_is_the_same() -> None:
    nodes = [node("QuantizeLinear", "x s z", "y", domain="com.microsoft")]
    consts = {"s": f32(0.5), "z": np.uint16(7)}
    graph = imported(nodes, {"x": "f32[2]"}, {"y": "u16"}, consts, domains=["com.microsoft"])
    assert "u16[2] q(0.5, 7)" in dump(graph)


def test_blocked_weights_keep_their_codes() -> None:
    w = np.arange(8, dtype=np.int8).reshape(4, 2)
    nodes = [node("DequantizeLinear", "w s z", "wr", axis=0, block_size=2), node("MatMul", "x wr", "y")]
    scale, zero = f32(1, 2, 3, 4).reshape(2, 2), np.asarray([[0, 1], [2, 3]], np.int8)
    graph = imported(nodes, {"x": "f32[1,4]"}, "y", {"w": w, "s": scale, "z": zero})
    expected = (w - np.repeat(zero, 2, 0)) * np.repeat(scale, 2, 0)
    assert ops(graph) == ["DequantizeBlocks", "MatMul"]
    x = np.asarray([[1, 2, 3, 4]], np.float32)
    assert np.array_equal(run_graph(graph, {"x": x})["y"], x @ expected)


@pytest.mark.parametrize(("kind", "codes"), [(TensorProto.INT4, [-8, 7, 1, 0]), (TensorProto.UINT4, [0, 15, 8, 1])])
def test_packed_4_bit_weights_become_int8(kind: int, codes: list[int]) -> None:
    packed = helper.make_tensor("w", kind, [2, 2], codes)
    nodes = [node("DequantizeLinear", "w s", "wr"), node("MatMul", "x wr", "y")]
    graph = imported(nodes, {"x": "f32[1,2]"}, "y", {"w": packed, "s": f32(0.5)})
    assert graph.types["w"].dtype == DType.S8
    quant = graph.types["w"].quant
    assert quant is not None
    assert dequantize(graph.consts["w"], quant).reshape(-1).tolist() == [c * 0.5 for c in codes]


def test_constant_is_quantised_at_import() -> None:
    nodes = [
        node("QuantizeLinear", "c s z", "q"),
        node("DequantizeLinear", "q s z", "d"),
        node("Add", "x d", "y"),
    ]
    graph = imported(nodes, {"x": "f32[2]"}, "y", {"c": f32(1, -1), "s": f32(0.5), "z": np.int8(1)})
    assert "const %q : s8[2] q(0.5, 1) = [3, -1]" in dump(graph)


def bad(match: str, nodes: list[onnx.NodeProto], consts: dict[str, Any], x: str = "s8[1,2,4,4]") -> None:
    with pytest.raises(ModelError, match=match) as caught:
        imported(nodes, {"x": x}, "y", consts)
    assert '"dq"' in str(caught.value)


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
def test_bad_scales_are_errors(scale: float) -> None:
    bad("must be a positive number", [node("DequantizeLinear", "x s", "y", name="dq")], {"s": f32(scale)})


def test_bad_scale_counts_are_errors() -> None:
    nodes = [node("DequantizeLinear", "x s", "y", name="dq")]
    bad("3 scales along axis 1 of s8", nodes, {"s": f32(1, 2, 3)})
    nodes = [node("DequantizeLinear", "x s z", "y", name="dq")]
    bad("2 scales but 3 zero points", nodes, {"s": f32(1, 2), "z": np.zeros(3, np.int8)})


def test_bad_zero_points_are_errors() -> None:
    nodes = [node("DequantizeLinear", "x s z", "y", name="dq")]
    bad("zero point 5 of s32 codes is out of range", nodes, {"s": f32(1), "z": np.int32(5)}, "s32[2]")
    bad("element type u8, the codes s8", nodes, {"s": f32(1), "z": np.uint8(5)})


def test_scale_computed_at_run_time_becomes_arithmetic() -> None:
    graph = imported([node("QuantizeLinear", "x t", "y")], {"x": "f32[2]", "t": "f32"[:3] + "[]"}, {"y": "u8"})
    assert ops(graph)[-4:] == ["Div", "Round", "Clip", "Cast"]
    nodes = [node("DequantizeLinear", "q t z", "y")]
    graph = imported(nodes, {"q": "s8[2]", "t": "f32[2]", "z": "s8[2]"}, "y")
    assert ops(graph)[-1] == "Mul"


def quantised(names: str) -> dict[str, Any]:
    """Scales 0.5, 0.25, ... named s<x> and uint8 zero points z<x> for each name."""
    result: dict[str, Any] = {}
    for i, name in enumerate(names.split()):
        result |= {f"s{name}": f32(0.5 / (i + 1)), f"z{name}": np.uint8(10 * i)}
    return result


def test_qlinear_conv_becomes_qdq() -> None:
    """Quirk 11: QOperator models."""
    consts = {**quantised("x w y"), "w": np.ones((2, 3, 1, 1), np.uint8), "b": np.asarray([1, 2], np.int32)}
    nodes = [node("QLinearConv", "x sx zx w sw zw sy zy b", "y", name="c")]
    graph = imported(nodes, {"x": "u8[1,3,4,4]"}, {"y": "u8"}, consts)
    assert ops(graph) == ["AssignQuant", *["DequantizeLinear"] * 3, "Conv", "QuantizeLinear"]
    assert {n.origin for n in graph.nodes} == {("c",)}
    assert "const %b : s32[2] q(0.125, 0) = [1, 2]" in dump(graph)


def test_qlinear_matmul_and_qgemm_become_qdq() -> None:
    consts = {
        **quantised("x w y"),
        "w": np.ones((3, 2), np.uint8),
        "sw": f32(1, 2),
        "zw": np.zeros(2, np.uint8),
    }
    graph = imported([node("QLinearMatMul", "x sx zx w sw zw sy zy", "y")], {"x": "u8[1,3]"}, {"y": "u8"}, consts)
    assert ops(graph)[-2:] == ["MatMul", "QuantizeLinear"]
    assert graph.types["w"].quant is not None
    assert graph.types["w"].quant.axis == 1
    gemm = [node("QGemm", "x sx zx w sw zw b sy zy", "y", domain="com.microsoft", transB=0)]
    consts["b"] = np.asarray([1, 2], np.int32)
    graph = imported(gemm, {"x": "u8[1,3]"}, {"y": "u8"}, consts, domains=["com.microsoft"])
    assert ops(graph)[-2:] == ["Gemm", "QuantizeLinear"]
    assert "const %b : s32[2] q([0.5, 1.0], [0, 0], axis=0)" in dump(graph)
    gemm = [node("QGemm", "x sx zx w sw zw b", "y", domain="com.microsoft", transB=0)]
    graph = imported(gemm, {"x": "u8[1,3]"}, "y", consts, domains=["com.microsoft"])
    assert [op for op in ops(graph) if op != "AssignQuant"][:4] == ["MatMulInteger", "Add", "Cast", "Mul"]


@pytest.mark.parametrize(
    ("op", "ins", "float_op", "attrs"),
    [
        ("QLinearAdd", "x sx zx x sx zx sy zy", "Add", {}),
        ("QLinearMul", "x sx zx x sx zx sy zy", "Mul", {}),
        ("QLinearAveragePool", "x sx zx sy zy", "AveragePool", {"kernel_shape": [2, 2]}),
        ("QLinearGlobalAveragePool", "x sx zx sy zy", "ReduceMean", {}),
        ("QLinearSigmoid", "x sx zx sy zy", "Sigmoid", {}),
        ("QLinearLeakyRelu", "x sx zx sy zy", "LeakyRelu", {"alpha": 0.1}),
        ("QLinearSoftmax", "x sx zx sy zy", "Softmax", {"axis": 3, "opset": 13}),
        ("QLinearConcat", "sy zy x sx zx x sx zx", "Concat", {"axis": 1}),
    ],
)
def test_microsoft_qlinear_operators_become_qdq(op: str, ins: str, float_op: str, attrs: dict[str, Any]) -> None:
    nodes = [node(op, ins, "y", domain="com.microsoft", **attrs)]
    graph = imported(nodes, {"x": "u8[1,3,4,4]"}, {"y": "u8"}, quantised("x y"), domains=["com.microsoft"])
    assert ops(graph)[-2:] == [float_op, "QuantizeLinear"]
    assert "q(0.25, 10)" in body(graph)[-1]
