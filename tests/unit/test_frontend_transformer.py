"""onnxruntime's fused operators of transformers, against onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from onnx_builders import model, node

from glowc.errors import ModelError
from glowc.frontend import import_model
from glowc.ops.interp import run_graph
from glowc.passes.pipeline import run_pipeline
from tests.conftest import require_module

RNG = np.random.default_rng(12)
MICROSOFT = "com.microsoft"


def row(*shape: int) -> np.ndarray:
    return RNG.normal(0, 0.7, shape).astype(np.float32)


def agrees(
    op: str, arrays: Mapping[str, np.ndarray], outputs: str = "y", run_time: Sequence[str] = ("x",), **attrs: Any
) -> None:
    """Compare the outputs before and after the passes with onnxruntime's."""
    ort = require_module("onnxruntime")
    domain = "" if op == "SimplifiedLayerNormalization" else MICROSOFT
    kinds = {"float32": "f32", "int8": "s8", "uint8": "u8"}
    given = {n: f"{kinds[arrays[n].dtype.name]}[{','.join(map(str, arrays[n].shape))}]" for n in run_time}
    held = {n: a for n, a in arrays.items() if n not in given and n != "_"}
    one = node(op, " ".join(arrays), outputs, domain=domain, **attrs)
    named = " ".join(n for n in outputs.split() if n != "_")
    proto = model([one], given, named, held, opset=17, ir_version=8, domains=(MICROSOFT,))
    feed = {n: arrays[n] for n in run_time}
    options = ort.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", "1")  # no sums of two products in 16 bits
    session = ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    graph = import_model(proto)
    for stage in (graph, run_pipeline(graph)):
        seen = run_graph(stage, feed)
        for name, want in zip(names, session.run(None, feed), strict=True):
            np.testing.assert_allclose(seen[name], want, rtol=2e-5, atol=2e-5)


def test_skip_layer_normalization() -> None:
    arrays = {"x": row(2, 3, 8), "s": row(2, 3, 8), "g": row(8), "b": row(8), "c": row(8)}
    agrees("SkipLayerNormalization", arrays, "y _ _ z", ("x", "s"), epsilon=1e-5)
    agrees("SkipLayerNormalization", dict(list(arrays.items())[:3]), "y", ("x", "s"), epsilon=1e-5)


def test_simplified_layer_normalization() -> None:
    agrees("SimplifiedLayerNormalization", {"x": row(2, 3, 8), "g": row(8)}, axis=-1, epsilon=1e-5)
    arrays = {"x": row(2, 3, 8), "s": row(2, 3, 8), "g": row(8), "b": row(8)}
    agrees("SkipSimplifiedLayerNormalization", arrays, "y _ _ z", ("x", "s"), epsilon=1e-5)


def test_gelus() -> None:
    agrees("FastGelu", {"x": row(2, 8), "b": row(8)})
    agrees("FastGelu", {"x": row(2, 8)})
    agrees("BiasGelu", {"x": row(2, 8), "b": row(8)})


def test_multi_head_attention() -> None:
    parts = {"x": row(2, 3, 8), "k": row(2, 5, 8), "v": row(2, 5, 8)}
    agrees("MultiHeadAttention", parts, run_time=("x", "k", "v"), num_heads=2)
    agrees("MultiHeadAttention", {**parts, "b": row(24)}, run_time=("x", "k", "v"), num_heads=4, scale=0.3)


@pytest.mark.parametrize("unidirectional", [0, 1])
def test_attention(unidirectional: int) -> None:
    arrays = {"x": row(2, 5, 8), "w": row(8, 24), "b": row(24)}
    agrees("Attention", arrays, num_heads=2, unidirectional=unidirectional)


@pytest.mark.parametrize("scales", [np.float32(0.01), np.linspace(0.01, 0.02, 24, dtype=np.float32)])
def test_quantised_attention(scales: np.ndarray) -> None:
    x, w = RNG.integers(0, 256, (1, 4, 8)).astype(np.uint8), RNG.integers(-128, 128, (8, 24)).astype(np.int8)
    points = {"zx": np.asarray(120, np.uint8), "zw": np.zeros(scales.shape, np.int8)}
    arrays = {"x": x, "w": w, "b": row(24), "sx": np.float32(0.02), "sw": scales, "_": np.zeros(0), **points}
    agrees("QAttention", arrays, num_heads=2)


def test_masks_are_refused_by_name() -> None:
    one = node("MultiHeadAttention", "x x x _ m", "y", domain=MICROSOFT, num_heads=2)
    proto = model([one], {"x": "f32[2,3,8]"}, "y", {"m": np.ones((2, 3), np.int32)}, domains=(MICROSOFT,))
    with pytest.raises(ModelError, match="key_padding_mask"):
        import_model(proto)


def test_layer_normalization_before_its_opset() -> None:
    one = node("LayerNormalization", "x g b", "y", axis=-1, epsilon=1e-3)
    arrays = {"g": row(8), "b": row(8)}
    graph = import_model(model([one], {"x": "f32[2,8]"}, "y", arrays, opset=12))
    x = row(2, 8)
    want = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-3) * arrays["g"] + arrays["b"]
    np.testing.assert_allclose(run_graph(graph, {"x": x})["y"], want, rtol=1e-5, atol=1e-5)
