"""float16 and bfloat16 models: both become float32, which holds all their values; C11 has no type for them.

A model converted to float16 (weights, or everything) computes in float32 then, as onnxruntime does on CPUs without
float16 arithmetic; its float16 inputs and outputs become float32. A Cast to float16 rounds all the same. A model that
only moves float16 values keeps them. Whoever wants float32 for all floats has nothing rounded. The same
holds for bfloat16.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
from onnx import TensorProto

from glowc.frontend import symbols
from glowc.frontend.builder import Builder
from glowc.frontend.chain import Rewrites
from glowc.frontend.onnx_model import OnnxModel, OnnxNode, read_model
from glowc.frontend.problems import Problems
from glowc.frontend.reader import Source, load
from glowc.graph.few_bits import round_bfloat16, round_half
from glowc.graph.types import CODED

_MOVE = frozenset({
    "BitCast", "Concat", "Constant", "DequantizeLinear", "Expand", "Flatten", "Gather", "Identity", "Pad",
    "QuantizeLinear", "Reshape", "Slice", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze",
})  # fmt: skip
HALF = frozenset({int(TensorProto.FLOAT16), int(TensorProto.BFLOAT16)})
OTHER_FLOATS = HALF | {int(TensorProto.DOUBLE)}
CAST = 13  # opset of the Cast that a rounding begins with
_KINDS = ("to", "dtype", "output_dtype", "stash_type", "softmax_precision")
_BY_NAME = {"float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16, "float64": TensorProto.DOUBLE}


def computes_in_half(model: OnnxModel) -> bool:
    """Say whether a model has float16 values and does more than moving them, or has bfloat16 values."""
    constants = [v for n in model.nodes if n.op == "Constant" for v in n.attrs.values()]
    kinds = {i.elem_type for i in model.inputs} | {node.attrs.get("to") for node in model.nodes if node.op == "Cast"}
    kinds |= {_BY_NAME.get(v.dtype.name) for v in (*model.consts.values(), *constants) if isinstance(v, np.ndarray)}
    few = any(symbols.ELEMENT_TYPES.get(i.elem_type) in CODED for i in model.inputs)
    moved = {TensorProto.FLOAT16} if not few and all(node.op in _MOVE for node in model.nodes) else set()
    return bool(kinds & HALF - moved)


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
    if kinds == HALF and node.op == "Cast" and node.domain == "" and node.attrs.get("to") in HALF:
        return replace(node, op="CastHalf", domain="glowc", attrs={"to": node.attrs["to"]})
    attrs = {k: _kind(value, kinds) if k in _KINDS else _widened(value, kinds) for k, value in node.attrs.items()}
    return replace(node, attrs=attrs)


def cast_half(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """Cast to a half -> Cast to float32, then RoundHalf or RoundBfloat16; a constant is rounded here."""
    array, brain = b.value(node.inputs[0]), node.attrs["to"] == TensorProto.BFLOAT16
    if array is not None:
        rounded = (round_bfloat16 if brain else round_half)(array.astype(np.float32))
        return [node.new("Constant", (), node.outputs, value=rounded)]
    real = b.fresh(f"{node.outputs[0]}.real")
    cast = node.new("Cast", node.inputs, (real,), to=int(TensorProto.FLOAT))
    return [
        replace(cast, version=max(node.version, CAST)),
        replace(node, op="RoundBfloat16" if brain else "RoundHalf", inputs=(real,), attrs={}),
    ]


REWRITES: Rewrites = {("glowc", "CastHalf"): cast_half}


def _kind(value: Any, kinds: Collection[int]) -> Any:
    return int(TensorProto.FLOAT) if value in kinds else value


def _widened(value: Any, kinds: Collection[int]) -> Any:
    if isinstance(value, np.ndarray) and _BY_NAME.get(value.dtype.name) in kinds:
        return value.astype(np.float32)
    return value
