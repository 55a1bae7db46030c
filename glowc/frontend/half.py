"""float16 models: half floats become float32, which holds all their values; C11 has no type for them.

A model converted to float16 (weights, or everything) computes in float32 then, as onnxruntime does on CPUs without
float16 arithmetic; its float16 inputs and outputs become float32. A Cast to float16 rounds all the same. A model that
only moves float16 values keeps them. Whoever wants float32 for all floats has nothing rounded.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
from onnx import TensorProto

from glowc.frontend.builder import Builder
from glowc.frontend.chain import Rewrites
from glowc.frontend.onnx_model import OnnxModel, OnnxNode, read_model
from glowc.frontend.problems import Problems
from glowc.frontend.reader import Source, load

_MOVE = frozenset({
    "BitCast", "Concat", "Constant", "DequantizeLinear", "Expand", "Flatten", "Gather", "Identity", "Pad",
    "QuantizeLinear", "Reshape", "Slice", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze",
})  # fmt: skip
HALF = frozenset({int(TensorProto.FLOAT16)})
OTHER_FLOATS = HALF | {int(TensorProto.BFLOAT16), int(TensorProto.DOUBLE)}
CAST = 13  # opset of the Cast that a rounding begins with
_KINDS = ("to", "dtype", "output_dtype", "stash_type", "softmax_precision")
_BY_NAME = {"float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16, "float64": TensorProto.DOUBLE}


def computes_in_half(model: OnnxModel) -> bool:
    """Say whether a model has float16 values and does more than moving them."""
    held = any(array.dtype == np.float16 for array in model.consts.values())
    given = any(i.elem_type == TensorProto.FLOAT16 for i in model.inputs)
    cast = any(node.attrs.get("to") == TensorProto.FLOAT16 for node in model.nodes)
    constant = any(_widened(v, HALF) is not v for n in model.nodes if n.op == "Constant" for v in n.attrs.values())
    return (held or given or cast or constant) and any(node.op not in _MOVE for node in model.nodes)


def is_half(source: Source) -> bool:
    """Say of a file whether `computes_in_half` is true of it."""
    loaded = load(source)
    return computes_in_half(read_model(loaded.proto, Problems(loaded.source)))


def widened_model(model: OnnxModel, kinds: Collection[int]) -> OnnxModel:
    """Return the model with float32 for constants and inputs of `kinds`; `widened_node` does the same to a node."""
    inputs = tuple(replace(i, elem_type=_kind(i.elem_type, kinds)) for i in model.inputs)
    return replace(model, inputs=inputs, consts={name: _widened(array, kinds) for name, array in model.consts.items()})


def widened_node(node: OnnxNode, kinds: Collection[int]) -> OnnxNode:
    """Return a node whose tensors and element kinds are float32 instead of `kinds`."""
    if kinds == HALF and node.op == "Cast" and node.domain == "" and node.attrs.get("to") == TensorProto.FLOAT16:
        return replace(node, op="CastHalf", domain="glowc", attrs={})
    attrs = {k: _kind(value, kinds) if k in _KINDS else _widened(value, kinds) for k, value in node.attrs.items()}
    return replace(node, attrs=attrs)


def cast_half(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """Cast to float16 -> Cast to float32, then RoundHalf; a constant is rounded here."""
    array = b.value(node.inputs[0])
    if array is not None:
        with np.errstate(over="ignore"):
            rounded = array.astype(np.float32).astype(np.float16).astype(np.float32)
        return [node.new("Constant", (), node.outputs, value=rounded)]
    real = b.fresh(f"{node.outputs[0]}.real")
    cast = node.new("Cast", node.inputs, (real,), to=int(TensorProto.FLOAT))
    return [
        replace(cast, version=CAST),
        replace(node, op="RoundHalf", inputs=(real,)),
    ]


REWRITES: Rewrites = {("glowc", "CastHalf"): cast_half}


def _kind(value: Any, kinds: Collection[int]) -> Any:
    return int(TensorProto.FLOAT) if value in kinds else value


def _widened(value: Any, kinds: Collection[int]) -> Any:
    if isinstance(value, np.ndarray) and _BY_NAME.get(value.dtype.name) in kinds:
        return value.astype(np.float32)
    return value
