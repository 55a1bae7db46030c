"""What ONNX's own definition of an operator says about a node: its attributes, its version, its defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import onnx

from glowc.frontend.fold import find_schema
from glowc.frontend.normalize import NEWEST_OPSET
from glowc.frontend.onnx_model import OnnxNode
from glowc.frontend.problems import NodeError
from glowc.graph.attrs import AttrValue
from glowc.graph.types import DType, TensorType
from glowc.ops.base import OpDef
from glowc.ops.integer import FLOAT_WEIGHTS

LARGEST_EXTENT = 1 << 24
"""Of a window's size, stride, dilation or padding: sums and products with positions stay inside of int32_t."""
_EXTENTS = frozenset({
    "kernel_shape", "strides", "dilations", "pads", "output_padding", "output_shape", "blocksize", "group", "repeats",
})  # fmt: skip


def check_inputs(node: OnnxNode) -> None:
    """Raise NodeError for inputs that are missing; ONNX's own tests have sequences of nothing."""
    schema = find_schema(node) if node.domain == "" else None
    if schema is None or node.op == "SequenceConstruct":
        return
    missing = [i for i in range(_fewest_inputs(node.op)) if not node.input(i) and not _optional(schema, i)]
    if missing:
        names = [f"{i} ({schema.inputs[min(i, len(schema.inputs) - 1)].name})" for i in missing]
        raise NodeError(f"input {', '.join(names)} is missing")


def check_schema(node: OnnxNode) -> None:
    """Raise NodeError for attributes that ONNX's definition of the operator lacks."""
    schema = find_schema(node) if node.domain == "" else None
    if schema is None:
        return
    unknown = [key for key in node.attrs if key not in schema.attributes and key not in FLOAT_WEIGHTS]
    # An attribute of a neighbouring opset (axes of Squeeze-13, say) still has its plain meaning.
    newest = onnx.defs.get_schema(node.op)
    unknown = [key for key in unknown if key not in newest.attributes and not _ever_known(node.op, key)]
    _check_extents(node)
    if unknown:
        raise NodeError(f"unknown attribute {', '.join(unknown)}", "export the model with a standard exporter")


def check_outputs(node: OnnxNode) -> None:
    """Raise NodeError for outputs that no version of ONNX's definition of the operator has."""
    schema = find_schema(node) if node.domain == "" else None
    if schema is None:
        return
    most = max(schema.max_output, onnx.defs.get_schema(node.op).max_output)
    extra = [name for name in node.outputs[most:] if name]
    if extra:
        raise NodeError(f"output {', '.join(extra)} is one too many: {node.op} has at most {most}")


def _check_extents(node: OnnxNode) -> None:
    """Raise NodeError for windows, steps and paddings that leave what int32_t addresses in the generated code."""
    for key in _EXTENTS & node.attrs.keys():
        value = node.attrs[key]
        numbers = value if isinstance(value, tuple) else (value,)
        if any(isinstance(v, int) and abs(v) > LARGEST_EXTENT for v in numbers):
            raise NodeError(f"attribute {key} = {node.attrs[key]}: at most {LARGEST_EXTENT:,} is supported")


def check_types(node: OnnxNode, types: Mapping[str, TensorType]) -> None:
    """Raise NodeError for attributes and inputs of kinds that ONNX's definition of the operator does not allow.

    Inputs that share a type variable must be of one kind. (De)QuantizeLinear look at theirs themselves.
    """
    schema = find_schema(node) if node.domain == "" else None
    if schema is None or node.version < schema.since_version or node.op in ("QuantizeLinear", "DequantizeLinear"):
        return
    kinds: dict[str, Any] = dict(schema.attributes)
    for key, value in node.attrs.items():
        wanted = str(kinds[key].type.name) if key in kinds else ""
        if wanted in _ATTRIBUTES and not _ATTRIBUTES[wanted](value):
            raise NodeError(f"attribute {key} = {_shown(value)} is not of the type {wanted.lower()}")
    allowed = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    bound: dict[str, str] = {}
    for index, name in enumerate(node.inputs):
        formal = schema.inputs[min(index, len(schema.inputs) - 1)] if schema.inputs else None
        if formal is None or name not in types:
            continue
        kind, variable = _KINDS[types[name].dtype], formal.type_str
        if kind not in allowed.get(variable, [variable]):
            raise NodeError(f'input {index} ("{name}") is {types[name]}, which the operator does not take')
        if formal.is_homogeneous and bound.setdefault(variable, kind) != kind:
            raise NodeError(f'input {index} ("{name}") is {types[name]}, but other inputs are {bound[variable][7:-1]}')


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) < 80 else f"{text[:76]} ..."


_ATTRIBUTES: Mapping[str, Callable[[object], bool]] = {
    "INT": lambda v: isinstance(v, int), "FLOAT": lambda v: isinstance(v, float | int),
    "STRING": lambda v: isinstance(v, str),
    "INTS": lambda v: isinstance(v, tuple) and all(isinstance(i, int) for i in v),
    "FLOATS": lambda v: isinstance(v, tuple) and all(isinstance(i, float | int) for i in v),
    "GRAPH": lambda v: isinstance(v, onnx.GraphProto), "TENSOR": lambda v: isinstance(v, np.ndarray),
}  # fmt: skip
_KINDS = {
    DType.F16: "tensor(float16)", DType.F32: "tensor(float)", DType.F64: "tensor(double)", DType.S4: "tensor(int4)",
    DType.U4: "tensor(uint4)", DType.S8: "tensor(int8)", DType.U8: "tensor(uint8)", DType.S16: "tensor(int16)",
    DType.U16: "tensor(uint16)", DType.S32: "tensor(int32)", DType.U32: "tensor(uint32)", DType.S64: "tensor(int64)",
    DType.U64: "tensor(uint64)", DType.BOOL: "tensor(bool)", DType.S2: "tensor(int2)", DType.U2: "tensor(uint2)",
    DType.E4M3FN: "tensor(float8e4m3fn)", DType.E4M3FNUZ: "tensor(float8e4m3fnuz)", DType.E5M2: "tensor(float8e5m2)",
    DType.E5M2FNUZ: "tensor(float8e5m2fnuz)", DType.E8M0: "tensor(float8e8m0)", DType.E2M1: "tensor(float4e2m1)",
}  # fmt: skip


def _optional(schema: onnx.defs.OpSchema, index: int) -> bool:
    """Say whether an input may be left out though others follow (M and cond of Loop)."""
    kind = onnx.defs.OpSchema.FormalParameterOption.Optional
    return index < len(schema.inputs) and schema.inputs[index].option == kind


@cache
def _fewest_inputs(op: str) -> int:
    """Return the inputs that an operator of ONNX has in all its versions."""
    return min(s.min_input for s in _every_version() if s.name == op and s.domain == "")


@cache
def _every_version() -> tuple[onnx.defs.OpSchema, ...]:
    return tuple(onnx.defs.get_all_schemas_with_history())


def _ever_known(op: str, key: str) -> bool:
    for version in range(1, onnx.defs.onnx_opset_version()):
        try:
            if key in onnx.defs.get_schema(op, version).attributes:
                return True
        except onnx.defs.SchemaError:
            continue
    return False


def check_version(node: OnnxNode, opdef: OpDef | None) -> None:
    """Raise NodeError when the model's opset defines the operator anew, later than glowc knows."""
    schema = find_schema(node) if node.domain == "" else None
    known = opdef.max_version if opdef is not None and opdef.max_version else NEWEST_OPSET
    if schema is not None and schema.since_version > known:
        raise NodeError(
            f"opset {schema.since_version} defines it anew; glowc knows its definition up to opset {known}",
            f"export with opset_version={schema.since_version - 1}",
        )


def defaults(node: OnnxNode, opdef: OpDef) -> dict[str, AttrValue]:
    """Return ONNX's default values of the attributes that the operator of the registry knows."""
    schema = find_schema(node) if node.domain == "" else None
    if schema is None:
        return {}
    result: dict[str, AttrValue] = {}
    for key, attribute in schema.attributes.items():
        if key in opdef.attrs and attribute.default_value.type:
            value = onnx.helper.get_attribute_value(attribute.default_value)
            result[key] = value.decode() if isinstance(value, bytes) else value
    return result
