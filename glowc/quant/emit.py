"""A network, its quantisation and its codes -> an ONNX model with QuantizeLinear and DequantizeLinear.

Between a layer and the clamp that is fused to it there is no pair; a bias is int32 with the scale of the sums.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import NodeProto, ValueInfoProto, helper, numpy_helper

from glowc.frontend.kept import Kept, note_states
from glowc.quant.narrow import SIXTEEN_BIT_OPSET, STORED, Narrow, from_palette, raised, with_narrow
from glowc.quant.net import Net, Port, model_of
from glowc.quant.plan import Plan, values_of, weights_of
from glowc.quant.recurrent import RECURRENT, coded_weights, weight_names
from glowc.quant.scheme import Params
from glowc.quant.weights import Weights

FACTORS_KEY = "glowc.channel_factors"
"""In the metadata: what the channels (axis 1) of equalised values were divided by, as JSON by the name of the value."""
SOURCES_KEY = "glowc.channel_sources"
"""In the metadata: the channel of the float model that each channel of values with copies is a part of, likewise."""
_INT32 = 2**31 - 1


@dataclass(slots=True)
class _Writer:
    """The file as it grows."""

    net: Net
    plan: Plan
    params: Mapping[str, Params]
    weights: Mapping[str, Weights]  # by layer
    biases: Mapping[str, np.ndarray]  # float, by layer
    float_edge: bool
    nodes: list[NodeProto] = field(default_factory=list)
    consts: dict[str, np.ndarray] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    stored: dict[int, tuple[Weights, str]] = field(default_factory=dict)  # weights and their values, by identity
    narrow: dict[str, Narrow] = field(default_factory=dict)  # types of constants of fewer bits than 8

    def named(self, name: str) -> str:
        """Return a name that the model does not have."""
        while name in self.names:
            name += "_"
        self.names.add(name)
        return name

    def const(self, name: str, array: np.ndarray) -> str:
        """Add a constant and return its name."""
        new = self.named(name)
        self.consts[new] = array
        return new

    def convert(self, op: str, value: str, params: Params, output: str) -> None:
        """Add a QuantizeLinear or DequantizeLinear."""
        scale = self.const(f"{output}_scale", np.asarray(params.scale, np.float32))
        zero = self.const(f"{output}_zero_point", np.asarray(params.zero_point, params.dtype))
        self.nodes.append(helper.make_node(op, [value, scale, zero], [output], name=self.named(f"{output}_{op}")))

    def of(self, name: str) -> Params | None:
        """Return the quantisation of a tensor."""
        group = self.plan.group_of.get(name)
        return None if group is None else self.params[group]

    def is_float(self, name: str) -> bool:
        """Say whether an input or output stays float: all where that is wanted, besides states.

        States do where one that goes in has other codes than what comes out.
        """
        pairs = [pair for pair in self.net.states.items() if name in pair]
        return any(self.of(a) != self.of(b) for a, b in pairs) if pairs else self.float_edge


def quantised_model(
    net: Net, plan: Plan, params: Mapping[str, Params], weights: Mapping[str, Weights],
    biases: Mapping[str, np.ndarray], *, float_edge: bool = False, factors: Mapping[str, np.ndarray] | None = None,
    sources: Mapping[str, np.ndarray] | None = None,
) -> onnx.ModelProto:  # fmt: skip
    """Return the ONNX file. Weights and biases are by the first result of their layer; `float_edge` keeps the
    inputs and outputs float; `factors` says what channels were divided by, `sources` which ones have copies."""
    names = {
        *net.consts,
        *(p.name for p in net.inputs),
        *(n for node in net.nodes for n in (*node.input, *node.output)),
    }
    writer = _Writer(net, plan, params, weights, biases, float_edge, names=names)
    renamed = {name: _constant(writer, name) for name in net.consts if name in plan.group_of}
    inputs = tuple(_input(writer, port, renamed) for port in net.inputs)
    for node in _by_depth(net.nodes):
        _add_node(writer, node, renamed)
    outputs = [_output(writer, port, renamed) for port in net.outputs]
    nodes = _needed(writer.nodes, [o.name for o in outputs])
    used = {port.name for port in net.outputs} | {name for node in nodes for name in node.input}
    consts = {n: a for n, a in {**net.consts, **writer.consts}.items() if n in used}
    model = model_of(net, nodes, inputs, outputs, consts)
    if plan.bits != 8 or plan.wide:
        model = raised(model, SIXTEEN_BIT_OPSET, "type INT16")
    if writer.narrow:
        model = with_narrow(model, writer.narrow)
    known = {FACTORS_KEY: factors, SOURCES_KEY: sources}
    texts = {key: json.dumps({n: array.tolist() for n, array in of.items()}) for key, of in known.items() if of}
    if texts:
        helper.set_model_props(model, texts)
    note_states(model, [_kept(writer, port) for port in net.inputs if port.name in net.states])
    return model


def _kept(writer: _Writer, port: Port) -> Kept:
    """Return a state as the file has it, in codes or float."""
    start = np.zeros(port.shape, port.dtype) if port.start is None else port.start
    params = None if writer.is_float(port.name) else writer.of(port.name)
    return Kept(port.name, writer.net.states[port.name], start if params is None else params.codes(start))


def _by_depth(nodes: Iterable[NodeProto]) -> list[NodeProto]:
    """Return the nodes by their distance from the inputs: a shortcut runs before the longer branch beside it.

    Its result then has a place before the branch is planned, and kernels use what memory is left (on the arena as a
    whole the order has no say: the compiler finds the one that needs least).
    """
    depth: dict[str, int] = {}
    for node in nodes:
        at = 1 + max((depth.get(name, 0) for name in node.input), default=0)
        depth |= dict.fromkeys(node.output, at)
    return sorted(nodes, key=lambda node: depth[node.output[0]])


def _needed(nodes: list[NodeProto], outputs: list[str]) -> list[NodeProto]:
    """Return the nodes that an output depends on."""
    wanted, kept = set(outputs), []
    for node in reversed(nodes):
        if wanted & set(node.output):
            kept.append(node)
            wanted |= set(node.input)
    return kept[::-1]


def _constant(writer: _Writer, name: str) -> str:
    """Store a constant operand as codes; return the name of its values."""
    params = writer.of(name)
    assert params is not None
    value = writer.named(f"{name}_dequantized")
    codes = writer.const(f"{name}_codes", params.codes(writer.net.consts[name]))
    writer.convert("DequantizeLinear", codes, params, value)
    return value


def _input(writer: _Writer, port: Port, renamed: dict[str, str]) -> Port:
    """Quantise an input, or make it codes."""
    params = writer.of(port.name)
    if params is None:
        return port
    renamed[port.name] = value = writer.named(f"{port.name}_dequantized")
    if not writer.is_float(port.name):
        writer.convert("DequantizeLinear", port.name, params, value)
        return Port(port.name, port.shape, params.dtype)
    codes = writer.named(f"{port.name}_quantized")
    writer.convert("QuantizeLinear", port.name, params, codes)
    writer.convert("DequantizeLinear", codes, params, value)
    return port


def _output(writer: _Writer, port: Port, renamed: dict[str, str]) -> ValueInfoProto:
    """Return an output as codes where it has a quantisation, else, and where it is a constant, as it is."""
    params = writer.of(port.name) if port.name not in writer.net.consts else None
    kind = port.dtype
    is_input = any(port.name == given.name for given in writer.net.inputs)
    if params is not None and writer.is_float(port.name) and not is_input:
        for node in writer.nodes:  # the pair's result takes the output's name
            node.input[:] = [port.name if n == renamed[port.name] else n for n in node.input]
            node.output[:] = [port.name if n == renamed[port.name] else n for n in node.output]
    elif params is not None and not (writer.is_float(port.name) and is_input):
        kind = params.dtype
    return helper.make_tensor_value_info(port.name, helper.np_dtype_to_tensor_dtype(kind), port.shape)


def _add_node(writer: _Writer, node: NodeProto, renamed: dict[str, str]) -> None:
    """Add one node, with its weights as codes, and the pair of each result that is quantised."""
    if node.output[0] in writer.plan.converted:
        _add_pair(writer, node.output[0], renamed[node.input[0]], renamed)
        return
    new = NodeProto()
    new.CopyFrom(node)
    new.input[:] = _inputs(writer, node, renamed)
    results = {name: writer.named(f"{name}_float") for name in node.output if name and writer.of(name) is not None}
    new.output[:] = [results.get(name, name) for name in node.output]
    writer.nodes.append(new)
    for name, value in results.items():
        _add_pair(writer, name, value, renamed)


def _add_pair(writer: _Writer, name: str, value: str, renamed: dict[str, str]) -> None:
    params, is_output = writer.of(name), name in writer.net.output_names()
    assert params is not None
    codes = name if is_output and not writer.is_float(name) else writer.named(f"{name}_quantized")
    renamed[name] = writer.named(f"{name}_dequantized")
    writer.convert("QuantizeLinear", value, params, codes)
    writer.convert("DequantizeLinear", codes, params, renamed[name])


def _inputs(writer: _Writer, node: NodeProto, renamed: Mapping[str, str]) -> list[str]:
    """Return the inputs of a node in the new file: operands dequantised, weights and bias from codes."""
    weights = weights_of(writer.net, node)
    if writer.plan.computes_codes(node) and node.op_type in RECURRENT:
        coded = {name: _weights(writer, name, coded_weights(writer.net.consts[name])) for name in weight_names(node)}
        return [coded.get(name, renamed.get(name, name)) for name in node.input]
    if not writer.plan.computes_codes(node) or weights is None:
        names = values_of(writer.net, node) if writer.plan.computes_codes(node) else None
        return [
            renamed.get(n, n) if names is None or n in names or n not in writer.net.consts else n for n in node.input
        ]
    layer = node.output[0]
    params = writer.of(node.input[0])
    assert params is not None
    inputs = [renamed[node.input[0]], _weights(writer, weights, writer.weights[layer])]
    if layer in writer.biases:
        inputs.append(_bias(writer, layer, params))
    return inputs


def _weights(writer: _Writer, name: str, weights: Weights) -> str:
    """Store weights, once for all layers that share their codes; return the name of their values."""
    if id(weights) in writer.stored:
        return writer.stored[id(weights)][1]
    value, kind = writer.named(f"{name}_dequantized"), STORED.get(weights.grid.kind)
    codes = _palette(writer, name, weights) if weights.grid.palette else writer.const(f"{name}_codes", weights.codes)
    scale = writer.const(f"{name}_scale", weights.scales)
    zero = writer.const(f"{name}_zero_point", np.zeros(len(weights.scales), np.int8))
    if kind is not None and not weights.grid.palette:
        writer.narrow |= dict.fromkeys((codes, zero), kind)
    writer.nodes.append(
        helper.make_node("DequantizeLinear", [codes, scale, zero], [value], name=value, axis=weights.axis)
    )
    writer.stored[id(weights)] = weights, value
    return value


def _palette(writer: _Writer, name: str, weights: Weights) -> str:
    """Store weights as places in their palette; return the name of the codes that are found there."""
    levels = np.asarray(weights.grid.palette, np.int8)
    places = writer.const(f"{name}_places", np.searchsorted(levels, weights.codes).astype(np.uint8))
    writer.narrow[places] = STORED[weights.grid.kind]
    palette, codes = writer.const(f"{name}_palette", levels), writer.named(f"{name}_codes")
    writer.nodes += from_palette(palette, places, codes, writer.named(f"{name}_indices"))
    return codes


def _bias(writer: _Writer, layer: str, params: Params) -> str:
    """Store the bias of a layer as int32 in units of the input's scale times the weights'."""
    scale = np.float32(params.scale) * writer.weights[layer].scales
    scale = np.resize(scale, max(len(scale), len(writer.biases[layer])))  # groups of a ConvTranspose share them
    codes = np.clip(np.rint(writer.biases[layer] / scale.astype(np.float64)), -_INT32, _INT32).astype(np.int32)
    value = writer.named(f"{layer}_bias_dequantized")
    names = [writer.const(f"{layer}_bias_codes", codes), writer.const(f"{layer}_bias_scale", scale)]
    names.append(writer.const(f"{layer}_bias_zero_point", np.zeros(len(codes), np.int32)))
    writer.nodes.append(helper.make_node("DequantizeLinear", names, [value], name=value, axis=0))
    return value


def edge_params(model: onnx.ModelProto) -> dict[str, Params]:
    """Return the quantisation of the inputs and outputs of a model that are codes."""
    consts = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    found = {}
    for node in model.graph.node:
        if node.op_type in ("QuantizeLinear", "DequantizeLinear") and consts[node.input[1]].size == 1:
            codes = node.output[0] if node.op_type == "QuantizeLinear" else node.input[0]
            zero = consts[node.input[2]]
            found[codes] = Params(float(consts[node.input[1]].reshape(())), int(zero.reshape(())), 8 * zero.itemsize)
    return {v.name: found[v.name] for v in (*model.graph.input, *model.graph.output) if v.name in found}
