"""dead-channels: what goes, what must stay, and no output byte changes (random graphs and real models)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from glowc.graph.graph import Graph, GraphEditor
from glowc.graph.types import DType, QuantParams, TensorType, quant
from glowc.ops.interp import run_graph
from glowc.ops.verify import verify
from glowc.passes.base import PassCtx
from glowc.passes.channels.dead_channels import DeadChannels
from glowc.passes.channels.ranges import channel_ranges


class Net:
    """Builds a small NHWC integer network layer by layer."""

    def __init__(self, seed: int, channels: int = 4, size: int = 5, *, tflite: bool = False) -> None:
        self.rng, self.fixed = np.random.default_rng(seed), "Fixed" if tflite else ""
        self.rounding = {"rounding": "tflite"} if tflite else {}
        shape = TensorType((1, size, size, channels), DType.S8, quant(0.05, int(self.rng.integers(-128, 128))), "nhwc")
        self.editor = GraphEditor(Graph("net", ("x",), ("y",), (), {"x": shape}, {}))
        self.value = "x"

    def _out(self, base: str, shape: tuple[int, ...]) -> str:
        zero = int(self.rng.choice([-128, 127, int(self.rng.integers(-128, 128))]))
        params = quant(float(self.rng.uniform(0.02, 0.3)), zero)
        return self.editor.add_value(base, TensorType(shape, DType.S8, params, "nhwc" if len(shape) == 4 else ""))

    def _weights(self, shape: tuple[int, ...], sparsity: float) -> tuple[str, str]:
        rng = self.rng
        weights = rng.integers(-127, 128, shape).astype(np.int8)
        weights[rng.random(shape[0]) < sparsity] = 0
        weights[..., rng.random(shape[-1]) < sparsity] = 0
        scale = tuple(float(np.float32(s)) for s in rng.uniform(0.001, 0.01, shape[0]))
        type_ = TensorType(shape, DType.S8, QuantParams(scale, (0,) * shape[0], 0))
        bias = rng.integers(-4000, 4000, shape[0]).astype(np.int32)
        bias[rng.random(shape[0]) < sparsity / 2] *= 1000
        return self.editor.add_const("w", weights, type_), self.editor.add_const("b", bias)

    def conv(self, out: int, k: int = 3, pad: int = 1, group: int = 1, sparsity: float = 0.4) -> Net:
        n, h, w, c = self.editor.types[self.value].shape
        names = self._weights((out, k, k, c // group), sparsity)
        y = self._out("conv", (n, h + 2 * pad - k + 1, w + 2 * pad - k + 1, out))
        attrs = {
            "kernel_shape": (k, k), "pads": (pad,) * 4, "strides": (1, 1), "dilations": (1, 1), "group": group,
            "layout": "nhwc", "act_min": 0.0, **self.rounding,
        }  # fmt: skip
        self.editor.add_node("Conv", (self.value, *names), (y,), attrs)
        self.value = y
        return self

    def depthwise(self, pad: int = 1) -> Net:
        channels = self.editor.types[self.value].shape[-1]
        return self.conv(channels, 3, pad, channels, 0.2) if channels > 1 else self

    def residual(self) -> Net:
        before = self.value
        channels = self.editor.types[before].shape[-1]
        self.conv(channels)
        y = self._out("add", self.editor.types[self.value].shape)
        self.editor.add_node(f"{self.fixed}Add", (self.value, before), (y,))
        self.value = y
        return self

    def unary(self) -> Net:
        y = self._out("sigmoid", self.editor.types[self.value].shape)
        self.editor.add_node("Sigmoid", (self.value,), (y,))
        self.value = y
        return self

    def pool(self) -> Net:
        n, h, w, c = self.editor.types[self.value].shape
        y = self.editor.add_value("pool", replace(self.editor.types[self.value], shape=(n, h - 1, w - 1, c)))
        attrs = {"kernel_shape": (2, 2), "layout": "nhwc", **self.rounding}
        self.editor.add_node("AveragePool", (self.value,), (y,), attrs)
        self.value = y
        return self

    def head(self, flatten: bool) -> Graph:
        n, h, w, c = self.editor.types[self.value].shape
        shape, op, attrs = ((n, h * w * c), "Reshape", {"shape": (n, h * w * c)})
        if not flatten:
            shape, op, attrs = (n, c), "ReduceMean", {"axes": (1, 2), "keepdims": 0, **self.rounding}
        y = self._out("flat", shape)
        if op == "Reshape":
            self.editor.types[y] = TensorType(shape, DType.S8, self.editor.types[self.value].quant)
        self.editor.add_node(op, (self.value,), (y,), attrs)
        names = self._weights((3, shape[1]), 0.2)
        self.editor.types["y"] = TensorType((n, 3), DType.S8, quant(0.1, 3))
        self.editor.add_node("FullyConnected", (y, *names), ("y",), self.rounding)
        graph = self.editor.finish()
        verify(graph)
        return graph


def random_net(seed: int) -> Graph:
    """A chain of random layers with many zero weights and large biases; from seed 120 on as TensorFlow Lite's are."""
    net = Net(seed, tflite=seed >= 120)
    for _ in range(int(net.rng.integers(1, 6))):
        kind = int(net.rng.integers(0, 6))
        if kind == 0:
            net.depthwise(int(net.rng.integers(0, 2)) if net.editor.types[net.value].shape[1] > 3 else 1)
        elif kind == 1:
            net.residual()
        elif kind == 2:
            net.unary()
        elif kind == 3:
            net.conv(int(net.rng.integers(2, 7)), 1, 0)
        else:
            net.conv(int(net.rng.integers(2, 7)))
    if seed >= 120 and net.editor.types[net.value].shape[1] > 1:
        net.pool()
    return net.head(bool(seed % 2))


def macs(graph: Graph) -> int:
    """Size of all weights: what the pass must never make larger."""
    return sum(graph.consts[n.inputs[1]].size for n in graph.nodes if n.op in ("Conv", "FullyConnected"))


@pytest.mark.parametrize("seed", range(200))
def test_random_networks_give_the_same_bytes_with_fewer_weights(seed: int) -> None:
    graph = random_net(seed)
    smaller = DeadChannels().run(graph, PassCtx())
    verify(smaller)
    assert macs(smaller) <= macs(graph)
    rng = np.random.default_rng(seed)
    shape = graph.types["x"].shape
    ends = rng.choice([-128, 127], shape)
    for x in (rng.integers(-128, 128, shape), np.full(shape, -128), np.full(shape, 127), ends):
        feed = {"x": x.astype(np.int8)}
        np.testing.assert_array_equal(run_graph(smaller, feed)["y"], run_graph(graph, feed)["y"])


def test_random_networks_do_lose_channels() -> None:
    for seeds in (range(40), range(120, 160)):
        assert sum(macs(DeadChannels().run(g, PassCtx())) < macs(g) for g in map(random_net, seeds)) > 20


def test_codes_lie_in_their_ranges_behind_padding_and_curves_with_a_bottom() -> None:
    """A channel of -20 becomes -180 inside of the image and -80 in its corners; |x| is least between the ends."""
    codes = TensorType((1, 4, 4, 1), DType.S8, quant(1.0, 0), "nhwc")
    editor = GraphEditor(Graph("net", ("x",), ("low", "sums", "abs"), (), {"x": codes}, {}))
    one = QuantParams((1.0,), (0,), 0)
    for name, k, weight, bias, scale in (("low", 1, 0, -20, 1.0), ("sums", 3, 1, 0, 2.0)):
        weights = np.full((1, k, k, 1), weight, np.int8)
        w = editor.add_const(f"{name}.w", weights, TensorType(weights.shape, DType.S8, one))
        b = editor.add_const(f"{name}.b", np.array([bias], np.int32))
        out = editor.add_value(name, TensorType(codes.shape, DType.S8, quant(scale, 0), "nhwc"))
        attrs = {
            "kernel_shape": (k, k),
            "pads": (k // 2,) * 4,
            "strides": (1, 1),
            "dilations": (1, 1),
            "layout": "nhwc",
        }
        editor.add_node("Conv", ("x" if name == "low" else "low", w, b), (out,), attrs)
    editor.add_node("Abs", ("x",), (editor.add_value("abs", codes),))
    graph = editor.finish()
    ranges = channel_ranges(graph)
    found = run_graph(graph, {"x": np.arange(-8, 8, dtype=np.int8).reshape(codes.shape)})
    for name, values in found.items():
        assert ranges[name].low[0] <= values.min(), name
        assert ranges[name].high[0] >= values.max(), name
    assert (found["sums"].min(), found["sums"].max(), found["abs"].min()) == (-90, -40, 0)


@pytest.mark.parametrize(("dead", "left"), [(1, 8), (2, 6), (3, 6), (4, 4), (7, 1)])
def test_a_channel_that_fills_a_pair_stays_with_weights_of_zero(dead: int, left: int) -> None:
    graph = Net(5).conv(8, sparsity=0.0).conv(5, 1, 0, sparsity=0.0).head(False)
    graph.consts[graph.nodes[-1].inputs[1]][:] = 1
    for node, scale in zip(graph.nodes, (1.0, 0.1), strict=False):
        graph.types[node.outputs[0]] = replace(graph.types[node.outputs[0]], quant=quant(scale, 0))
    reader = graph.nodes[1].inputs[1]
    graph.consts[reader][..., :dead] = 0
    own = graph.nodes[0].inputs[1]
    scales = QuantParams((9.0,) * dead + (0.02,) * (8 - dead), (0,) * 8, 0)
    graph.types[own] = replace(graph.types[own], quant=scales)
    smaller = DeadChannels().run(graph, PassCtx())
    kept = smaller.types[smaller.nodes[0].inputs[1]].quant
    assert kept is not None
    assert kept.scale == (0.02,) * left
    first, second = (smaller.consts[node.inputs[1]] for node in smaller.nodes[:2])
    assert first.shape[0] == second.shape[-1] == left
    assert first.any((1, 2, 3)).sum() == 8 - dead
    assert DeadChannels().run(smaller, PassCtx()) is smaller


def test_network_without_dead_channels_is_the_same_object() -> None:
    graph = Net(5).conv(6, sparsity=0.0).conv(5, 1, 0, sparsity=0.0).head(False)
    assert graph.types[graph.nodes[0].outputs[0]].shape[-1] == 6
    assert DeadChannels().run(graph, PassCtx()) is graph


@pytest.mark.shared
def test_person_detector_loses_its_dead_channels(shared_models: Path) -> None:
    from glowc.compiler.options import CompileOptions
    from glowc.compiler.pipeline import optimise

    graph = optimise(shared_models / "mlperf_vww_mobilenetv1" / "model.onnx", CompileOptions())
    assert macs(graph) <= 30_340
