"""The pipeline on real networks: integer operators only, no Transpose inside, and the answers of onnxruntime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from glowc.frontend import import_model
from glowc.graph.graph import Graph
from glowc.ops.interp import run_graph
from glowc.passes.pipeline import run_pipeline

pytestmark = pytest.mark.shared

INTEGER = (
    "mlperf_ad_autoencoder",
    "mlperf_ad_autoencoder_tf2onnx",
    "mlperf_ic_resnet8",
    "mlperf_ic_resnet8_tf2onnx",
    "mlperf_kws_dscnn",
    "mlperf_kws_dscnn_tf2onnx",
    "mlperf_vww_mobilenetv1",
    "tinymaix_cifar10",
    "tinymaix_mnist_dw",
    "tflm_hello_world_tf2onnx",
)
FLOAT_EDGE = (
    "torch_simplecnn_qdq",
    "torch_simplecnn_qdq_u8",
    "torch_simplecnn_qop",
    "torch_resnet_tiny_qdq_u8",
    "torch_resnet_tiny_qop",
    "emx_micro_kws_m_static_qdq",
    "emx_micro_kws_m_static_qoperator",
)
EDGE = ("QuantizeLinear", "DequantizeLinear")


def optimised(folder: Path) -> Graph:
    """Return the graph of a model after the pipeline."""
    return run_pipeline(import_model(folder / "model.onnx", batch_size=1))


def check_answers(graph: Graph, folder: Path) -> None:
    """Compare the first sample with onnxruntime's integer kernels."""
    with np.load(folder / "inputs.npz") as inputs, np.load(folder / "golden.npz") as golden:
        results = run_graph(graph, {key: inputs[key][0] for key in graph.inputs})
        for key, seen in results.items():
            wanted = golden[f"{key}__ort_int" if f"{key}__ort_int" in golden else key][0]
            np.testing.assert_array_equal(seen, wanted.reshape(seen.shape))


@pytest.mark.parametrize("name", INTEGER)
def test_integer_network(name: str, shared_models: Path) -> None:
    graph = optimised(shared_models / name)
    assert not {node.op for node in graph.nodes} & {"Transpose", "FlipSign", "AssignQuant", "Requantize", *EDGE}
    assert not [value for value, type_ in graph.types.items() if type_.dtype.is_float]
    check_answers(graph, shared_models / name)


@pytest.mark.parametrize("name", FLOAT_EDGE)
def test_integer_network_with_a_float_edge(name: str, shared_models: Path) -> None:
    graph = optimised(shared_models / name)
    assert [node.op for node in graph.nodes if node.op in EDGE] == list(EDGE)
    assert not [node.label for node in graph.nodes if node.op == "Transpose"]
    if name != "emx_micro_kws_m_static_qdq":  # onnxruntime averages in float there: a Transpose parts its QDQ group
        check_answers(graph, shared_models / name)


@pytest.mark.parametrize("name", ["mlperf_ic_resnet8_fp32", "torch_resnet_tiny_fp32", "onnx2c_mnist_cntk"])
def test_float_network_has_no_transpose_and_no_loose_activation(name: str, shared_models: Path) -> None:
    graph = optimised(shared_models / name)
    assert not {node.op for node in graph.nodes} & {"Transpose", "Relu", "BatchNormalization", "MatMul"}
