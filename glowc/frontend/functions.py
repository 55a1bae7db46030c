"""Inlines functions: those that the model brings along, and the bodies that ONNX gives for an operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import onnx

from glowc.frontend.fold import find_schema, tensor_proto_type, to_proto
from glowc.frontend.onnx_model import OnnxNode, convert_attr, convert_node
from glowc.graph.types import TensorType

Fresh = Callable[[str], str]


def schema_function(node: OnnxNode, in_types: Sequence[TensorType | None]) -> onnx.FunctionProto | None:
    """Return ONNX's own definition of an operator by simpler ones, None when it has none."""
    schema: Any = find_schema(node)  # the stubs of onnx lack the function members
    if schema is None:
        return None
    if schema.has_function:
        body: onnx.FunctionProto = schema.function_body
        return body
    if not schema.has_context_dependent_function:
        return None
    versions = [v for v in schema.context_dependent_function_opset_versions if v <= max(node.version, 1)]
    version = max(versions, default=min(schema.context_dependent_function_opset_versions))
    types = [tensor_proto_type(t).SerializeToString() if t else b"" for t in in_types]
    proto = to_proto(node, node.inputs, node.outputs).SerializeToString()
    data = schema.get_context_dependent_function_with_opset_version(version, proto, types)
    return onnx.FunctionProto.FromString(data) if data else None


def inline(function: onnx.FunctionProto, node: OnnxNode, fresh: Fresh) -> list[OnnxNode]:
    """Return the nodes of a function's body with the call's values and attributes put in."""
    names = {"": ""}
    names.update(zip(function.input, [*node.inputs, *[""] * len(function.input)], strict=False))
    names.update(zip(function.output, node.outputs, strict=False))
    values: dict[str, Any] = {**_defaults(node), **{a.name: convert_attr(a) for a in function.attribute_proto}}
    values.update(node.attrs)
    opsets = {"" if o.domain == "ai.onnx" else o.domain: o.version for o in function.opset_import}
    result: list[OnnxNode] = []
    for index, proto in enumerate(function.node):
        inner = convert_node(proto, opsets, index)
        for out in inner.outputs:
            if out and not names.get(out):
                names[out] = fresh(f"{node.origin}/{out}")
        result.append(_instance(inner, proto, node, names, values))
    return result


def _defaults(node: OnnxNode) -> dict[str, Any]:
    """Default values of ONNX's attributes of an operator."""
    schema = find_schema(node)
    found = schema.attributes.items() if schema is not None else ()
    return {key: convert_attr(a.default_value) for key, a in found if a.default_value.type}


def _instance(
    inner: OnnxNode,
    proto: onnx.NodeProto,
    call: OnnxNode,
    names: Mapping[str, str],
    values: Mapping[str, Any],
) -> OnnxNode:
    attrs = dict(inner.attrs)
    for attribute in proto.attribute:
        if attribute.ref_attr_name and attribute.ref_attr_name in values:
            attrs[attribute.name] = values[attribute.ref_attr_name]
    for key, value in attrs.items():
        if isinstance(value, onnx.GraphProto):
            attrs[key] = renamed_graph(value, names, values)
    inputs = [names[name] for name in inner.inputs]
    while inputs and not inputs[-1]:
        inputs.pop()
    outputs = tuple(names[name] for name in inner.outputs)
    return replace(inner, inputs=tuple(inputs), outputs=outputs, attrs=attrs, origin=call.origin)


def renamed_graph(graph: onnx.GraphProto, names: Mapping[str, str], values: Mapping[str, Any]) -> onnx.GraphProto:
    """Return a branch or loop body with the names and attributes of the scope around it put in."""
    result = onnx.GraphProto()
    result.CopyFrom(graph)
    own = {v.name for v in graph.input} | {t.name for t in graph.initializer}
    own |= {out for node in graph.node for out in node.output}
    outer = {old: new for old, new in names.items() if old not in own}
    for node in result.node:
        node.input[:] = [outer.get(name, name) for name in node.input]
        for attribute in node.attribute:
            if attribute.ref_attr_name in values and attribute.ref_attr_name:
                made = onnx.helper.make_attribute(attribute.name, values[attribute.ref_attr_name])
                attribute.CopyFrom(made)
            elif attribute.type == onnx.AttributeProto.GRAPH:
                attribute.g.CopyFrom(renamed_graph(attribute.g, outer, values))
    for value in result.output:
        value.name = outer.get(value.name, value.name)
    return result


def inline_graph(graph: onnx.GraphProto, node: OnnxNode, opsets: Mapping[str, int], fresh: Fresh) -> list[OnnxNode]:
    """Return the nodes of a branch of an If; its outputs get the names of the If's."""
    own = {t.name for t in graph.initializer} | {out for inner in graph.node for out in inner.output}
    names: dict[str, str] = {}
    for value, out in zip(graph.output, node.outputs, strict=True):
        if out and value.name in own:
            names.setdefault(value.name, out)
    result: list[OnnxNode] = []
    for tensor in graph.initializer:
        names.setdefault(tensor.name, fresh(f"{node.origin}/{tensor.name}"))
        constant = node.new("Constant", (), (names[tensor.name],), value=onnx.numpy_helper.to_array(tensor))
        result.append(constant)
    for index, proto in enumerate(graph.node):
        inner = convert_node(proto, opsets, index)
        for out in inner.outputs:
            if out:
                names.setdefault(out, fresh(f"{node.origin}/{out}"))
        inputs = tuple(names.get(name, name) for name in inner.inputs)
        outputs = tuple(names.get(name, "") for name in inner.outputs)
        attrs = {
            k: renamed_graph(v, names, {}) if isinstance(v, onnx.GraphProto) else v for k, v in inner.attrs.items()
        }
        origin = f"{node.origin}/{inner.origin}"
        result.append(replace(inner, inputs=inputs, outputs=outputs, attrs=attrs, origin=origin))
    for value, out in zip(graph.output, node.outputs, strict=True):
        if out and names.get(value.name) != out:  # the branch returns a value from outside, or one twice
            result.append(node.new("Identity", (names.get(value.name, value.name),), (out,)))
    return result
