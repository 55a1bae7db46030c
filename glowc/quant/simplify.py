"""Brings a float network into the form that quantises best: constants folded, batch normalisation and biases inside
the layers before them, fully connected layers as Gemm, no nodes that do nothing.

Each function takes a network and returns one that computes the same.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from onnx import NodeProto, helper

from glowc.quant.branches import decided
from glowc.quant.edit import Edit, Shapes, const_and_value, drop_unused, edited, made, only_producer, with_inputs
from glowc.quant.engine import Engine
from glowc.quant.layer_norm import with_layer_norms
from glowc.quant.masked import with_finite_masks
from glowc.quant.net import Consts, Net, float_of, int_of
from glowc.quant.plan import weights_of
from glowc.quant.recurrent import with_first_results
from glowc.quant.static import Walk
from glowc.quant.weights import channel_axis

_NOTHING = frozenset({"Identity", "Dropout"})


def simplified(net: Net, engine: Engine) -> Net:
    """Return the network in the form that the quantiser works on."""
    net, shapes = fold_constants(drop_identities(with_first_results(decided(net, engine))), engine)
    net = with_layer_norms(with_finite_masks(drop_identities(net)), shapes)
    net = edited(net, lambda n, node: _fold_batch_norm(n, node, shapes))
    net = edited(net, _bias_into_conv)
    net = edited(net, lambda n, node: _gemm_of_matmul(n, node, shapes))
    net = edited(net, _plain_gemm)
    net = edited(net, _mul_of_div)
    return with_shared_weights(drop_unused(edited(net, _factor_into_layer)))


def with_shared_weights(net: Net) -> Net:
    """Give weights that are equal one name, so that layers which share them have the same codes."""
    first: dict[tuple[int, tuple[int, ...], bytes], str] = {}
    nodes = []
    for node in net.nodes:
        if (name := weights_of(net, node)) is not None:
            array = net.consts[name]
            known = first.setdefault((channel_axis(node, array), array.shape, array.tobytes()), name)
            if known != name:
                node = with_inputs(node, [node.input[0], known, *node.input[2:]], node.output[0])
        nodes.append(node)
    return drop_unused(replace(net, nodes=tuple(nodes)))


def fold_constants(net: Net, engine: Engine) -> tuple[Net, Shapes]:
    """Compute what depends on constants and static shapes alone; also return the shape of every value.

    Shapes, and types to which a Cast changes nothing, are found by running the network on zeros.
    """
    walk, nodes = Walk(net, engine), []
    for node in net.nodes:
        if not walk.run(node):
            nodes.append(_identity_of_cast(node) if _casts_nothing(node, walk.values) else node)
    shapes = {name: array.shape for name, array in (*walk.values.items(), *walk.consts.items())}
    outputs = tuple(replace(port, shape=shapes[port.name]) for port in net.outputs)
    return replace(net, nodes=tuple(nodes), consts=walk.consts, outputs=outputs), shapes


def _casts_nothing(node: NodeProto, values: Consts) -> bool:
    """Say whether a node is a Cast to the type that its input has."""
    return node.op_type == "Cast" and values[node.input[0]].dtype == values[node.output[0]].dtype


def _identity_of_cast(node: NodeProto) -> NodeProto:
    return helper.make_node("Identity", [node.input[0]], [node.output[0]], name=node.name)


def drop_identities(net: Net) -> Net:
    """Remove nodes that hand on their input; one whose result is an output stays."""
    outputs, nodes = net.output_names(), []
    renamed: dict[str, str] = {}
    for node in net.nodes:
        node = _renamed(node, renamed)
        if node.op_type in _NOTHING and node.output[0] not in outputs and len([o for o in node.output if o]) == 1:
            renamed[node.output[0]] = node.input[0]
        else:
            nodes.append(node)
    return replace(net, nodes=tuple(nodes))


def _renamed(node: NodeProto, names: dict[str, str]) -> NodeProto:
    if not any(n in names for n in node.input):
        return node
    copy = NodeProto()
    copy.CopyFrom(node)
    copy.input[:] = [names.get(n, n) for n in node.input]
    return copy


def _fold_batch_norm(net: Net, node: NodeProto, shapes: Shapes) -> Edit | None:
    """Multiply a BatchNormalization into the layer before it; one without such a layer becomes a 1 x 1 convolution."""
    if node.op_type != "BatchNormalization" or not all(n in net.consts for n in node.input[1:]):
        return None
    gamma, beta, mean, variance = (net.consts[n].astype(np.float64) for n in node.input[1:5])
    gain = gamma / np.sqrt(variance + float_of(node, "epsilon", 1e-5))
    layer = only_producer(net, node.input[0])
    if layer is None or layer.op_type not in ("Conv", "ConvTranspose", "Gemm") or layer.input[1] not in net.consts:
        return _batch_norm_as_conv(node, gain, beta - mean * gain, len(shapes[node.input[0]]))
    weights = net.consts[layer.input[1]].astype(np.float64)
    bias = net.consts[layer.input[2]].astype(np.float64) if len(layer.input) > 2 else np.zeros_like(gain)
    names = [f"{node.output[0]}_weights", f"{node.output[0]}_bias"]
    new = with_inputs(layer, [layer.input[0], *names], node.output[0])
    scaled = weights * _gain_of_weights(layer, weights, gain)
    return [new], {names[0]: scaled.astype(np.float32), names[1]: ((bias - mean) * gain + beta).astype(np.float32)}


def _gain_of_weights(layer: NodeProto, weights: np.ndarray, gain: np.ndarray) -> np.ndarray:
    """Return the gain of the output channel that each weight belongs to, in a shape that broadcasts."""
    if layer.op_type == "ConvTranspose":  # [inputs of all groups][outputs of one][places]
        by_group = gain.reshape(int_of(layer, "group", 1), -1)
        return np.repeat(by_group, len(weights) // len(by_group), axis=0).reshape(
            *weights.shape[:2], *[1] * (weights.ndim - 2)
        )
    if layer.op_type == "Gemm" and not int_of(layer, "transB", 0):
        return gain
    return gain.reshape(-1, *[1] * (weights.ndim - 1))


def _batch_norm_as_conv(node: NodeProto, gain: np.ndarray, shift: np.ndarray, rank: int) -> Edit | None:
    if rank < 3:
        return None
    names = [f"{node.output[0]}_weights", f"{node.output[0]}_bias"]
    weights = gain.reshape(-1, *[1] * (rank - 1)).astype(np.float32)
    new = made("Conv", [node.input[0], *names], node.output[0], node, group=len(gain), kernel_shape=[1] * (rank - 2))
    return [new], {names[0]: weights, names[1]: shift.astype(np.float32)}


def _bias_into_conv(net: Net, node: NodeProto) -> Edit | None:
    """Make the addition of a constant per channel the bias of the convolution before it."""
    pair = const_and_value(net, node) if node.op_type == "Add" else None
    layer = only_producer(net, pair[1]) if pair else None
    if pair is None or layer is None or layer.op_type != "Conv" or layer.input[1] not in net.consts:
        return None
    weights, added = net.consts[layer.input[1]], net.consts[pair[0]]
    channels = len(weights)
    per_channel = (1, channels, *[1] * (weights.ndim - 2))
    if added.size != 1 and (added.ndim > weights.ndim or np.broadcast_shapes(added.shape, per_channel) != per_channel):
        return None
    bias = net.consts[layer.input[2]] if len(layer.input) > 2 else np.zeros(channels, np.float32)
    name = f"{node.output[0]}_bias"
    new = with_inputs(layer, [*layer.input[:2], name], node.output[0])
    return [new], {name: (bias + np.broadcast_to(added, per_channel).reshape(-1)).astype(np.float32)}


def _gemm_of_matmul(net: Net, node: NodeProto, shapes: Shapes) -> Edit | None:
    """Make a product with constant weights and the addition of a constant row after it one Gemm, of rank 2."""
    pair = const_and_value(net, node) if node.op_type == "Add" else None
    layer = only_producer(net, pair[1]) if pair else None
    if pair is None or layer is None or layer.op_type != "MatMul" or layer.input[1] not in net.consts:
        return None
    weights, row, shape = net.consts[layer.input[1]], net.consts[pair[0]], shapes.get(layer.input[0], ())
    if weights.ndim != 2 or len(shape) < 2 or row.size not in (1, weights.shape[1]) or row.shape[-1:] != (row.size,):
        return None
    out = node.output[0]
    names = {f"{out}_weights": np.ascontiguousarray(weights.T), f"{out}_bias": np.resize(row, weights.shape[1])}
    if len(shape) == 2:
        return [made("Gemm", [layer.input[0], *names], out, node, transB=1)], names
    flat = np.array([-1, shape[-1]], np.int64)
    back = np.array([*shape[:-1], weights.shape[1]], np.int64)
    nodes = [
        made("Reshape", [layer.input[0], f"{out}_flat"], f"{out}_rows", node),
        made("Gemm", [f"{out}_rows", *names], f"{out}_sums", node, transB=1),
        made("Reshape", [f"{out}_sums", f"{out}_shape"], out, node),
    ]
    return nodes, {**names, f"{out}_flat": flat, f"{out}_shape": back}


def _plain_gemm(net: Net, node: NodeProto) -> Edit | None:
    """Write a Gemm of constant weights as x times transposed weights plus a row: the form that runtimes know best.

    What is added and is no row, but another number for each row of the result, is added by an Add.
    """
    if node.op_type != "Gemm" or node.input[1] not in net.consts:
        return None
    alpha, beta, turned = float_of(node, "alpha", 1), float_of(node, "beta", 1), int_of(node, "transB", 0) == 1
    bias = net.consts.get(node.input[2]) if len(node.input) > 2 else None
    if int_of(node, "transA", 0) or (len(node.input) > 2 and bias is None):
        return None
    if turned and alpha == beta == 1 and (bias is None or bias.ndim == 1):
        return None
    weights = net.consts[node.input[1]]
    weights = np.ascontiguousarray((weights if turned else weights.T) * np.float32(alpha))
    names = {f"{node.output[0]}_weights": weights}
    if bias is not None and bias.ndim > 1 and bias.shape[0] > 1:
        sums, added = f"{node.output[0]}_sums", f"{node.output[0]}_added"
        gemm = made("Gemm", [node.input[0], *names], sums, node, transB=1)
        return [gemm, made("Add", [sums, added], node.output[0], node)], {**names, added: bias * np.float32(beta)}
    if bias is not None:
        names[f"{node.output[0]}_bias"] = np.resize(bias * np.float32(beta), len(weights))
    return [made("Gemm", [node.input[0], *names], node.output[0], node, transB=1)], names


def _mul_of_div(net: Net, node: NodeProto) -> Edit | None:
    """Write a division by a constant as a product."""
    if node.op_type != "Div" or node.input[1] not in net.consts or node.input[0] in net.consts:
        return None
    divisor = net.consts[node.input[1]]
    if divisor.dtype != np.float32 or not np.all(np.isfinite(1 / divisor.astype(np.float64))):
        return None
    name = f"{node.output[0]}_factor"
    return [made("Mul", [node.input[0], name], node.output[0], node)], {name: (1 / divisor).astype(np.float32)}


def _factor_into_layer(net: Net, node: NodeProto) -> Edit | None:
    """Multiply a constant factor into the weights of a layer before it, through views and a product of two values."""
    pair = const_and_value(net, node) if node.op_type == "Mul" else None
    if pair is None or net.consts[pair[0]].size != 1:
        return None
    path = _path_to_layer(net, pair[1])
    if not path:
        return None
    factor = np.float32(net.consts[pair[0]].reshape(()))
    layer, names = path[0], [f"{path[0].output[0]}_by_{node.output[0]}_{i}" for i in range(len(path[0].input) - 1)]
    consts = {name: net.consts[old] * factor for name, old in zip(names, layer.input[1:], strict=True)}
    renamed = {n.output[0]: f"{n.output[0]}_by_{node.output[0]}" for n in path[:-1]}
    renamed[path[-1].output[0]] = node.output[0]
    chain = [with_inputs(n, [renamed.get(i, i) for i in n.input], renamed[n.output[0]]) for n in path]
    return [with_inputs(chain[0], [layer.input[0], *names], chain[0].output[0]), *chain[1:]], consts


def _path_to_layer(net: Net, name: str) -> list[NodeProto]:
    """Return the nodes from a layer with constant weights to `name`, or none; nobody else reads what they compute."""
    path: list[NodeProto] = []
    while (node := only_producer(net, name)) is not None:
        path.insert(0, node)
        if node.op_type in ("Conv", "Gemm") and all(n in net.consts for n in node.input[1:]):
            return path
        if node.op_type not in ("Reshape", "Transpose", "MatMul"):
            return []
        name = node.input[0]
    return []
