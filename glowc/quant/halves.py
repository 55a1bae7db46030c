"""Models in half or double precision -> the same in float32, which is what the quantiser measures."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import onnx
from onnx import GraphProto, NodeProto, TensorProto, numpy_helper

OTHER_FLOATS = frozenset({TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE})
_NAMES_TYPE = frozenset({"to", "dtype", "stash_type", "softmax_precision"})
"""Attributes that are an element type."""


def widen(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model with all values of float16, bfloat16 and float64 as float32."""
    done = onnx.ModelProto()
    done.CopyFrom(model)
    _widen_graph(done.graph)
    for function in done.functions:
        _widen_nodes(function.node)
    return done


def _widen_graph(graph: GraphProto) -> None:
    for tensor in graph.initializer:
        _widen_tensor(tensor)
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.tensor_type.elem_type in OTHER_FLOATS:
            value.type.tensor_type.elem_type = TensorProto.FLOAT
    _widen_nodes(graph.node)


def _widen_nodes(nodes: Iterable[NodeProto]) -> None:
    for attribute in (a for node in nodes for a in node.attribute):
        _widen_tensor(attribute.t)
        for graph in (attribute.g, *attribute.graphs):
            _widen_graph(graph)
        if attribute.name in _NAMES_TYPE and attribute.i in OTHER_FLOATS:
            attribute.i = TensorProto.FLOAT


def _widen_tensor(tensor: TensorProto) -> None:
    if tensor.data_type in OTHER_FLOATS:
        tensor.CopyFrom(numpy_helper.from_array(np.asarray(numpy_helper.to_array(tensor), np.float32), tensor.name))
