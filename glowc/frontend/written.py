"""Reads back what `writer` says in glowc's own domain: operators of the graph as they stand, with types of values."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
import onnx

from glowc.errors import InternalError
from glowc.frontend.builder import Builder
from glowc.frontend.onnx_model import OnnxNode
from glowc.frontend.problems import NodeError, Problems, UnsupportedOpError, problem_error
from glowc.graph.attrs import AttrValue
from glowc.graph.graph import Graph
from glowc.graph.text import parse_type
from glowc.graph.types import TensorType
from glowc.ops.registry import find_op
from glowc.ops.verify import verify

GRAPH_DOMAIN = "glowc.graph"
"""Of nodes that are no operators of ONNX."""
ONNX_DOMAIN = "ai.onnx"
"""Of operators of ONNX that the graph has in no form of its own."""
TYPES_KEY = "glowc.types"
"""In the metadata: the type of every value, as in a dump."""
_AGAIN = "write the file again with glowc compile --dump-onnx"


def written_types(model: onnx.ModelProto) -> dict[str, TensorType] | None:
    """Return the types of values that a model's metadata has; None where they cannot be read."""
    texts = [entry.value for entry in model.metadata_props if entry.key == TYPES_KEY]
    try:
        return {name: parse_type(text) for each in texts for name, text in json.loads(each).items()}
    except (ValueError, TypeError, AttributeError, SyntaxError):
        return None


def check_written(
    written: Mapping[str, TensorType] | None, types: dict[str, TensorType], problems: Problems
) -> Mapping[str, TensorType]:
    """Give inputs and constants their written types; report a text that is none."""
    if written is None:
        problems.add(f"the metadata {TYPES_KEY} are damaged", _AGAIN)
        problems.check()
    found = written or {}
    for name, type_ in found.items():
        known = types.get(name)
        if known is not None and (known.shape, known.dtype) == (type_.shape, type_.dtype):
            types[name] = type_
    return found


def take_written(node: OnnxNode, b: Builder, types: Mapping[str, TensorType]) -> None:
    """Append an operator of the graph as it stands. Raises NodeError where types of its values are missing."""
    if find_op(node.op) is None:
        raise UnsupportedOpError(node.full_op)
    missing = [name for name in (*node.inputs, *node.outputs) if name and name not in types]
    if missing:
        raise NodeError(f'the metadata {TYPES_KEY} say no type of "{missing[0]}"')
    attrs = {key: _value(value) for key, value in node.attrs.items()}
    _check_count(node)
    b.take(
        node.op, node.inputs, node.outputs, attrs, [types.get(name, types[node.outputs[0]]) for name in node.outputs]
    )


def _check_count(node: OnnxNode) -> None:
    """Raise NodeError for more or fewer inputs than ONNX's operator has, of which some are attributes in the graph."""
    name = "Gemm" if node.op == "FullyConnected" else node.op
    if onnx.defs.has(name):
        schema = onnx.defs.get_schema(name)
        count = len(node.inputs) + len({each.name.lower() for each in schema.inputs} & node.attrs.keys())
        if not schema.min_input <= count <= schema.max_input:
            raise NodeError(f"{len(node.inputs)} inputs are not as many as {node.op} has", _AGAIN)


def check_graph(graph: Graph, problems: Problems) -> None:
    """Raise ModelError where what was read is no graph: the file was changed since glowc wrote it."""
    try:
        verify(graph)
    except InternalError as error:
        raise problem_error(problems.source, [*error.details], [_AGAIN]) from error


def _value(value: object) -> AttrValue:
    """Return an attribute; a tensor has numbers that float32 does not hold."""
    if isinstance(value, np.ndarray):
        return tuple(value.tolist()) if value.ndim else float(value)
    if isinstance(value, int | float | str | tuple):
        return value
    raise NodeError(f"an attribute is a {type(value).__name__}, which is not supported")
