"""duplicate-channels: equal channels become one where the weights' sums fit, and no output byte changes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from glowc.graph.graph import Graph, GraphEditor
from glowc.graph.types import DType, QuantParams, TensorType, quant
from glowc.ops.interp import run_graph
from glowc.ops.verify import verify
from glowc.passes.base import PassCtx
from glowc.passes.channels.dead_channels import DeadChannels, removed_channels
from glowc.passes.channels.duplicate_channels import DuplicateChannels
from glowc.passes.channels.groups import ChannelGroups
from glowc.passes.channels.ranges import channel_ranges
from glowc.passes.channels.values import channel_classes
from glowc.passes.pipeline import Repeat, run_pipeline
from tests.unit.test_dead_channels import Net, macs


class Twins(Net):
    """A network whose layers repeat output channels; weights stay small, so that many sums fit."""

    limit = 30

    def _weights(self, shape: tuple[int, ...], sparsity: float) -> tuple[str, str]:
        names = super()._weights(shape, 0.0)
        weights, bias = self.editor.consts[names[0]], self.editor.consts[names[1]]
        weights[...] = self.rng.integers(-self.limit, self.limit + 1, shape)
        scale = self.editor.types[names[0]].quant
        assert scale is not None
        source = self.rng.integers(0, max(1, shape[0] // 2), shape[0]) if self.rng.random() < sparsity * 2 else None
        if source is None:
            return names
        weights[...], bias[...] = weights[source], bias[source]
        params = QuantParams(tuple(scale.scale[i] for i in source), scale.zero_point, 0)
        self.editor.types[names[0]] = TensorType(shape, self.editor.types[names[0]].dtype, params)
        return names

    def pool(self) -> Net:
        n, h, w, c = self.editor.types[self.value].shape
        if h < 3:
            return self
        y = self._out("pool", (n, h - 1, w - 1, c))
        self.editor.types[y] = TensorType((n, h - 1, w - 1, c), self.editor.types[self.value].dtype,
                                          self.editor.types[self.value].quant, "nhwc")  # fmt: skip
        attrs = {"kernel_shape": (2, 2), "pads": (0,) * 4, "strides": (1, 1), "layout": "nhwc"}
        self.editor.add_node("MaxPool", (self.value,), (y,), attrs)
        self.value = y
        return self

    def branches(self) -> Net:
        """Two layers on one input, one after another in the channels."""
        before = self.value
        parts = []
        for out in (3, 4):
            self.value = before
            self.conv(out)
            parts.append(self.value)
        params = self.editor.types[parts[0]]
        self.editor.types[parts[1]] = TensorType((*params.shape[:-1], 4), params.dtype, params.quant, "nhwc")
        y = self.editor.add_value("cat", TensorType((*params.shape[:-1], 7), params.dtype, params.quant, "nhwc"))
        self.editor.add_node("Concat", tuple(parts), (y,), {"axis": 3})
        self.value = y
        return self


class Plain(Twins):
    """Quantisation under which no channel is constant by chance."""

    def _out(self, base: str, shape: tuple[int, ...]) -> str:
        return self.editor.add_value(
            base, TensorType(shape, DType.S8, quant(0.02, -100), "nhwc" if len(shape) == 4 else "")
        )


def random_net(seed: int) -> Graph:
    """Layers of every kind that passes channels on, with repeated rows of weights."""
    net = Twins(seed)
    if seed % 5 == 0:
        net.limit = 127
    for _ in range(int(net.rng.integers(2, 6))):
        kind = int(net.rng.integers(0, 7))
        if kind == 0:
            net.depthwise(1)
        elif kind == 1:
            net.residual()
        elif kind == 2:
            net.unary()
        elif kind == 3:
            net.pool()
        elif kind == 4:
            net.branches()
        else:
            net.conv(int(net.rng.integers(3, 9)))
    return net.head(bool(seed % 2))


def merged(graph: Graph) -> Graph:
    """The two passes as the pipeline runs them."""
    while True:
        before = graph
        for one in (DeadChannels(), DuplicateChannels()):
            graph = one.run(graph, PassCtx())
            verify(graph)
        if graph is before:
            return graph


def samples(graph: Graph, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    shape = graph.types["x"].shape
    arrays = (rng.integers(-128, 128, shape), np.full(shape, -128), np.full(shape, 127), rng.choice([-128, 127], shape))
    return [a.astype(np.int8) for a in arrays]


def assert_same(graph: Graph, other: Graph, seed: int) -> None:
    for x in samples(graph, seed):
        np.testing.assert_array_equal(run_graph(other, {"x": x})["y"], run_graph(graph, {"x": x})["y"])


@pytest.mark.parametrize("seed", range(120))
def test_random_networks_give_the_same_bytes(seed: int) -> None:
    graph = random_net(seed)
    smaller = merged(graph)
    assert macs(smaller) <= macs(graph)
    assert_same(graph, smaller, seed)


@pytest.mark.parametrize("seed", range(60))
def test_channels_of_one_class_are_equal_at_every_position(seed: int) -> None:
    graph = random_net(seed)
    classes = channel_classes(graph, channel_ranges(graph))
    for x in samples(graph, seed):
        values = _all_values(graph, x)
        for name, numbers in classes.items():
            flat = values[name].reshape(-1, numbers.size)
            for number in np.unique(numbers):
                same = flat[:, numbers == number]
                assert (same == same[:, :1]).all(), name


def _all_values(graph: Graph, x: np.ndarray) -> dict[str, np.ndarray]:
    every = tuple(out for node in graph.nodes for out in node.outputs)
    whole = Graph(graph.name, graph.inputs, every, graph.nodes, graph.types, graph.consts)
    return {"x": x, **run_graph(whole, {"x": x})}


def test_random_networks_do_lose_duplicates() -> None:
    graphs = [random_net(seed) for seed in range(40)]
    assert sum(macs(merged(g)) < macs(DeadChannels().run(g, PassCtx())) for g in graphs) > 12


def two_layers(weights: np.ndarray, second: np.ndarray, *, middle: str = "") -> Graph:
    """A 1x1 layer, something in the middle, and a 1x1 layer whose weights of channels 0 and 1 are `second`."""
    net = Plain(3)
    net.conv(3, 1, 0, sparsity=0.0)
    conv = next(iter(net.editor.nodes.values()))
    _set(net, conv.inputs[1], weights)
    net.editor.consts[conv.inputs[2]][:] = 7
    if middle:
        getattr(net, middle)()
    for node in net.editor.each("Conv"):
        if node.int_("group") > 1:  # the depthwise layer of three channels
            _set(net, node.inputs[1], np.arange(27))
            net.editor.consts[node.inputs[2]][:] = 0
    net.conv(2, 1, 0, sparsity=0.0)
    last = list(net.editor.nodes.values())[-1]
    _set(net, last.inputs[1], second)
    net.editor.consts[last.inputs[2]][:] = (40, 2000)
    return net.head(False)


def _set(net: Net, name: str, array: np.ndarray) -> None:
    type_ = net.editor.types[name]
    net.editor.consts[name] = array.astype(np.int8).reshape(type_.shape)
    assert type_.quant is not None
    params = QuantParams((0.01,) * type_.shape[0], type_.quant.zero_point, 0)
    net.editor.types[name] = TensorType(type_.shape, type_.dtype, params)


TWINS = np.array([[9, -5, 3, 7], [9, -5, 3, 7], [1, 2, 3, 4]])


def test_weights_of_twins_become_their_sum() -> None:
    graph = two_layers(TWINS, np.array([[100, 27, 5], [-100, -28, 6]]))
    smaller = merged(graph)
    first, second = (n for n in smaller.nodes if n.op == "Conv")
    assert smaller.consts[first.inputs[1]].shape[0] == 2
    np.testing.assert_array_equal(smaller.consts[second.inputs[1]].reshape(2, 2), [[127, 5], [-128, 6]])
    assert_same(graph, smaller, 0)


@pytest.mark.parametrize("second", [[[100, 28, 5], [0, 0, 6]], [[0, 0, 5], [-100, -29, 6]]])
def test_sum_that_does_not_fit_int8_is_not_made(second: list[list[int]]) -> None:
    graph = two_layers(TWINS, np.array(second))
    assert DuplicateChannels().run(graph, PassCtx()) is graph


def test_weights_that_cancel_leave_no_channel_to_compute() -> None:
    graph = two_layers(TWINS, np.array([[50, -50, 5], [-7, 7, 6]]))
    smaller = merged(graph)
    first = next(n for n in smaller.nodes if n.op == "Conv")
    assert smaller.consts[first.inputs[1]].shape[0] == 1
    assert_same(graph, smaller, 0)


@pytest.mark.parametrize("middle", ["unary", "pool"])
def test_twins_go_through_operators_between_the_layers(middle: str) -> None:
    graph = two_layers(TWINS, np.array([[10, 20, 5], [30, 40, 6]]), middle=middle)
    smaller = merged(graph)
    first = next(n for n in smaller.nodes if n.op == "Conv")
    assert smaller.consts[first.inputs[1]].shape[0] == 2
    assert_same(graph, smaller, 0)


def test_twins_with_other_depthwise_weights_are_none() -> None:
    graph = two_layers(TWINS, np.array([[10, 20, 5], [30, 40, 6]]), middle="depthwise")
    assert merged(graph) is graph


def test_twins_in_two_parts_of_a_concatenation_become_one() -> None:
    """The second layer computes channels of the first one: only the part that nothing else reads shrinks."""
    net = Plain(1)
    net.branches()
    one, two = list(net.editor.nodes.values())[:2]
    for node in (one, two):
        type_ = net.editor.types[node.inputs[1]]
        same = QuantParams((0.005,) * type_.shape[0], (0,) * type_.shape[0], 0)
        net.editor.types[node.inputs[1]] = TensorType(type_.shape, type_.dtype, same)
    for operand in (1, 2):
        net.editor.consts[one.inputs[operand]][:] = net.rng.integers(-9, 9, (3, 3, 3, 4) if operand == 1 else 3)
        net.editor.consts[two.inputs[operand]][:3] = net.editor.consts[one.inputs[operand]]
    net.limit = 10
    graph = net.conv(4, sparsity=0.0).head(True)
    smaller = merged(graph)
    rows = sorted(smaller.consts[n.inputs[1]].shape[0] for n in smaller.nodes if n.op == "Conv")
    assert rows == [1, 3, 4]
    assert_same(graph, smaller, 0)


def test_constant_channels_away_from_the_zero_point_are_folded_or_merged() -> None:
    """A 1x1 reader takes constants into its bias; a padded reader needs one of several equal ones."""
    for pad, channels in ((0, 1), (1, 2)):
        net = Twins(5)
        net.conv(4, 1, 0, sparsity=0.0)
        conv = next(iter(net.editor.nodes.values()))
        net.editor.consts[conv.inputs[1]][1:] = 0
        net.editor.consts[conv.inputs[2]][1:] = 300
        type_ = net.editor.types[conv.inputs[1]]
        assert type_.quant is not None
        params = QuantParams((0.01,) * 4, (0,) * 4, 0)
        net.editor.types[conv.inputs[1]] = TensorType(type_.shape, type_.dtype, params)
        graph = net.conv(3, 3, pad, sparsity=0.0).head(False)
        point = graph.types[conv.outputs[0]].quant
        assert point is not None
        low = channel_ranges(graph)[conv.outputs[0]].low
        assert low[1] != point.zero_point[0]
        smaller = merged(graph)
        first = next(n for n in smaller.nodes if n.op == "Conv")
        assert smaller.consts[first.inputs[1]].shape[0] == channels
        assert_same(graph, smaller, 0)


def test_report_names_layers_that_lost_duplicates() -> None:
    graph = two_layers(TWINS, np.array([[10, 20, 5], [30, 40, 6]]))
    editor = GraphEditor(graph)
    for node in editor.each("Conv"):
        editor.update(node, origin=(f"user/{node.name}",))
    imported = editor.finish()
    rows = removed_channels(imported, merged(imported))
    assert [(row["before"], row["after"]) for row in rows] == [(3, 2)]


@pytest.mark.shared
@pytest.mark.parametrize("model", ["mlperf_vww_mobilenetv1", "mlperf_kws_dscnn", "torch_resnet_tiny_qdq"])
def test_real_models_give_the_same_bytes(shared_models: Path, model: str) -> None:
    from glowc.frontend import import_model

    imported = import_model(shared_models / model / "model.onnx")
    plain = run_pipeline(imported, passes="-dead-channels,-duplicate-channels")
    both = run_pipeline(imported)
    rng = np.random.default_rng(0)
    for _ in range(3):
        feed = {}
        for name in plain.inputs:
            type_ = plain.types[name]
            raw = rng.integers(-128, 128, type_.shape) if type_.dtype.is_integer else rng.normal(0, 1, type_.shape)
            feed[name] = raw.astype(type_.dtype.numpy)
        expected, found = run_graph(plain, feed), run_graph(both, feed)
        for name in plain.outputs:
            np.testing.assert_array_equal(found[name], expected[name])


def test_ties_of_a_concatenation_follow_its_parts() -> None:
    net = Twins(2)
    graph = net.branches().head(False)
    groups = ChannelGroups(graph, channel_ranges(graph))
    concat = next(n for n in graph.nodes if n.op == "Concat")
    assert concat.outputs[0] not in groups.frozen
    (part, own, theirs) = next(t for t in groups.ties[concat.inputs[1]] if t[0] == concat.outputs[0])
    assert part == concat.outputs[0]
    np.testing.assert_array_equal(theirs - own, [3] * 4)


def test_both_passes_repeat_in_the_pipeline() -> None:
    from glowc.passes.pipeline import PIPELINE

    groups = [[p.name for p in step.passes] for step in PIPELINE if isinstance(step, Repeat)]
    assert ["dead-channels", "duplicate-channels"] in groups
