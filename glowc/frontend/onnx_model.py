"""ModelProto -> plain Python: nodes with converted attributes, arrays, opsets. No decisions here."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from glowc.frontend.problems import NodeError, Problems

DEFAULT_DOMAINS = ("", "ai.onnx")
LARGEST_SPARSE_ELEMENTS = 1 << 24
OLDEST_IR, OLDEST_OPSET = 3, 7

Dim = int | str | None


@dataclass(frozen=True, slots=True)
class OnnxNode:
    """One ONNX node; `domain` is "" for the default one, `version` the opset of its domain.

    Attribute values are int, float, str, tuples of those, numpy arrays (tensors) or GraphProto.
    """

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    domain: str = ""
    version: int = 0
    origin: str = ""
    overload: str = ""

    @property
    def full_op(self) -> str:
        """Operator name with its domain, as messages show it."""
        return f"{self.domain}::{self.op}" if self.domain else self.op

    @property
    def label(self) -> str:
        """How messages name this node."""
        return f'{self.full_op} "{self.origin}"'

    def input(self, index: int) -> str:
        """Name of input `index`, "" when it is left out."""
        return self.inputs[index] if index < len(self.inputs) else ""

    def ints(self, key: str) -> tuple[int, ...] | None:
        """An attribute that is a list of integers, None when absent."""
        value = self.attrs.get(key)
        return None if value is None else tuple(_whole(key, v) for v in np.atleast_1d(value))

    def int_(self, key: str, default: int) -> int:
        """An integer attribute."""
        return _whole(key, self.attrs.get(key, default))

    def float_(self, key: str, default: float) -> float:
        """A float attribute."""
        return float(self.attrs.get(key, default))

    def str_(self, key: str, default: str) -> str:
        """A string attribute."""
        return str(self.attrs.get(key, default))

    def new(self, op: str, inputs: Iterable[str], outputs: Iterable[str], **attrs: Any) -> OnnxNode:
        """Return another node of the default domain with the same origin."""
        return replace(self, op=op, inputs=tuple(inputs), outputs=tuple(outputs), attrs=attrs, domain="")


def _whole(key: str, value: Any) -> int:
    if isinstance(value, float) and not value.is_integer():
        raise NodeError(f"attribute {key} = {value} is not an integer")
    return int(value)


@dataclass(frozen=True, slots=True)
class OnnxInput:
    """A graph input: name, ONNX element type, dimensions (None = no shape given at all)."""

    name: str
    elem_type: int
    dims: tuple[Dim, ...] | None


@dataclass(frozen=True, slots=True)
class OnnxModel:
    """The parts of a model that the importer needs."""

    nodes: tuple[OnnxNode, ...]
    consts: Mapping[str, np.ndarray]
    inputs: tuple[OnnxInput, ...]
    outputs: tuple[str, ...]
    opsets: Mapping[str, int]
    functions: Mapping[tuple[str, str, str], onnx.FunctionProto]


def read_model(proto: onnx.ModelProto, problems: Problems) -> OnnxModel:
    """Convert `proto`; problems of the file as a whole are raised here."""
    if not _all_text(proto):
        problems.add("the file is damaged: a name is not text", "copy or download the file again")
        problems.check()
    opsets = {_domain(o.domain): o.version for o in proto.opset_import}
    _check_versions(proto, opsets, problems)
    consts = read_consts(proto.graph, problems)
    inputs = tuple(_input(v) for v in proto.graph.input if v.name not in consts)
    nodes = convert_nodes(proto.graph.node, opsets, problems)
    functions = {(_domain(f.domain), f.name, f.overload): f for f in proto.functions}
    if not proto.graph.output:
        problems.add("the graph has no outputs")
    outputs = tuple(v.name for v in proto.graph.output)
    _check_names(nodes, consts, [v.name for v in proto.graph.input], outputs, problems)
    problems.check()
    return OnnxModel(nodes, consts, inputs, outputs, opsets, functions)


def _domain(domain: str) -> str:
    return "" if domain in DEFAULT_DOMAINS else domain


def _check_versions(proto: onnx.ModelProto, opsets: Mapping[str, int], problems: Problems) -> None:
    newest, opset = onnx.defs.onnx_opset_version(), opsets.get("", 0)
    if proto.ir_version < OLDEST_IR:
        problems.add(f"ONNX IR version {proto.ir_version} is older than {OLDEST_IR}", "export the model again")
    if opset > newest:
        problems.add(
            f"opset {opset} is newer than {newest}, the newest opset of the onnx package {onnx.__version__}",
            f"export with opset_version={newest}, or upgrade the onnx package",
        )
    elif opset < 0:
        problems.add(f"opset {opset} is not a version of ONNX", "export the model again")
    elif 0 < opset < OLDEST_OPSET:
        problems.add(
            f"opset {opset} is older than {OLDEST_OPSET}",
            "convert it: onnx.version_converter.convert_version(model, 13)",
        )
    elif not opset and any(_domain(n.domain) == "" for n in proto.graph.node):
        problems.add("the model does not say which opset it uses", "export the model again")


def read_consts(graph: onnx.GraphProto, problems: Problems) -> dict[str, np.ndarray]:
    """Return the arrays of all initialisers; one that is damaged is a problem."""
    result: dict[str, np.ndarray] = {}
    for tensor in graph.initializer:
        if tensor.name in result:
            problems.add(f'two initializers are named "{tensor.name}"')
        try:
            result[tensor.name] = to_array(tensor)
        except (ValueError, TypeError, NodeError) as error:
            problems.add(f'initializer "{tensor.name}" of shape {list(tensor.dims)}: {error}', "export the model again")
    for sparse in graph.sparse_initializer:
        try:
            result[sparse.values.name] = dense(sparse)
        except NodeError as error:
            problems.add(f'sparse initializer "{sparse.values.name}": {error}', "export the model again")
    return result


def to_array(tensor: onnx.TensorProto) -> np.ndarray:
    """Return the array of a tensor; NodeError when its data do not fill its shape."""
    if any(d < 0 for d in tensor.dims):
        raise NodeError("a dimension is negative")
    try:
        return np.asarray(numpy_helper.to_array(tensor))
    except KeyError as error:
        raise NodeError(f"element type {tensor.data_type} is unknown") from error
    except (ValueError, TypeError) as error:
        raise NodeError("its data do not fill its shape") from error


def dense(sparse: onnx.SparseTensorProto) -> np.ndarray:
    """Return a sparse tensor as an ordinary array. Raises NodeError when it is damaged or too large."""
    values, indices = to_array(sparse.values), to_array(sparse.indices)
    if any(d < 0 for d in sparse.dims) or math.prod(sparse.dims) > LARGEST_SPARSE_ELEMENTS:
        raise NodeError(f"its shape {list(sparse.dims)} is no shape of at most {LARGEST_SPARSE_ELEMENTS:,} elements")
    result = np.zeros(tuple(sparse.dims), values.dtype)
    try:
        if indices.ndim == 1:
            result.reshape(-1)[indices] = values
        else:
            result[tuple(indices.T)] = values
    except (IndexError, ValueError) as error:
        raise NodeError(f"its indices do not fit its shape {list(sparse.dims)}") from error
    return result


def _input(value: onnx.ValueInfoProto) -> OnnxInput:
    if value.type.WhichOneof("value") != "tensor_type":
        return OnnxInput(value.name, 0, None)
    tensor = value.type.tensor_type
    if not tensor.HasField("shape"):
        return OnnxInput(value.name, tensor.elem_type, None)
    return OnnxInput(value.name, tensor.elem_type, tuple(_dim(d) for d in tensor.shape.dim))


def _dim(dim: onnx.TensorShapeProto.Dimension) -> Dim:
    if dim.HasField("dim_value"):
        # Some exporters write -1 where they mean "unknown".
        return int(dim.dim_value) if dim.dim_value >= 0 else None
    return str(dim.dim_param) or None


def _all_text(proto: onnx.ModelProto) -> bool:
    """False when a name is no UTF-8, which protobuf then hands over as bytes."""
    graph = proto.graph
    names: list[object] = [v.name for v in (*graph.input, *graph.output, *graph.initializer)]
    names += [o.domain for o in proto.opset_import]
    for node in graph.node:
        names += [node.op_type, node.domain, node.name, node.overload, *node.input, *node.output]
        names += [a.name for a in node.attribute]
    names += [d.dim_param for v in graph.input for d in v.type.tensor_type.shape.dim]
    return all(isinstance(name, str) for name in names)


def convert_nodes(
    protos: Iterable[onnx.NodeProto], opsets: Mapping[str, int], problems: Problems
) -> tuple[OnnxNode, ...]:
    """Convert nodes; a node without a name is called by its operator and position."""
    result: list[OnnxNode] = []
    for index, proto in enumerate(protos):
        try:
            result.append(convert_node(proto, opsets, index))
        except (NodeError, ValueError, TypeError) as error:
            problems.add(f'{proto.op_type} "{proto.name}": an attribute is damaged: {error}')
    return tuple(result)


def convert_node(proto: onnx.NodeProto, opsets: Mapping[str, int], index: int) -> OnnxNode:
    """Convert one node."""
    domain, inputs = _domain(proto.domain), list(proto.input)
    while inputs and not inputs[-1]:
        inputs.pop()
    attrs = {a.name: convert_attr(a) for a in proto.attribute if not a.ref_attr_name}
    origin = proto.name or f"{proto.op_type}_{index}"
    return OnnxNode(
        proto.op_type,
        tuple(inputs),
        tuple(proto.output),
        attrs,
        domain,
        opsets.get(domain, 1),
        origin,
        proto.overload,
    )


def convert_attr(attribute: onnx.AttributeProto) -> Any:
    """Return an attribute as int, float, str, tuple, array or GraphProto."""
    if attribute.type == onnx.AttributeProto.TENSOR:
        return to_array(attribute.t)
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, onnx.SparseTensorProto):
        return dense(value)
    if isinstance(value, list | tuple) or hasattr(value, "__iter__"):
        return tuple(v.decode("utf-8", "replace") if isinstance(v, bytes) else v for v in value)
    return value


def _check_names(
    nodes: tuple[OnnxNode, ...],
    consts: Mapping[str, np.ndarray],
    inputs: list[str],
    outputs: tuple[str, ...],
    problems: Problems,
) -> None:
    owner: dict[str, str] = dict.fromkeys(consts, "an initializer")
    for name in inputs:
        if owner.get(name) == "a graph input":
            problems.add(f'two graph inputs are named "{name}"')
        owner[name] = "a graph input"
    for node in nodes:
        for name in filter(None, node.outputs):
            if name in owner:
                problems.add(f'{node.label} writes "{name}", which is already the name of {owner[name]}')
            owner[name] = f"the output of {node.label}"
    for name in sorted({n for n in outputs if outputs.count(n) > 1}):
        problems.add(f'two graph outputs are named "{name}"')
