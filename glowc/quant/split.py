"""Splits channels that are far larger than the others into copies of a part of them each.

Outlier channel splitting (Zhao et al., "Improving Neural Network Quantization without Retraining using Outlier Channel
Splitting", 2019): the layer that makes a channel makes it twice, at half the size, and the layers that read it add both
up. The network computes the same with a narrower range, for more channels: unlike factors (glowc.quant.equalize),
it does not make the readers' weights for that channel larger.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from onnx import NodeProto

from glowc.quant.equalize import PARTS, Class, RunLayer, find_classes, has_bias, with_constants
from glowc.quant.net import Net, int_of
from glowc.quant.scheme import fake, params_of
from glowc.quant.simulate import relative_error
from glowc.quant.weights import channel_axis, nearest

WORTH = 0.9  # the readers must err by this much less: channels cost time and memory
STEP = 4  # channels that kernels compute at a time: a multiple of them stays one


def splittable(net: Net, shapes: Mapping[str, tuple[int, ...]]) -> list[Class]:
    """Return the classes of values whose channels can have copies: no depthwise layer, no fixed shape in between."""
    producers = net.producers()
    return [one for one in find_classes(net, shapes) if _can_grow(one, producers)]


def _can_grow(one: Class, producers: Mapping[str, NodeProto]) -> bool:
    layers = [producers[name] for name in (*one.makers, *one.readers)]
    between = [producers[name] for name in one.values if name not in one.makers]
    return all(int_of(node, "group", 1) == 1 for node in layers) and all(n.op_type != "Reshape" for n in between)


def copies(largest: np.ndarray, more: int) -> np.ndarray:
    """Return the old channel of each new one: the old ones in order, then `more` copies, always of the channel whose
    part is largest. `largest` is float [channels], the magnitudes."""
    count, source = np.ones(len(largest)), list(range(len(largest)))
    for _ in range(more):
        source.append(int(np.argmax(largest / count)))
        count[source[-1]] += 1
    return np.array(source)


def shares(source: np.ndarray) -> np.ndarray:
    """Return the part of its old channel that each new channel is, float32 [channels]."""
    return np.asarray(1 / np.bincount(source)[source], np.float32)


def with_copies(net: Net, one: Class, source: np.ndarray) -> Net:
    """Return the network with the channels of a class as `source` says (`copies`)."""
    consts, nodes = dict(net.consts), list(net.nodes)
    for i, node in enumerate(net.nodes):
        makes, reads = node.output[0] in one.makers, node.output[0] in one.readers
        if makes or reads:
            nodes[i] = _grown(node, consts, source, makes, reads)
    return replace(net, nodes=tuple(nodes), consts=consts)


def _grown(node: NodeProto, consts: dict[str, np.ndarray], source: np.ndarray, makes: bool, reads: bool) -> NodeProto:
    """Return a layer with constants of its own: outputs copied by their shares, inputs as they are."""
    weights, part, bias = consts[node.input[1]], shares(source), None
    if reads:
        weights = weights[:, source]
    if makes:
        weights = weights[source] * part.reshape(-1, *[1] * (weights.ndim - 1))
    if makes and has_bias(node):
        bias = np.broadcast_to(consts[node.input[2]], (int(source.max()) + 1,))[source] * part
    return with_constants(node, consts, "split", weights, bias)


def best_copies(
    net: Net, one: Class, largest: np.ndarray, values: Mapping[str, np.ndarray], run: RunLayer, most: float
) -> np.ndarray | None:
    """Return the copies with which the readers of a class err least, where that is worth it; None where none are.

    `most` is the largest share of the channels that is added, rounded up to whole blocks of `STEP`. `largest` are the
    magnitudes of the channels. `values` are all values, [samples, *shape]; each part of the samples is judged with
    ranges of the others.
    """
    block = STEP if len(largest) % STEP == 0 else 1
    limit = math.ceil(most * len(largest) / block) * block
    counts = [0, *(block << i for i in range(limit.bit_length()) if block << i <= limit)]
    errors = [_error(net, one, copies(largest, more), values, run) for more in counts]
    best = int(np.argmin(errors))
    return copies(largest, counts[best]) if best and errors[best] < WORTH * errors[0] else None


def _error(net: Net, one: Class, source: np.ndarray, values: Mapping[str, np.ndarray], run: RunLayer) -> float:
    """Return the root of the sum of the readers' square errors, their inputs and weights rounded."""
    changed = with_copies(net, one, source)
    producers, total = changed.producers(), 0.0
    parts = np.arange(len(values[one.values[0]])) % PARTS
    for reader in one.readers:
        node = producers[reader]
        weights = changed.consts[node.input[1]]
        codes = nearest(weights, channel_axis(node, weights), np.zeros(len(weights)) + 1e-12)
        rounded = changed.with_consts({node.input[1]: codes.values()})
        given = _taken(values[node.input[0]], source)
        for part in np.unique(parts):
            judged = parts == part
            seen = given[judged if judged.all() else ~judged]
            margin = 1 + 1 / len(seen)
            params = params_of(float(seen.min()) * margin, float(seen.max()) * margin)
            total += relative_error(run(rounded, node, fake(given[judged], params)), values[reader][judged]) ** 2
    return math.sqrt(total)


def _taken(values: np.ndarray, source: np.ndarray) -> np.ndarray:
    """Return values [samples, batch, channels, ...] with the channels that `source` says."""
    return np.asarray(values[:, :, source] * shares(source).reshape(-1, *[1] * (values.ndim - 3)), np.float32)


def joined(values: np.ndarray, source: np.ndarray) -> np.ndarray:
    """Return values [samples, batch, channels, ...] with all copies of a channel added up."""
    parts = [values[:, :, source == channel].sum(2) for channel in range(int(source.max()) + 1)]
    return np.stack(parts, 2)
