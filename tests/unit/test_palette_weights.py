"""Weights of few different codes: which layers are marked, and the forms in which a file may have a palette."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from glowc.board import load_board
from glowc.errors import ModelError
from glowc.frontend import import_model
from glowc.graph.graph import Graph
from glowc.graph.text import dump, parse
from glowc.graph.types import QuantParams
from glowc.lower.lowering import lower_graph
from glowc.ops.interp import run_graph
from glowc.passes.base import PassCtx
from glowc.passes.pipeline import run_pipeline
from glowc.passes.quant.weights import MarkFewCodes
from tests.conftest import require_module
from tests.unit.passes_text import check_same

PALETTE = (-100, -31, -8, 0, 5, 14, 60, 127)
IN, OUT = 32, 24


def tensor(name: str, kind: int, array: np.ndarray) -> onnx.TensorProto:
    return helper.make_tensor(name, kind, array.shape, array.reshape(-1).tolist())


def layer(
    weights: list[onnx.NodeProto], tensors: list[onnx.TensorProto], zero: int = 0, **attrs: Any
) -> onnx.ModelProto:
    """Return a Gemm on codes whose weights, int8 or uint8, are the value `codes`."""
    kind = next((t.data_type for t in tensors if t.name in ("codes", "palette")), TensorProto.INT8)
    nodes = [
        *weights,
        helper.make_node("DequantizeLinear", ["x", "s", "z"], ["xf"]),
        helper.make_node("DequantizeLinear", ["codes", "ws", "wz"], ["wf"], axis=0),
        helper.make_node("Gemm", ["xf", "wf"], ["yf"], transB=1, name="fc"),
        helper.make_node("QuantizeLinear", ["yf", "s", "z"], ["y"]),
    ]
    scales = np.linspace(0.002, 0.004, OUT)
    known = [
        tensor("s", TensorProto.FLOAT, np.asarray(0.05)), tensor("z", TensorProto.INT8, np.asarray(3)),
        tensor("ws", TensorProto.FLOAT, scales), tensor("wz", kind, np.full(OUT, zero)), *tensors,
    ]  # fmt: skip
    inputs = [helper.make_tensor_value_info("x", TensorProto.INT8, (2, IN))]
    inputs += [helper.make_tensor_value_info("places", TensorProto.INT64, (OUT, IN))] if attrs.get("computed") else []
    outputs = [helper.make_tensor_value_info("y", TensorProto.INT8, (2, OUT))]
    graph = helper.make_graph(nodes, "layer", inputs, outputs, known)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def places(count: int = len(PALETTE), shape: tuple[int, ...] = (OUT, IN)) -> np.ndarray:
    return np.random.default_rng(3).integers(0, count, shape)


def gathered(kind: int, cast: int = 0, zero: int = 0, moved: int = 0) -> onnx.ModelProto:
    """Return a layer whose weights are a Gather by places of an element kind, with a Cast to `cast`."""
    nodes = [helper.make_node("Cast", ["i"], ["places"], to=cast)] if cast else []
    nodes.append(helper.make_node("Gather", ["palette", "places"], ["codes"]))
    palette = TensorProto.UINT8 if moved else TensorProto.INT8
    tensors = [
        tensor("i" if cast else "places", kind, places()), tensor("palette", palette, np.asarray(PALETTE) + moved)
    ]  # fmt: skip
    return layer(nodes, tensors, zero)


def optimised(model: onnx.ModelProto) -> Graph:
    return run_pipeline(import_model(model))


def weights_quant(graph: Graph) -> QuantParams:
    (node,) = (n for n in graph.nodes if n.op == "FullyConnected")
    quant = graph.types[node.inputs[1]].quant
    assert quant is not None
    return quant


@pytest.mark.parametrize(
    "model",
    [
        gathered(TensorProto.UINT4, TensorProto.INT32),
        gathered(TensorProto.UINT8, TensorProto.INT64),
        gathered(TensorProto.INT64),
        gathered(TensorProto.INT32),
        gathered(TensorProto.UINT4, TensorProto.INT64, zero=128, moved=128),
        layer([], [tensor("codes", TensorProto.INT8, np.asarray(PALETTE)[places()])]),
        layer([], [tensor("codes", TensorProto.UINT8, np.asarray(PALETTE)[places()] + 128)], 128),
    ],
    ids=["uint4", "uint8", "int64", "int32", "uint8 palette", "int8", "uint8 codes"],
)
def test_a_palette_is_found_in_every_form_of_a_file_and_gives_onnxruntimes_bytes(model: onnx.ModelProto) -> None:
    graph = optimised(model)
    assert (weights_quant(graph).bits, weights_quant(graph).palette) == (4, PALETTE)
    assert dump(parse(dump(graph), graph.consts)) == dump(graph)
    program = lower_graph(graph, load_board("mps2-an386").cpu)
    assert len(program.narrow) == 1
    runtime = require_module("onnxruntime")
    options = runtime.SessionOptions()
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    x = np.random.default_rng(4).integers(-128, 128, (2, IN)).astype(np.int8)
    session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    assert np.array_equal(session.run(None, {"x": x})[0], run_graph(graph, {"x": x})["y"])


@pytest.mark.parametrize(
    ("codes", "bits", "palette"),
    [((-1, 0, 1), 2, ()), ((-127, 0, 127), 2, (-127, 0, 127)), ((-7, 0, 7), 2, (-7, 0, 7)), ((-8, 2, 5, 6, 7), 4, ()),
     (tuple(range(-60, 60, 7)), 0, ())],
)  # fmt: skip
def test_weights_of_few_codes_of_other_tools_are_marked(
    codes: tuple[int, ...], bits: int, palette: tuple[int, ...]
) -> None:
    quant = weights_quant(
        optimised(layer([], [tensor("codes", TensorProto.INT8, np.asarray(codes)[places(len(codes))])]))
    )
    assert (quant.bits, quant.palette) == (bits, palette)


def test_four_bits_of_which_two_suffice_are_two() -> None:
    model = layer([], [tensor("codes", TensorProto.INT4, np.asarray((-7, 0, 6))[places(3)])])
    assert weights_quant(optimised(model)).palette == (-7, 0, 6)


def test_weights_of_bytes_stay_bytes_where_time_counts_first() -> None:
    for kind, wanted in ((TensorProto.INT8, 0), (TensorProto.INT4, 2)):
        model = layer([], [tensor("codes", kind, np.asarray((-7, 0, 6))[places(3)])])
        assert weights_quant(run_pipeline(import_model(model), ctx=PassCtx(fastest=True))).bits == wanted


def test_few_weights_are_not_marked() -> None:
    text = """
        input %x : s8[2,8] q(0.05, 3)
        const %w : s8[8,8] q(0.002, 0) = #0123456789ab
        const %b : s32[8] = [0, 0, 0, 0, 0, 0, 0, 0]
        %y : s8[2,8] q(0.05, 3) = FullyConnected(%x, %w, %b)
        output %y
    """
    check_same(MarkFewCodes(), text)


def test_places_that_are_an_input_stay_a_gather() -> None:
    model = layer(
        [helper.make_node("Gather", ["palette", "places"], ["codes"])],
        [tensor("palette", TensorProto.INT8, np.asarray(PALETTE))], computed=True,
    )  # fmt: skip
    assert "Gather" in {node.op for node in optimised(model).nodes}


def test_a_place_beyond_the_palette_is_an_error_that_names_the_node() -> None:
    nodes = [helper.make_node("Gather", ["palette", "places"], ["codes"], name="look_up")]
    tensors = [
        tensor("palette", TensorProto.INT8, np.asarray(PALETTE[:4])), tensor("places", TensorProto.INT64, places())
    ]  # fmt: skip
    with pytest.raises(ModelError) as found:
        import_model(layer(nodes, tensors))
    assert "look_up" in str(found.value) + " ".join(found.value.details)
