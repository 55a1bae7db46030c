"""A graph written as ONNX: the checker takes it, onnxruntime runs it, and read back it computes the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest

from glowc.errors import ModelError
from glowc.frontend import import_model
from glowc.frontend.writer import to_onnx
from glowc.frontend.written import GRAPH_DOMAIN, TYPES_KEY
from glowc.graph.graph import Graph
from glowc.graph.text import parse
from glowc.ops.interp import run_graph
from glowc.passes.pipeline import run_pipeline
from tests.conftest import ROOT
from tests.unit.cli_calls import DIGITS, Glowc, refused
from tests.unit.onnx_builders import model, node

RNG = np.random.default_rng(29)
MODELS = ROOT.parent / "shared/models"
X = "f32[1,4,6,6]"


def weights(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def codes(*shape: int) -> np.ndarray:
    return RNG.integers(-100, 100, shape).astype(np.int8)


NETS: Mapping[str, onnx.ModelProto] = {
    "moves": model(
        [node("Slice", "x starts ends axes steps", "a"), node("Pad", "a pads value", "b"),
         node("Transpose", "b", "c", perm=[0, 2, 3, 1]), node("Reshape", "c shape", "d"),
         node("Tile", "d twice", "e"), node("Split", "e", "f g", axis=1, num_outputs=2),
         node("Concat", "g f", "y", axis=1)],
        {"x": X}, "y",
        {"starts": [4, 0], "ends": [-100, 4], "axes": [2, 3], "steps": [-1, 2], "pads": [0, 0, 1, 0, 0, 0, 0, 2],
         "value": np.float32(0.5).reshape(()), "shape": [2, -1], "twice": [1, 2]},
    ),
    "reductions": model(
        [node("ReduceMean", "x last", "a"), node("ReduceMax", "x last", "b", keepdims=1), node("Sub", "a b", "c"),
         node("ReduceSum", "c places", "d", keepdims=0), node("Clip", "d low", "e"), node("CumSum", "e one", "y")],
        {"x": X}, "y",
        {"last": [3], "places": [2], "low": np.float32(-6.5).reshape(()), "one": np.int64(1).reshape(())},
    ),
    "unread": model(
        [node("Split", "x thirds", "a b c", axis=1), node("Squeeze", "b places", "d"),
         node("LSTM", "d v q", "_ y", hidden_size=3)],
        {"x": "f32[5,3,2,4]"}, "y",
        {"thirds": [1, 1, 1], "places": [1], "v": weights(1, 12, 4), "q": weights(1, 12, 3)},
    ),
    "choices": model(
        [node("TopK", "x k", "a i", axis=-1), node("OneHot", "i depth ends", "b"), node("ReduceSum", "b", "c"),
         node("Add", "a c", "y")],
        {"x": "f32[2,6]"}, "y", {"k": [2], "depth": [6], "ends": np.array([0.5, 2], np.float32)},
    ),
    "sizes": model(
        [node("Resize", "x _ scales", "a", mode="nearest"), node("Resize", "a _ _ sizes", "b", mode="linear"),
         node("AveragePool", "b", "c", kernel_shape=[2, 2], strides=[2, 2]),
         node("MaxPool", "c", "d", kernel_shape=[2, 2]), node("Resize", "d _ thirds", "y", mode="nearest")],
        {"x": X}, "y",
        {"scales": np.array([1, 1, 2, 2], np.float32), "sizes": [1, 4, 9, 10],
         "thirds": np.array([1, 1, 1.4, 0.7], np.float32)},
    ),
    "layers": model(
        [node("Conv", "x w b", "a", pads=[1, 1, 1, 1]), node("Clip", "a low high", "c"),
         node("ConvTranspose", "c t", "d", strides=[2, 2]), node("Relu", "d", "e"),
         node("GlobalAveragePool", "e", "f"), node("Flatten", "f", "g"), node("Gemm", "g m n", "h", transB=1),
         node("Relu", "h", "y")],
        {"x": X}, "y",
        {"w": weights(8, 4, 3, 3), "b": weights(8), "t": weights(8, 3, 2, 2), "m": weights(5, 3), "n": weights(5),
         "low": np.float32(0).reshape(()), "high": np.float32(6).reshape(())},
    ),
    "rows": model(
        [node("MatMul", "x w", "a"), node("Add", "a b", "c"), node("Gelu", "c", "d"), node("Softmax", "d", "e"),
         node("LayerNormalization", "e s t", "y", axis=-1)],
        {"x": "f32[2,3,4]"}, "y", {"w": weights(4, 8), "b": weights(8), "s": weights(8), "t": weights(8)},
    ),
    "steps": model(
        [node("GRU", "x w r", "a _", hidden_size=3, layout=1), node("LSTM", "x v q", "b _ _", hidden_size=3, layout=1),
         node("Add", "a b", "y")],
        {"x": "f32[2,5,4]"}, "y",
        {"w": weights(1, 9, 4), "r": weights(1, 9, 3), "v": weights(1, 12, 4), "q": weights(1, 12, 3)},
    ),
    "codes": model(
        [node("QuantizeLinear", "x s z", "a"), node("MaxPool", "a", "c", kernel_shape=[2, 2]),
         node("DequantizeLinear", "c s z", "d"), node("DequantizeLinear", "w ws wz", "e", axis=0),
         node("Conv", "d e", "f"), node("QuantizeLinear", "f s z", "g"), node("DequantizeLinear", "g s z", "y")],
        {"x": X}, "y",
        {"s": np.float32(0.03).reshape(()), "z": np.int8(-3).reshape(()), "w": codes(2, 4, 2, 2),
         "ws": np.array([0.01, 0.02], np.float32), "wz": np.zeros(2, np.int8)},
    ),
}  # fmt: skip


ONNXRUNTIME_LACKS = {"steps"}
"""Nets with what onnxruntime does not run: layout 1 of a GRU."""


def given(graph: Graph) -> dict[str, np.ndarray]:
    arrays = {}
    for name in graph.inputs:
        type_ = graph.types[name]
        values = RNG.standard_normal(type_.shape) if type_.dtype.is_float else RNG.integers(0, 2, type_.shape)
        arrays[name] = values.astype(type_.dtype.numpy)
    return arrays


def check_same(graph: Graph, want: Graph) -> onnx.ModelProto:
    """Check what `graph`, written, read back and optimised, computes."""
    written = to_onnx(graph)
    onnx.checker.check_model(written, full_check=True)
    again = run_pipeline(import_model(written.SerializeToString(), name=graph.name))
    sample = given(want)
    found, exact = run_graph(again, sample), run_graph(want, sample)
    for name in want.outputs:
        assert found[name].tobytes() == exact[name].tobytes(), name
    return written


@pytest.mark.parametrize("name", NETS)
def test_a_written_graph_reads_back_and_runs_in_onnxruntime(name: str) -> None:
    graph = import_model(NETS[name].SerializeToString())
    final = run_pipeline(graph)
    check_same(final, final)
    written = check_same(graph, final)
    assert not any(n.domain == GRAPH_DOMAIN for n in written.graph.node)
    if name in ONNXRUNTIME_LACKS:
        return
    onnxruntime = pytest.importorskip("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(written.SerializeToString(), options)
    sample = given(graph)
    np.testing.assert_allclose(session.run(None, sample)[0], run_graph(graph, sample)["y"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["mlperf_kws_dscnn", "torch_tinybert_qdq", "torch_gru_kws_fp32", "deeploy_mlperf_kws"])
def test_sample_models_read_back_after_the_passes(name: str) -> None:
    if not (MODELS / name).is_dir():
        pytest.skip("the sample models are not here")
    final = run_pipeline(import_model(next(iter(sorted((MODELS / name).glob("*.onnx"))))))
    check_same(final, final)


def test_sizes_that_follow_from_no_scale_read_back() -> None:
    resize = node("Resize", "x _ _ sizes", "y", mode="linear", axes=[2, 3], keep_aspect_ratio_policy="not_larger")
    graph = import_model(model([resize], {"x": "f32[1,4,7,9]"}, "y", {"sizes": [5, 9]}).SerializeToString())
    assert {n.domain for n in check_same(graph, run_pipeline(graph)).graph.node} == {GRAPH_DOMAIN}


def test_numbers_that_float32_does_not_hold_and_weights_of_few_bits_read_back() -> None:
    text = """graph "net" {
      input %x : s8[1,4] q(0.1, 3)
      const %w : s8[2,4] q([0.5, 0.25], [0, 0], axis=0, bits=4) = [[1, 2, 3, 4], [5, 6, 7, -8]]
      %y : s8[1,2] q(0.25, 0) = FullyConnected(%x, %w) {act_max=0.1, act_min=-inf}
      output %y
    }"""
    graph = parse(text)
    back = import_model(to_onnx(graph).SerializeToString(), name="net")
    assert [(n.op, n.inputs, n.attrs) for n in back.nodes] == [(n.op, n.inputs, n.attrs) for n in graph.nodes]
    assert back.types == graph.types


def test_damaged_types_of_a_written_graph_are_said() -> None:
    written = to_onnx(run_pipeline(import_model(DIGITS)))
    onnx.helper.set_model_props(written, {TYPES_KEY: "[1"})
    with pytest.raises(ModelError, match=r"glowc\.types"):
        import_model(written.SerializeToString())
    onnx.helper.set_model_props(written, {TYPES_KEY: "{}"})
    with pytest.raises(ModelError, match=r"1[0-9]* problems|say no type"):
        import_model(written.SerializeToString())


@pytest.mark.parametrize("change", [
    lambda n: n.ClearField("attribute"), lambda n: n.input.pop(0), lambda n: n.input.extend([n.input[0]] * 4),
    lambda n: setattr(n, "op_type", "LSTM"), lambda n: setattr(n.attribute[0], "name", "pad"),
])  # fmt: skip
def test_a_written_graph_that_was_changed_is_refused_in_words(change: Callable[[onnx.NodeProto], object]) -> None:
    written = to_onnx(run_pipeline(import_model(DIGITS)))
    change(next(n for n in written.graph.node if n.op_type == "Conv"))
    with pytest.raises(ModelError, match="--dump-onnx"):
        import_model(written.SerializeToString())


def test_dump_onnx_writes_what_the_compiler_sees(glowc: Glowc) -> None:
    assert glowc("compile", DIGITS, "-o", "out", "--dump-onnx", "seen.onnx").status == 0
    assert {n.op_type for n in onnx.load("seen.onnx").graph.node} >= {"Conv", "FullyConnected"}
    assert glowc("compile", "seen.onnx", "-o", "again", "--name", "digits").status == 0
    as_read = ("--stop-after", "propagate-quant", "--dump-onnx", "seen.onnx")
    assert glowc("compile", DIGITS, "-o", "out", *as_read).status == 0
    assert {n.domain for n in onnx.load("seen.onnx").graph.node} == {""}
    Path("folder").mkdir()
    refused(glowc, "compile", DIGITS, "-o", "out", "--dump-onnx", "folder", says=["folder"], hint="--dump-onnx")
