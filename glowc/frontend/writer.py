"""Graph -> ONNX model: what ONNX can say in its own operators, the rest in a domain of glowc's.

A node is an operator of ONNX where it means just that: no layout but ONNX's, no codes but between QuantizeLinear and
DequantizeLinear or where they are only moved. Any other one has its name and all its attributes in `GRAPH_DOMAIN`; the
types of all values, with their quantisation, stand in the metadata: `import_onnx` reads the same graph back.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx
from onnx import NodeProto, helper, numpy_helper

from glowc.frontend.builder import MOVES
from glowc.frontend.fold import onnx_element_type
from glowc.frontend.written import GRAPH_DOMAIN, ONNX_DOMAIN, TYPES_KEY
from glowc.graph.attrs import AttrValue
from glowc.graph.graph import Graph, Node
from glowc.graph.text import print_type
from glowc.graph.types import NARROW, DType, QuantParams, TensorType
from glowc.ops.registry import find_op
from glowc.paths import full_version

LEAST_OPSET = 13  # QuantizeLinear and DequantizeLinear know an axis from here on
_MICROSOFT = "com.microsoft"
_OPSETS = {"GridSample": 20}
"""From these on the attributes of an operator are what the graph says."""
_QDQ = frozenset({"QuantizeLinear", "DequantizeLinear"})
_USUAL = (("group", 1), ("ceil_mode", 0))
_LAYERS = frozenset({"Conv", "ConvTranspose", "FullyConnected"})
_CLAMP = {"act_min": -np.inf, "act_max": np.inf}
_INPUTS: Mapping[str, Mapping[str, int]] = {
    "Reshape": {"shape": 1}, "Expand": {"shape": 1}, "Tile": {"repeats": 1}, "Split": {"split": 1},
    "Slice": {"starts": 1, "ends": 2, "axes": 3, "steps": 4}, "Pad": {"pads": 1, "value": 2},
    "CumSum": {"axis": 1}, "CumProd": {"axis": 1}, "OneHot": {"depth": 1}, "TopK": {"k": 1},
    "Clip": {"min": 1, "max": 2}, "Resize": {"roi": 1, "scales": 2, "sizes": 3},
    **{f"Reduce{kind}": {"axes": 1} for kind in
       ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")},
}  # fmt: skip
"""Attributes that are inputs in ONNX, with their places."""
_SCALARS = frozenset({("Pad", "value"), ("Clip", "min"), ("Clip", "max"), ("CumSum", "axis"), ("CumProd", "axis"),
                      ("OneHot", "depth")})  # fmt: skip


def to_onnx(graph: Graph, least_opset: int = LEAST_OPSET) -> onnx.ModelProto:
    """Return the ONNX model of a graph, of the lowest opset from `least_opset` on that has its operators.

    States are inputs and outputs besides.
    """
    spelled = {n.name: attrs for n in graph.nodes if (attrs := _spelled(graph, n)) is not None}
    opset = max([least_opset, *(_first_opset(graph, n, spelled[n.name], least_opset) for n in graph.nodes
                                if n.name in spelled)])  # fmt: skip
    writer = _Writer(graph, opset, {*graph.types, ""})
    for node in graph.nodes:
        if node.name in spelled:
            writer.spell(node, spelled[node.name])
        else:
            writer.own(node)
    return writer.model()


def _spelled(graph: Graph, node: Node) -> dict[str, AttrValue] | None:
    """Return the attributes that a node has as an operator of ONNX; None where it is none."""
    op = find_op(node.op)
    name = "Gemm" if node.op == "FullyConnected" else node.op
    if op is None or op.domain not in ("", _MICROSOFT) or not (op.domain or onnx.defs.has(name)):
        return {**node.attrs} if op is None and ":" not in node.op and onnx.defs.has(node.op) else None
    if not _means_codes(graph, node):
        return None
    attrs = _renamed(node)
    if node.op == "Resize" and not _take_size(attrs, graph.types[node.inputs[0]].shape):
        return None
    known = {*_INPUTS.get(name, ()), *_CLAMP}
    if not op.domain:
        known |= {*onnx.defs.get_schema(name).attributes}
    usual = {key: attr.default for key, attr in op.attrs.items()}
    left = {key: value for key, value in attrs.items() if key in known or op.domain or value != usual.get(key)}
    return left if op.domain or left.keys() <= known else None


def _means_codes(graph: Graph, node: Node) -> bool:
    """Say whether ONNX's operator of that name takes the types of a node: real numbers, or codes that it only moves."""
    types = [graph.types[name] for name in (*node.inputs, *node.outputs) if name]
    quants = [t.quant for t in types if t.dtype is not DType.BOOL]
    if node.op in _QDQ:
        codes = graph.types[node.inputs[0] if node.op == "DequantizeLinear" else node.outputs[0]]
        return codes.quant is not None and not codes.quant.palette and "block_size" not in node.attrs
    if any(t.dtype in NARROW for t in types):
        return False
    if node.op == "FullyConnected":
        return types[0].dtype is DType.F32 and all(t.dtype is DType.F32 for t in types) and len(types[1].shape) == 2
    moved = node.op in MOVES and node.op not in ("Pad", "Resize") and len({*map(repr, quants[:1] + quants[-1:])}) == 1
    return moved or not any(quants)


def _renamed(node: Node) -> dict[str, AttrValue]:
    """Return the attributes of a node under ONNX's names."""
    attrs = {key: value for key, value in node.attrs.items() if not (node.op in _QDQ and key in ("dtype", "axis"))}
    if attrs.pop("batch_first", 0):
        attrs["layout"] = 1
    attrs = {key: value for key, value in attrs.items() if (key, value) not in _USUAL}
    ones, ceils = attrs.get("dilations"), "ceil_mode" in attrs
    if isinstance(ones, tuple) and {*ones} == {1} and not (node.op == "AveragePool" and ceils):
        del attrs["dilations"]  # AveragePool has none before opset 19, whose QDQ averages onnxruntime does not load
    if node.op == "Resize":
        begin, end = attrs.pop("roi_begin", ()), attrs.pop("roi_end", ())
        attrs |= {"roi": (*begin, *end)} if isinstance(begin, tuple) and isinstance(end, tuple) and begin else {}
    return attrs


def _take_size(attrs: dict[str, AttrValue], shape: tuple[int, ...]) -> bool:
    """Leave a Resize its sizes or its scales, of which the other ones follow; say whether they do.

    Not where axes keep their ratio and sizes are rounded: there neither follows from the other.
    """
    sizes, scales = np.asarray(attrs["sizes"]), np.asarray(attrs.pop("scales", ()), np.float64)
    if not scales.size or np.array_equal(scales, sizes / shape):
        return True
    del attrs["sizes"]
    attrs["scales"] = tuple(scales.tolist())
    return np.array_equal(scales, scales.astype(np.float32)) and np.array_equal(np.floor(scales * shape), sizes)


def _is_global_mean(graph: Graph, node: Node) -> bool:
    """Say whether a node is the mean over all axes of an image but batch and channels, for which ONNX has a name."""
    shape = graph.types[node.inputs[0]].shape if node.op == "ReduceMean" else ()
    return len(shape) > 2 and node.int_("keepdims") == 1 and node.ints("axes") == tuple(range(2, len(shape)))


def _first_opset(graph: Graph, node: Node, attrs: Mapping[str, AttrValue], least: int) -> int:
    """Return the lowest opset in which ONNX's operator has these attributes and element types."""
    kinds = {graph.types[name].dtype for name in (*node.inputs, *node.outputs) if name}
    bits = {t.quant.bits for n in node.inputs if n and (t := graph.types[n]).quant is not None}
    first = max(least, _OPSETS.get(node.op, 0))
    if node.op in _QDQ and (kinds & {DType.S16, DType.U16} or 4 in bits):
        first = max(first, 21)
    if node.op in _QDQ and 2 in bits:
        first = max(first, 25)
    name = "Gemm" if node.op == "FullyConnected" else node.op
    op = find_op(node.op)
    usual = {key for key, attr in (op.attrs if op is not None else {}).items() if attrs.get(key) == attr.default}
    needed = attrs.keys() - _INPUTS.get(name, {}).keys() - _CLAMP.keys() - usual
    for version in range(first, onnx.defs.onnx_opset_version() + 1):
        if onnx.defs.has(name, version) and needed <= onnx.defs.get_schema(name, version).attributes.keys():
            return version
    return first


@dataclass(slots=True)
class _Writer:
    """The model as it grows; the constants of the graph are in it from the start."""

    graph: Graph
    opset: int
    names: set[str]
    nodes: list[NodeProto] = field(default_factory=list)
    consts: list[onnx.TensorProto] = field(default_factory=list)
    made: set[str] = field(default_factory=set)

    def named(self, base: str) -> str:
        """Return a name that the model does not have."""
        while base in self.names:
            base += "_"
        self.names.add(base)
        return base

    def const(self, base: str, array: np.ndarray) -> str:
        """Add a constant and return its name."""
        name = self.named(base)
        self.consts.append(numpy_helper.from_array(np.asarray(array, order="C"), name))
        return name

    def add(self, op: str, inputs: Iterable[str], outputs: Iterable[str], name: str, domain: str = "") -> NodeProto:
        """Add a node; what it leaves out at the end stands not at all."""
        names = list(inputs)
        while names and not names[-1]:
            names.pop()
        node = helper.make_node(op, names, list(outputs), name=name, domain=domain)
        self.nodes.append(node)
        return node

    def own(self, node: Node) -> None:
        """Add a node as one of glowc's, or of another domain than ONNX's, with all its attributes."""
        domain, _, name = node.op.rpartition("::")
        domain = "" if domain == ONNX_DOMAIN else domain or GRAPH_DOMAIN
        new = self.add(name, node.inputs, node.outputs, node.name, domain)
        new.attribute.extend(_attribute(key, value) for key, value in node.attrs.items())

    def spell(self, node: Node, attrs: Mapping[str, AttrValue]) -> None:
        """Add a node as ONNX's operator, with a clamp behind it where it has one."""
        out = node.outputs[0]
        if _is_global_mean(self.graph, node):
            node, attrs = replace(node, op="GlobalAveragePool"), {k: v for k, v in attrs.items() if k in _CLAMP}
        if node.op in _LAYERS and self._is_zero(node.inputs[2:]):
            node = replace(node, inputs=node.inputs[:2])
        low, high = (float(attrs.get(key, end)) for key, end in _CLAMP.items())  # type: ignore[arg-type]
        clamped = (low, high) != (-np.inf, np.inf)
        sums = self.named(f"{out}_sums") if clamped else out
        if node.op == "FullyConnected":
            self._gemm(node, sums)
        else:
            self._plain(node, [sums, *node.outputs[1:]], {k: v for k, v in attrs.items() if k not in _CLAMP})
        if (low, high) == (0.0, np.inf):
            self.add("Relu", [sums], [out], f"{node.name}_relu")
        elif clamped:
            kind = self.graph.types[out].dtype.numpy
            ends = [self.const(f"{out}_{word}", np.asarray(end, kind)) if np.isfinite(end) else ""
                    for word, end in (("min", low), ("max", high))]  # fmt: skip
            self.add("Clip", [sums, *ends], [out], f"{node.name}_clip")

    def _plain(self, node: Node, outputs: list[str], attrs: Mapping[str, AttrValue]) -> None:
        op = find_op(node.op)
        domain = op.domain if op is not None else ""
        schema: dict[str, Any] | None = None
        if not domain:
            schema = dict(onnx.defs.get_schema(node.op, self.opset).attributes)
        inputs = list(node.inputs)
        for key, place in _INPUTS.get(node.op, {}).items():
            if schema is None or key not in schema:
                inputs += [""] * (place - len(inputs))
                inputs.insert(place, self._input(node, key, attrs[key]) if key in attrs else "")
        # onnxruntime ends where a result of a list has no name; other nodes are known by their first
        always = outputs if node.op == "Split" else outputs[:1]
        outputs = [name or self.named(f"{node.name}_unread") for name in always] + outputs[len(always) :]
        if node.op in _QDQ:
            inputs += self._params(node)
        new = self.add(node.op, inputs, outputs, node.name, domain)
        for key, value in attrs.items():
            if schema is None or key in schema:
                kind = None if schema is None else int(schema[key].type)
                new.attribute.append(helper.make_attribute(key, value, attr_type=kind))
        if node.op in _QDQ:
            codes = self.graph.types[node.inputs[0] if node.op == "DequantizeLinear" else node.outputs[0]]
            if codes.quant is not None and codes.quant.axis is not None:
                new.attribute.append(helper.make_attribute("axis", codes.quant.axis))

    def _is_zero(self, bias: tuple[str, ...]) -> bool:
        """Say whether a bias is zeros, which a layer of ONNX does without."""
        array = self.graph.consts.get(bias[0]) if bias else None
        return array is not None and not array.any() and not np.signbit(array).any()

    def _input(self, node: Node, key: str, value: AttrValue) -> str:
        """Return the constant that an attribute is in ONNX; nothing for an end of a range that is none."""
        if node.op == "Clip" and value in (-np.inf, np.inf):
            return ""
        kind: np.dtype[np.generic] = np.dtype(np.float32 if key in ("scales", "roi") else np.int64)
        if key in ("value", "min", "max"):
            kind = self.graph.types[node.inputs[0]].dtype.numpy
        array = np.asarray(value, kind)
        return self.const(f"{node.outputs[0]}_{key}", array if (node.op, key) in _SCALARS else array.reshape(-1))

    def _params(self, node: Node) -> list[str]:
        """Return the scale and the zero point of a QuantizeLinear or DequantizeLinear."""
        codes = node.inputs[0] if node.op == "DequantizeLinear" else node.outputs[0]
        type_, base = self.graph.types[codes], node.outputs[0]
        assert type_.quant is not None
        scale, zero = (np.array(v if type_.quant.per_axis else v[0])
                       for v in (type_.quant.scale, type_.quant.zero_point))  # fmt: skip
        name = self.named(f"{base}_zero_point")
        self.consts.append(_tensor(name, zero, self._kind(codes)))
        return [self.const(f"{base}_scale", scale.astype(np.float32)), name]

    def _kind(self, name: str) -> DType:
        """Return the element type of a value; codes of a constant that has few bits have that many in ONNX's nodes."""
        type_ = self.graph.types[name]
        if any(node.domain == GRAPH_DOMAIN and name in node.input for node in self.nodes):
            return type_.dtype
        return _few_bits(type_, type_.quant, self.graph.consts.get(name))

    def _gemm(self, node: Node, out: str) -> None:
        """Add a fully connected layer; of more axes than two a MatMul, or, with a bias, between Reshapes."""
        shape = self.graph.types[node.inputs[0]].shape
        if len(shape) != 2 and len(node.inputs) == 2 and (weights := self.graph.consts.get(node.inputs[1])) is not None:
            self.add("MatMul", [node.inputs[0], self.const(f"{node.inputs[1]}.t", weights.T)], [out], node.name)
            return
        rows, sums = node.inputs[0], out
        if len(shape) != 2:
            flat = self.const(f"{node.outputs[0]}_flat", np.array([-1, shape[-1]], np.int64))
            rows, sums = self.named(f"{node.outputs[0]}_rows"), self.named(f"{node.outputs[0]}_flat_sums")
            self.add("Reshape", [node.inputs[0], flat], [rows], f"{node.name}_rows")
        new = self.add("Gemm", [rows, *node.inputs[1:]], [sums], node.name)
        new.attribute.append(helper.make_attribute("transB", 1))
        if sums != out:
            back = self.const(f"{node.outputs[0]}_shape", np.array(self.graph.types[node.outputs[0]].shape, np.int64))
            self.add("Reshape", [sums, back], [out], f"{node.name}_shape")

    def model(self) -> onnx.ModelProto:
        """Return the model."""
        graph = self.graph
        read = {name for node in self.nodes for name in node.input} | {*graph.results}
        held = [_tensor(n, a, self._kind(n)) for n, a in graph.consts.items() if n in read]
        computed = [n for node in graph.nodes for n in node.outputs if n and n not in graph.results]
        infos = {n: _info(n, graph.types[n]) for n in (*graph.sources, *graph.results, *computed)}
        body = helper.make_graph(
            self.nodes, graph.name, [infos[n] for n in graph.sources], [infos[n] for n in graph.results],
            [*held, *self.consts], value_info=[infos[n] for n in computed],
        )  # fmt: skip
        domains = {"": self.opset, **dict.fromkeys(sorted({n.domain for n in self.nodes} - {""}), 1)}
        opsets = [helper.make_opsetid(domain, version) for domain, version in domains.items()]
        ir_version = max(8, helper.find_min_ir_version_for(opsets[:1]))
        model = helper.make_model(
            body, opset_imports=opsets, ir_version=ir_version, producer_name="glowc", producer_version=full_version()
        )
        if GRAPH_DOMAIN in domains:
            types = {name: print_type(type_) for name, type_ in graph.types.items()}
            helper.set_model_props(model, {TYPES_KEY: json.dumps(types)})
        return model


def _few_bits(type_: TensorType, quant: QuantParams | None, array: np.ndarray | None) -> DType:
    """Return the type of codes: of 4 or 2 bits, with a sign or without, where a constant has so few."""
    if array is None or quant is None or not quant.bits or quant.palette:
        return type_.dtype
    signed = DType.S4 if quant.bits == 4 else DType.S2
    lowest = min(int(array.min(initial=0)), *quant.zero_point)
    highest = max(int(array.max(initial=0)), *quant.zero_point)
    unsigned = DType.U4 if quant.bits == 4 else DType.U2
    return signed if signed.qmin <= lowest and highest <= signed.qmax else unsigned


def _tensor(name: str, array: np.ndarray, kind: DType) -> onnx.TensorProto:
    if kind in NARROW:
        return helper.make_tensor(name, onnx_element_type(kind), array.shape, array.reshape(-1).tolist())
    return numpy_helper.from_array(np.asarray(array, kind.numpy, order="C"), name)


def _info(name: str, type_: TensorType) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, onnx_element_type(type_.dtype), type_.shape)


def _attribute(key: str, value: AttrValue) -> onnx.AttributeProto:
    """Return an attribute; numbers that float32 does not hold are a tensor of float64."""
    values = value if isinstance(value, tuple) else (value,)
    if any(isinstance(v, float) and v != float(np.float32(v)) for v in values):
        return helper.make_attribute(key, numpy_helper.from_array(np.asarray(value, np.float64), key))
    empty = onnx.AttributeProto.INTS if value == () else None
    return helper.make_attribute(key, value, attr_type=empty)
