"""Evaluates single ONNX nodes whose inputs are known, and asks ONNX for types of operators glowc lacks.

`onnx.reference` gives the values; it is loaded only when a model needs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from glowc.frontend.onnx_model import OnnxNode
from glowc.frontend.problems import NodeError
from glowc.frontend.symbols import ELEMENT_TYPES
from glowc.graph.types import DType, TensorType

# numpy names of the element kinds that the graph has
ONNX_TYPES: dict[str, DType] = {
    "float16": DType.F16, "float32": DType.F32, "float64": DType.F64, "int4": DType.S4, "uint4": DType.U4,
    "int2": DType.S2, "uint2": DType.U2,
    "int8": DType.S8, "uint8": DType.U8, "int16": DType.S16, "uint16": DType.U16, "int32": DType.S32,
    "uint32": DType.U32, "int64": DType.S64, "uint64": DType.U64, "bool": DType.BOOL,
}  # fmt: skip
# of those whose codes are kept instead of numbers
CODED_TYPES: dict[str, DType] = {
    "float8_e4m3fn": DType.E4M3FN, "float8_e4m3fnuz": DType.E4M3FNUZ, "float8_e5m2": DType.E5M2,
    "float8_e5m2fnuz": DType.E5M2FNUZ, "float8_e8m0fnu": DType.E8M0, "float4_e2m1fn": DType.E2M1,
}  # fmt: skip
_ELEM_OF = {kind: elem for elem, kind in ELEMENT_TYPES.items()}
NEVER_FOLDED = frozenset({
    "QuantizeLinear", "DequantizeLinear", "RandomNormal", "RandomUniform", "RandomNormalLike", "Multinomial",
    "RandomUniformLike", "Bernoulli", "If", "Loop", "Scan", "Dropout",
})  # fmt: skip


def onnx_element_type(kind: DType) -> int:
    """Return ONNX's number of an element kind."""
    return _ELEM_OF[kind]


def evaluate(node: OnnxNode, inputs: Sequence[np.ndarray | None]) -> tuple[np.ndarray, ...]:
    """Return the outputs of a node with known inputs; NodeError when ONNX cannot evaluate it."""
    from onnx.reference import ReferenceEvaluator

    names = [f"x{i}" if array is not None else "" for i, array in enumerate(inputs)]
    outs = [f"y{i}" for i, name in enumerate(node.outputs) if name]
    wanted = iter(outs)
    proto = to_proto(node, names, [next(wanted) if name else "" for name in node.outputs])
    graph = onnx.GraphProto(
        node=[proto],
        input=[onnx.ValueInfoProto(name=n) for n in names if n],
        output=[onnx.ValueInfoProto(name=n) for n in outs],
    )
    feeds = {name: array for name, array in zip(names, inputs, strict=True) if array is not None}
    try:
        with np.errstate(all="ignore"):
            results = ReferenceEvaluator(graph, opsets={node.domain: max(node.version, 1)}).run(None, feeds)
    except Exception as error:
        raise NodeError(f"constant inputs do not fit the operator: {_first_line(error)}") from error
    if not all(isinstance(r, np.ndarray | np.generic) for r in results):
        raise NodeError("its result is no tensor")
    return tuple(np.asarray(r) for r in results)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def can_evaluate(node: OnnxNode) -> bool:
    """True when a node may be folded: ONNX defines it and it gives the same result every time."""
    return node.op not in NEVER_FOLDED and node.domain == "" and onnx.defs.has(node.op)


def to_proto(node: OnnxNode, inputs: Sequence[str], outputs: Sequence[str]) -> onnx.NodeProto:
    """Return the ONNX form of a node with other value names."""
    proto = onnx.NodeProto(op_type=node.op, domain=node.domain, input=inputs, output=outputs, name=node.origin)
    proto.attribute.extend(_attribute(key, value) for key, value in node.attrs.items())
    return proto


def _attribute(key: str, value: Any) -> onnx.AttributeProto:
    if isinstance(value, np.ndarray):
        value = numpy_helper.from_array(value)
    if value == ():
        return onnx.helper.make_attribute(key, value, attr_type=onnx.AttributeProto.INTS)
    return onnx.helper.make_attribute(key, value)


def find_schema(node: OnnxNode) -> onnx.defs.OpSchema | None:
    """Return ONNX's definition of a node's operator; the newest one when the model's opset is older."""
    domain = node.domain
    if not onnx.defs.has(node.op, domain):
        return None
    try:
        return onnx.defs.get_schema(node.op, node.version or 1, domain)
    except onnx.defs.SchemaError:
        return onnx.defs.get_schema(node.op, domain)


def infer_onnx(
    node: OnnxNode, types: Mapping[str, TensorType], consts: Mapping[str, np.ndarray]
) -> tuple[TensorType, ...] | None:
    """Return output types by ONNX's own rule, None when it has none or gives no static shape."""
    schema = find_schema(node)
    if schema is None:
        return None
    known = {name: types[name] for name in node.inputs if name in types}
    protos = {name: tensor_proto_type(t) for name, t in known.items()}
    data = {name: numpy_helper.from_array(consts[name], name) for name in known if name in consts}
    try:
        proto = to_proto(node, node.inputs, node.outputs)
        result = onnx.shape_inference.infer_node_outputs(
            schema,
            proto,
            protos,
            data,
            opset_imports=[onnx.helper.make_opsetid("", onnx.defs.onnx_opset_version())],
        )
    except Exception:  # a broken node: the checker in there raises its own kinds of errors
        return None
    found = tuple(_from_proto(result[name]) for name in node.outputs if name in result)
    return found if all(t is not None for t in found) and found else None  # type: ignore[return-value]


def tensor_proto_type(type_: TensorType) -> onnx.TypeProto:
    """Return the ONNX form of a type."""
    return onnx.helper.make_tensor_type_proto(_ELEM_OF[type_.dtype], type_.shape)


def _from_proto(proto: onnx.TypeProto) -> TensorType | None:
    tensor = proto.tensor_type
    dims = [d.dim_value for d in tensor.shape.dim if d.HasField("dim_value")]
    kind = ELEMENT_TYPES.get(tensor.elem_type)
    if kind is None or not tensor.HasField("shape") or len(dims) != len(tensor.shape.dim):
        return None
    return TensorType(tuple(dims), kind)
