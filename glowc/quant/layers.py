"""Weights and biases of all layers: the nearest codes, or codes and biases fitted to sample data, layer after layer.

The second walks the quantised network, so that each layer makes up for what the layers before it did (bias correction:
Nagel et al., "Data-Free Quantization Through Weight Equalization and Bias Correction", 2019, here with real data).

At the end of a network with float outputs the sums of a last layer need not be rounded to codes: a fully connected
layer on codes can hand them on as floats (onnxruntime's QGemm without an output scale, glowc's pass fold-dq-product),
so that neither they nor the Softmax behind them are rounded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from onnx import NodeProto

from glowc.quant.engine import Values, all_samples
from glowc.quant.net import Net
from glowc.quant.plan import Plan, values_of, weights_of
from glowc.quant.scheme import Params, Schema
from glowc.quant.simulate import Simulator
from glowc.quant.weight_types import WeightType
from glowc.quant.weights import (
    Fit,
    Rows,
    Weights,
    channel_axis,
    fitted,
    joined_rows,
    least_scales,
    least_scales16,
    nearest,
    rows_of,
)

_PLACES = 16  # places of one sample count as so many independent values at most, for the mean of a channel
_FEW = 8  # a mean of so many values is believed by half


@dataclass(frozen=True, slots=True)
class Coded:
    """Weights and float biases by the first result of their layer."""

    weights: Mapping[str, Weights]
    biases: Mapping[str, np.ndarray]

    def consts(self, net: Net) -> dict[str, np.ndarray]:
        """Return what the constants of the network become: weights from codes, biases."""
        found = {}
        for node in net.nodes:
            if node.output[0] in self.weights:
                found[node.input[1]] = self.weights[node.output[0]].values()
            if node.output[0] in self.biases and len(node.input) > 2 and node.input[2]:
                found[node.input[2]] = self.biases[node.output[0]]
        return found


def coded_layers(net: Net, plan: Plan) -> list[NodeProto]:
    """Return the layers whose weights become codes."""
    return [n for n in net.nodes if plan.computes_codes(n) and weights_of(net, n) is not None]


def bias_of(net: Net, node: NodeProto) -> np.ndarray | None:
    """Return the bias of a layer."""
    return net.consts[node.input[2]] if len(node.input) > 2 and node.input[2] else None


def nearest_layers(
    net: Net, plan: Plan, params: Mapping[str, Params], schema: Schema, kinds: Mapping[str, WeightType] | None = None
) -> Coded:  # fmt: skip
    """Return the nearest codes of all layers, and their biases as they are; `kinds` by layer, where not int8."""
    weights, biases = dict[str, Weights](), dict[str, np.ndarray]()
    sharing = defaultdict[tuple[str, int, WeightType], list[NodeProto]](list)
    for node in coded_layers(net, plan):
        axis = channel_axis(node, net.consts[node.input[1]])
        sharing[node.input[1], axis, (kinds or {}).get(node.output[0], WeightType.INT8)].append(node)
    for (name, axis, kind), nodes in sharing.items():
        power2 = schema is Schema.SYMMETRIC_WITH_POWER2_SCALE
        codes = nearest(net.consts[name], axis, _least(net, plan, params, nodes), power2, kind)
        weights |= {node.output[0]: codes for node in nodes}
    for node in coded_layers(net, plan):
        if (bias := bias_of(net, node)) is not None:
            biases[node.output[0]] = bias
    return Coded(weights, biases)


def _least(net: Net, plan: Plan, params: Mapping[str, Params], nodes: Iterable[NodeProto]) -> np.ndarray:
    """Return the least scale per channel with which biases and sums of layers with the same weights fit int32."""
    least = []
    for node in nodes:
        weights, bias = net.consts[node.input[1]], bias_of(net, node)
        known, axis = params[plan.group_of[node.input[0]]], channel_axis(node, weights)
        least.append(least_scales(bias, known.scale, weights.shape[axis]))
        if known.bits != 8:
            least.append(least_scales16(weights, axis, bias, known.scale))
    return np.asarray(np.max(least, axis=0))


def fitted_layers(
    sim: Simulator, params: Mapping[str, Params], start: Coded, fit: Fit, *, wide_fit: Fit | None = None,
    rounding: bool = True, correction: bool = True, agreed: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> Coded:  # fmt: skip
    """Return codes and biases fitted to the samples; without `rounding` or `correction`, the codes or biases of
    `start`. Layers with nothing but int16 before them have `wide_fit`, where others have none. `agreed` as `corrected`
    has it."""
    net = sim.net
    weights, biases = dict(start.weights), dict(start.biases)
    values = {p.name: sim.rounded(params, p.name, sim.exact[p.name]) for p in net.inputs}
    consts = sim.consts(params, start.consts(net))
    fine, layers = _only_wide(sim), coded_layers(net, sim.plan)
    for node in net.nodes:
        layer = node.output[0]
        if layer in weights:
            progress(f"fitting {layer}")
            if rounding and weights[layer] is start.weights[layer]:
                how = wide_fit if node.input[0] in fine and wide_fit is not None else fit
                sharing = [n for n in layers if start.weights[n.output[0]] is start.weights[layer]]
                codes = _fitted_weights(sim, params, sharing, values, start.weights[layer], how)
                weights |= {n.output[0]: codes for n in sharing}
            consts[node.input[1]] = weights[layer].values()
            if layer in biases and correction:
                sums = all_samples(sim.engine, net, node, values, consts)[0]
                biases[layer] = consts[node.input[2]] = corrected(biases[layer], sums, sim.exact[layer], agreed=agreed)
        for name, array in zip(
            (n for n in node.output if n), all_samples(sim.engine, net, node, values, consts), strict=True
        ):
            values[name] = sim.rounded(params, name, array)
    return Coded(weights, biases)


def _only_wide(sim: Simulator) -> set[str]:
    """Return the values that nothing before them rounds to 8 bits, in a network of both widths."""
    plan = sim.plan
    fine = {p.name for p in sim.net.inputs if plan.group_of.get(p.name) in plan.wide}
    for node in sim.net.nodes if fine else ():
        read = [name for name in values_of(sim.net, node) if name not in sim.net.consts]
        result = plan.fused.get(node.output[0], node.output[0])
        if plan.group_of.get(result) in plan.wide and all(name in fine for name in read):
            fine.add(node.output[0])
    return fine


def _fitted_weights(
    sim: Simulator, params: Mapping[str, Params], nodes: list[NodeProto], values: Values, start: Weights, fit: Fit
) -> Weights:
    """Return fitted codes of layers that share them; the ones of `start` where their kind has no statistics.

    `values` are those of the quantised network so far; layers further on are given the float ones.
    """
    array, rows = sim.net.consts[nodes[0].input[1]], list[Rows]()
    for node in nodes:
        name = node.input[0]
        found = rows_of(node, array, values.get(name, sim.exact[name]), sim.exact[node.output[0]])
        if found is None:
            return start
        rows.append(found)
    least = _least(sim.net, sim.plan, params, nodes)
    kind = start.grid.kind
    return fitted(nodes[0], array, joined_rows(rows), least, fit.of(kind), kind)


def corrected(bias: np.ndarray, sums: np.ndarray, exact: np.ndarray, *, agreed: bool = False) -> np.ndarray:
    """Return the bias that gives each channel the mean of the float network; few values are half believed.

    With `agreed` a channel's mean error is believed as far as the samples agree on it: its square is held against what
    chance adds to the mean of so many samples (Stein, 1956).
    """
    axis = 2 if sums.ndim > 3 else sums.ndim - 1  # convolutions: samples, batch, channels, places
    lines = np.moveaxis(exact.astype(np.float64) - sums, axis, 0).reshape(len(bias), len(sums), -1)
    errors, values = lines.mean(axis=2), len(sums) * min(lines.shape[2], _PLACES)
    mean = errors.mean(axis=1)
    if not agreed or len(sums) < 2:
        return np.asarray(bias + mean * values / (values + _FEW), np.float32)
    chance = errors.var(axis=1, ddof=1) / len(sums)
    return np.asarray(bias + mean * np.square(mean) / np.maximum(np.square(mean) + chance, 1e-300), np.float32)


_BEHIND = frozenset({"Softmax", "LogSoftmax", "Sigmoid", "Tanh", "Reshape", "Flatten", "Squeeze", "Unsqueeze"})
_LARGEST_SHARE = 0.1  # of all multiplications: kernels for sums that become floats are slower than those for codes


def unrounded_sums(net: Net, elements: Mapping[str, int]) -> frozenset[str]:
    """Return the results of last layers that stay float. `elements` has the size of each float value."""
    layers = [n for n in net.nodes if weights_of(net, n) is not None and n.output[0] in elements]
    macs = {n.output[0]: _macs(n, net.consts[n.input[1]], elements[n.output[0]]) for n in layers}
    found = {_last_layer(net, port.name) for port in net.outputs}
    return frozenset(n for n in found if n in macs and macs[n] <= _LARGEST_SHARE * sum(macs.values()))


def _macs(layer: NodeProto, weights: np.ndarray, results: int) -> int:
    """Return the multiplications of a layer: each result takes the weights of one output channel."""
    return results * int(weights.size) // int(weights.shape[channel_axis(layer, weights)])


def _last_layer(net: Net, name: str) -> str:
    """Return the result of the Gemm in front of an output, where nobody else reads what lies between; else nothing."""
    producers, users = net.producers(), net.users()
    while (node := producers.get(name)) is not None:
        if node.op_type == "Gemm":
            return name if node.input[1] in net.consts else ""
        before = node.input[0]
        if node.op_type not in _BEHIND or len(users[before]) != 1 or before in net.output_names():
            return ""
        name = before
    return ""
