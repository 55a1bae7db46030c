"""Makes the channels of a value equally large: one layer's output channels shrink or grow, the next layers' inputs
make up for it, the network computes the same.

Cross-layer equalisation (Nagel et al., "Data-Free Quantization Through Weight Equalization and Bias Correction", 2019;
Xiao et al., "SmoothQuant", 2022), through clamps at zero, poolings and additions: all values whose channels are tied
so form a class with one factor per channel.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from onnx import NodeProto

from glowc.quant.net import Net, int_of, ints_of
from glowc.quant.scheme import fake, params_of
from glowc.quant.simulate import relative_error
from glowc.quant.weights import channel_axis, nearest

_THROUGH = frozenset({"Relu", "LeakyRelu", "MaxPool", "AveragePool", "GlobalAveragePool", "Identity", "Dropout"})
_LAYERS = frozenset({"Conv", "Gemm"})
LEAST_FACTOR = 1 / 32
STRENGTHS = (0.0, 0.25, 0.5, 0.75, 1.0)
PARTS = 3  # of the samples
WORTH = 0.97  # the error must become this much smaller: what layers behind make of another rounding is not seen here

RunLayer = Callable[[Net, NodeProto, np.ndarray], np.ndarray]


@dataclass(frozen=True, slots=True)
class Class:
    """Values with one factor per channel, the layers that make them, and those that read them."""

    values: tuple[str, ...]
    makers: tuple[str, ...]  # by first result
    readers: tuple[str, ...]


@dataclass(slots=True)
class _Finder:
    net: Net
    shapes: Mapping[str, tuple[int, ...]]

    def channels(self, name: str) -> int:
        """Return the number of channels of a value, at axis 1; 0 where there is no such axis."""
        shape = self.shapes.get(name, ())
        return shape[1] if len(shape) >= 2 else 0

    def ties(self, node: NodeProto) -> list[str]:
        """Return the inputs whose channels are those of the node's result."""
        result = node.output[0]
        if not node.input:
            return []
        if node.op_type in _THROUGH or self._flattens(node) or self._means_places(node):
            return [node.input[0]]
        if node.op_type == "Add" and all(self.shapes.get(n) == self.shapes.get(result) for n in node.input):
            return list(node.input)
        return []

    def _flattens(self, node: NodeProto) -> bool:
        before, after = self.shapes.get(node.input[0], ()), self.shapes.get(node.output[0], ())
        known = node.op_type in ("Reshape", "Flatten", "Squeeze", "Unsqueeze")
        return (
            known and bool(before) and before[:2] == after[:2] and int(np.prod(before[2:])) == int(np.prod(after[2:]))
        )

    def _means_places(self, node: NodeProto) -> bool:
        if node.op_type != "ReduceMean":
            return False
        given = self.net.consts.get(node.input[1]) if len(node.input) > 1 else None
        axes = ints_of(node, "axes") if given is None else given.reshape(-1).tolist()
        rank = len(self.shapes.get(node.input[0], ()))
        return bool(axes) and all(axis % max(rank, 1) >= 2 for axis in axes)

    def scales_output(self, node: NodeProto | None) -> bool:
        """Say whether the node is a layer whose output channels can have factors."""
        if node is None or node.op_type not in _LAYERS or any(n not in self.net.consts for n in node.input[1:] if n):
            return False
        return node.op_type == "Conv" or (int_of(node, "transB", 0) == 1 and int_of(node, "transA", 0) == 0)

    def scales_input(self, node: NodeProto, name: str) -> bool:
        """Say whether the node is a layer whose input channels, all in `name`, can have factors."""
        if not self.scales_output(node) or node.input[0] != name:
            return False
        groups, weights = int_of(node, "group", 1), self.net.consts[node.input[1]]
        if node.op_type == "Gemm":
            return bool(self.channels(name) == weights.shape[1])
        return bool(groups == 1 or groups == self.channels(name))


def find_classes(net: Net, shapes: Mapping[str, tuple[int, ...]]) -> list[Class]:
    """Return the classes of values whose channels can have factors."""
    finder = _Finder(net, shapes)
    parent: dict[str, str] = {}

    def find(name: str) -> str:
        while parent.setdefault(name, name) != name:
            name = parent[name]
        return name

    for node in net.nodes:
        for name in finder.ties(node):
            parent[find(name)] = find(node.output[0])
        if finder.scales_output(node):
            find(node.output[0])
    for one, other in _sharing(net):
        parent[find(one)] = find(other)
    members: dict[str, list[str]] = defaultdict(list)
    for name in parent:
        members[find(name)].append(name)
    found = [_class(finder, names) for names in members.values()]
    return [c for c in found if c is not None]


def _sharing(net: Net) -> list[tuple[str, str]]:
    """Return pairs of values that go into, or come out of, layers with the same weights: their factors are equal."""
    first: dict[str, NodeProto] = {}
    pairs = []
    for node in (n for n in net.nodes if n.op_type in _LAYERS and n.input[1] in net.consts):
        other = first.setdefault(node.input[1], node)
        if other is not node:
            pairs += [(other.input[0], node.input[0]), (other.output[0], node.output[0])]
    return pairs


def _class(finder: _Finder, names: list[str]) -> Class | None:
    """Return the class of these values, if every maker and reader can take factors."""
    net, producers, users = finder.net, finder.net.producers(), finder.net.users()
    given = {p.name for p in net.inputs} | set(net.consts) | net.output_names()
    if given & set(names) or len({finder.channels(n) for n in names}) != 1:
        return None
    makers, readers = [], []
    for name in names:
        maker = producers[name]
        if not finder.ties(maker):
            if not finder.scales_output(maker):
                return None
            makers.append(name)
        for reader in users.get(name, []):
            if reader.output[0] in names and finder.ties(reader):
                continue
            if not finder.scales_input(reader, name):
                return None
            readers.append(reader.output[0])
    return Class(tuple(names), tuple(makers), tuple(readers)) if makers and readers else None


def magnitudes(values: Mapping[str, np.ndarray], names: tuple[str, ...]) -> np.ndarray:
    """Return the largest magnitude of each channel (axis 2, after samples and batch) over several values."""
    lines = [np.abs(np.moveaxis(values[n], 2, 0)).reshape(values[n].shape[2], -1).max(axis=1) for n in names]
    return np.asarray(np.max(lines, axis=0))


def factors(largest: np.ndarray, strength: float) -> np.ndarray:
    """Return what each channel is divided by: with strength 1 all become as large as the largest."""
    share = np.maximum(largest / max(float(largest.max()), 1e-30), LEAST_FACTOR)
    return np.asarray(share**strength, np.float32)


def equalised(net: Net, one: Class, by: np.ndarray) -> Net:
    """Return the network with each channel of a class divided by its factor."""
    consts = dict(net.consts)
    nodes = list(net.nodes)
    for i, node in enumerate(net.nodes):
        if node.output[0] in one.makers or node.output[0] in one.readers:
            nodes[i] = _scaled(node, consts, by, node.output[0] in one.makers, node.output[0] in one.readers)
    return replace(net, nodes=tuple(nodes), consts=consts)


def _scaled(node: NodeProto, consts: dict[str, np.ndarray], by: np.ndarray, makes: bool, reads: bool) -> NodeProto:
    """Return a layer with weights of its own, its outputs divided and its inputs multiplied."""
    weights = consts[node.input[1]]
    rest = [1] * (weights.ndim - 2)
    depthwise = node.op_type == "Conv" and int_of(node, "group", 1) > 1
    bias = None
    if reads:
        each = np.repeat(by, len(weights) // len(by)).reshape(-1, 1, *rest) if depthwise else by.reshape(1, -1, *rest)
        weights = weights * each
    if makes:
        weights = weights / by.reshape(-1, 1, *rest)
        bias = consts[node.input[2]] / by if has_bias(node) else None
    return with_constants(node, consts, "eq", weights, bias)


def has_bias(node: NodeProto) -> bool:
    """Say whether a layer has a bias."""
    return len(node.input) > 2 and bool(node.input[2])


def with_constants(
    node: NodeProto, consts: dict[str, np.ndarray], mark: str, weights: np.ndarray, bias: np.ndarray | None
) -> NodeProto:  # fmt: skip
    """Return a layer with weights, and a bias where one is given, of its own; `mark` ends their names in `consts`."""
    copy = NodeProto()
    copy.CopyFrom(node)
    for place, word, array in ((1, "weights", weights), (2, "bias", bias)):
        if array is not None:
            copy.input[place] = f"{node.output[0]}_{word}_{mark}"
            consts[copy.input[place]] = np.ascontiguousarray(array, np.float32)
    return copy


def best_strength(net: Net, one: Class, values: Mapping[str, np.ndarray], run: RunLayer, bits: int = 8) -> float:
    """Return the strength with which the layers that read a class err least, its values and their weights rounded.

    Each part of the samples is judged with factors and ranges of the others: channels that are equally large on few
    samples may not be so on further ones. Of values of 16 `bits`, which have codes to spare, all samples are judged at
    once. `run(network, layer, input)` computes one layer.
    """
    parts = np.arange(len(values[one.values[0]])) % (PARTS if bits == 8 else 1)
    errors = [np.sqrt(sum(_square_error(net, one, values, run, s, parts == part, bits) for part in np.unique(parts)))
              for s in STRENGTHS]  # fmt: skip
    best = int(np.argmin(errors))
    return STRENGTHS[best] if errors[best] < errors[0] * WORTH else 0.0


def _square_error(
    net: Net, one: Class, values: Mapping[str, np.ndarray], run: RunLayer, strength: float, judged: np.ndarray,
    bits: int,
) -> float:  # fmt: skip
    """Return the sum over readers of their relative square error on some samples, by what the others say."""
    seen = judged if judged.all() else ~judged  # of a single sample there are no others
    margin = 1 + 1 / int(seen.sum())
    by = factors(magnitudes({n: values[n][seen] for n in one.values}, one.values), strength)
    changed = equalised(net, one, by)
    producers, total = changed.producers(), 0.0
    for reader in one.readers:
        node = producers[reader]
        name, weights = node.input[0], changed.consts[node.input[1]]
        given = values[name] / by.reshape([1, 1, -1, *[1] * (values[name].ndim - 3)])
        params = params_of(float(given[seen].min()) * margin, float(given[seen].max()) * margin, bits=bits)
        codes = nearest(weights, channel_axis(node, weights), np.zeros(len(weights)) + 1e-12)
        found = run(changed.with_consts({node.input[1]: codes.values()}), node, fake(given[judged], params))
        total += relative_error(found, values[reader][judged]) ** 2
    return total
