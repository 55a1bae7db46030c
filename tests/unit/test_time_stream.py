"""--input-stream time: results equal those of whole windows, byte for byte; what cannot be streamed is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import Compiled, compile_model
from glowc.errors import GlowcError, InputError, ModelError
from glowc.graph.graph import Graph, Node
from glowc.graph.types import DType, TensorType
from glowc.ops.interp import run_graph
from glowc.passes.time.rules import out_axis
from glowc.passes.time.steps import Slide, Steps, Window, slide
from glowc.program.interp import Memory, run_program
from tests.unit.onnx_builders import model, node
from tests.unit.time_nets import CHANNELS, TimeNet, causal_net, hops_of, random_net, signal, windows_of


def compiled(proto: onnx.ModelProto, folder: Path, **more: Any) -> Compiled:
    path = folder / "net.onnx"
    onnx.save(proto, path)
    return compile_model(path, load_board("host"), CompileOptions(name="net", **more))


def _time(hop: int, **more: Any) -> dict[str, Any]:
    return {"input_stream": "time", "hop": hop, **more}


def streamed(done: Compiled, samples: np.ndarray) -> np.ndarray:
    """Results of one call after the other, in the numpy interpreter of instructions, on the planned arena."""
    memory = Memory(done.program, done.plan.offsets_bytes, done.plan.arena_bytes)
    memory.reset()
    (name,) = done.graph.inputs
    outputs = [run_program(done.program, {name: x}, memory=memory) for x in samples]
    return np.stack([next(iter(o.values())) for o in outputs])


def whole(done: Compiled, samples: np.ndarray) -> np.ndarray:
    (name,) = done.graph.inputs
    return np.stack([next(iter(run_graph(done.graph, {name: x}).values())) for x in samples])


def assert_windows(proto: onnx.ModelProto, folder: Path, hop: int, window: int, calls: int = 6) -> Compiled:
    """Every call gives the last steps, or all, of what the whole model gives for the window that ends there."""
    done = compiled(proto, folder, **_time(hop))
    full = compiled(proto, folder)
    x = signal(hop * calls)
    got, want = streamed(done, hops_of(x, hop)), whole(full, windows_of(x, hop, window))
    if got.ndim == 4:  # a result for each step: the new ones
        want = want[..., -got.shape[-1] :]
    np.testing.assert_array_equal(got, want)
    assert len(np.unique(want)) > 1
    return done


@pytest.mark.parametrize("seed", range(48))
def test_random_networks_equal_the_whole_window_at_every_hop(seed: int, tmp_path: Path) -> None:
    proto, stride = random_net(seed)
    done = assert_windows(proto, tmp_path, stride * (1 + seed % 3), 48, calls=5)
    assert done.report["time"]["results_of"] == "window"  # type: ignore[index]


@pytest.mark.parametrize("seed", range(4))
def test_mean_of_two_steps_is_rounded_as_in_the_longer_image(seed: int, tmp_path: Path) -> None:
    """A quantised mean of a whole image has a formula of its own, which the one window of a hop must not take."""
    proto = TimeNet(46, seed=seed).pool("AveragePool", 2, 2).conv(4, 2, relu=False).done()
    assert_windows(proto, tmp_path, 2, 46, calls=100)


def test_gate_from_the_whole_window_scales_old_steps_anew(tmp_path: Path) -> None:
    """Squeeze and excite: the mean over the window changes, and with it what every kept step is worth."""
    net = TimeNet(32, seed=3).conv(6, 3)
    x = net.value
    gate = net.mean().conv(6, 1, relu=False).unary().value
    net.value, net.steps = net.between(net.op("Mul", f"{x} {gate}", "gated")), 30
    done = assert_windows(net.conv(4, 3, relu=False).mean().classes(), tmp_path, 2, 32, calls=20)
    assert done.report["time"]["results_of"] == "window"  # type: ignore[index]


@pytest.mark.parametrize(
    ("op", "attrs", "axis", "out"),
    [
        ("Split", {}, 0, None), ("Split", {}, 1, 1), ("Split", {"axis": 1}, 1, None), ("Softmax", {}, 1, 1),
        ("Softmax", {}, 2, None), ("Transpose", {"perm": (2, 0, 1)}, 1, 2), ("ReduceMean", {"axes": (2,)}, 1, 1),
        ("ReduceMean", {"axes": (0,), "keepdims": 0}, 1, 0), ("ReduceMean", {"axes": (-2,)}, 1, None),
        ("ReduceMean", {}, 1, None), ("LayerNormalization", {"axis": 2}, 1, 1),
        ("LayerNormalization", {"axis": 1}, 1, None),
        ("FullyConnected", {}, 1, 1), ("FullyConnected", {}, 2, None), ("Resize", {}, 1, None),
    ],
)  # fmt: skip
def test_where_the_time_axis_goes(op: str, attrs: dict[str, Any], axis: int, out: int | None) -> None:
    type_ = TensorType((2, 6, 4), DType.F32)
    one = Node("n", op, ("x",), ("y",), attrs)
    assert out_axis(Graph("g", ("x",), ("y",), (one,), {"x": type_, "y": type_}, {}), one, axis) == out


def test_multiplications_and_ram_fall_with_the_hop(tmp_path: Path) -> None:
    def net() -> onnx.ModelProto:
        return TimeNet(64).conv(16).conv(0, depthwise=True).conv(16, 1).conv(16, 3, stride=2).mean().classes()

    full = compiled(net(), tmp_path)
    macs, arenas = [], []
    for hop in (2, 8, 32):
        done = assert_windows(net(), tmp_path, hop, 64, calls=4)
        macs.append(int(done.report["macs"]))  # type: ignore[call-overload]
        arenas.append(done.plan.arena_bytes)
    head = 3 * 16 + 29 * 16  # the Gemm and the mean see the whole window each time
    steps = int(full.report["macs"]) - head  # type: ignore[call-overload]
    assert macs == sorted(macs)
    for hop, count in zip((2, 8, 32), macs, strict=True):
        assert count - head <= steps * hop / 56, (hop, count, steps)  # valid layers have fewer than 64 outputs
    assert arenas[0] < full.plan.arena_bytes * 0.6


def causal(*, chomp: bool, real: bool = False, steps: int = 32) -> onnx.ModelProto:
    """A temporal convolutional network with dilations 1, 2, 4 and a shortcut; a result for each step."""
    net = TimeNet(steps, real=real)
    for dilation in (1, 2):
        lost = 2 * dilation
        net.conv(6, dilation=dilation, pads=(lost, lost) if chomp else (lost, 0))
        if chomp:
            net.chomp(lost)
    return net.residual(3, 4, causal=True).conv(3, 1, relu=False).done()


@pytest.mark.parametrize("chomp", [False, True])
@pytest.mark.parametrize("hop", [1, 4, 16])
def test_causal_network_equals_the_whole_sequence(chomp: bool, hop: int, tmp_path: Path) -> None:
    """From the first call on: states begin with padding. A longer sequence has no seam at the model's own length."""
    done = compiled(causal(chomp=chomp), tmp_path, **_time(hop))
    x = signal(64)
    got = np.concatenate([y[0] for y in streamed(done, hops_of(x, hop))], -1)
    want = whole(compiled(causal(chomp=chomp, steps=64), tmp_path), x[None, None])[0, 0]
    np.testing.assert_array_equal(got, want)
    assert done.report["time"] == {
        "axis": 2, "hop_steps": hop, "window_steps": 32, "lead_steps": 0, "warmup_calls": 0, "results_of": "sequence",
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(24))
def test_random_causal_networks_equal_the_whole_sequence(seed: int, tmp_path: Path) -> None:
    proto, stride, lead = causal_net(seed, 32)
    hop = stride * (1, 2, 4)[seed % 3]
    done = compiled(proto, tmp_path, **_time(hop))
    time = done.report["time"]
    assert isinstance(time, dict)
    assert (time["results_of"], time["lead_steps"], time["warmup_calls"]) == ("sequence", lead, 0)
    x = signal(64)
    got = np.concatenate([y[0] for y in streamed(done, hops_of(x, hop))], -1)
    led = np.concatenate([np.zeros((CHANNELS, lead), np.float32), x], 1)
    want = whole(compiled(causal_net(seed, 64 + lead)[0], tmp_path), led[None, None])[0, 0]
    np.testing.assert_array_equal(got, want)


def test_causal_layers_with_strides_equal_the_whole_sequence(tmp_path: Path) -> None:
    def net(steps: int) -> onnx.ModelProto:
        return TimeNet(steps).conv(6, 3, stride=2, pads=(2, 0)).conv(5, 4, stride=2, pads=(2, 0)).conv(4, 1).done()

    done = compiled(net(32), tmp_path, **_time(8))
    x = signal(64)
    got = np.concatenate([y[0] for y in streamed(done, hops_of(x, 8))], -1)
    np.testing.assert_array_equal(got, whole(compiled(net(64), tmp_path), x[None, None])[0, 0])


def test_last_step_of_a_causal_network_is_that_of_the_window(tmp_path: Path) -> None:
    """Its receptive field, 1 + 2 + 4 steps, lies inside the window: no padding is seen, and none is kept."""

    def net(steps: int) -> TimeNet:
        return TimeNet(steps).conv(6, pads=(2, 0)).conv(6, dilation=2, pads=(4, 0)).last()

    assert assert_windows(net(16).classes(), tmp_path, 2, 16, calls=12).report["time"]["warmup_calls"] == 7  # type: ignore[index]
    with pytest.raises(ModelError, match="needs steps of the window that see the padding in front of Conv"):
        compiled(net(6).classes(), tmp_path, **_time(2))


def test_layers_without_padding_before_causal_ones_lead_the_sequence(tmp_path: Path) -> None:
    """The sequence begins with as many steps of the reset value as the layers without padding need."""

    def net(steps: int) -> onnx.ModelProto:
        return TimeNet(steps).conv(6, 4).conv(5, 3, pads=(2, 0)).done()

    done = compiled(net(32), tmp_path, **_time(4))
    time = done.report["time"]
    assert isinstance(time, dict)
    assert (time["lead_steps"], time["warmup_calls"]) == (3, 0)
    x = signal(32)
    got = np.concatenate([y[0] for y in streamed(done, hops_of(x, 4))], -1)
    led = np.concatenate([np.zeros((CHANNELS, 3), np.float32), x], 1)
    np.testing.assert_array_equal(got, whole(compiled(net(35), tmp_path), led[None, None])[0, 0])


@pytest.mark.parametrize("seed", range(3))
def test_images_stream_along_either_axis(seed: int, tmp_path: Path) -> None:
    """[1, 1, T, F] and [1, 1, F, T], and frames with padding along the other axis."""
    for axis in (2, 3):
        net = TimeNet(4, seed=seed)
        shape, steps = [1, 2, 10, 10], 10
        net.inputs["x"] = f"f32[{','.join(map(str, shape))}]"
        pads = [0, 1, 0, 1] if axis == 2 else [1, 0, 1, 0]
        w = net.weights(4, 2, 3, 3)
        y = net.between(net.op("Conv", f"{net.value} {w}", "conv", kernel_shape=[3, 3], pads=pads))
        y = net.between(net.op("MaxPool", y, "pool", kernel_shape=[2, 2], strides=[1, 1]))
        net.value = net.between(net.op("GlobalAveragePool", y, "mean"))
        net.channels, net.steps = 4, 1
        proto = net.classes()
        done = compiled(proto, tmp_path, **_time(2, time_axis=axis))
        full = compiled(proto, tmp_path)
        x = np.random.default_rng(seed).normal(0, 3, (1, 2, 10, 30)).astype(np.float32)
        long = np.concatenate([np.zeros((1, 2, 10, steps - 2), np.float32), x], 3)
        hops = np.stack([x[..., k : k + 2] for k in range(0, 30, 2)])
        ends = np.stack([long[..., k : k + steps] for k in range(0, 30, 2)])
        if axis == 2:
            hops, ends = hops.swapaxes(-1, -2), ends.swapaxes(-1, -2)
        np.testing.assert_array_equal(streamed(done, hops), whole(full, ends))
        nhwc = compiled(proto, tmp_path, **_time(2, time_axis=axis, io_layout="nhwc"))
        assert nhwc.report["time"]["axis"] == axis  # type: ignore[index]
        assert nhwc.report["inputs"][0]["exported_shape"] == list(hops.shape[1:])  # type: ignore[index]
        np.testing.assert_array_equal(streamed(nhwc, hops.transpose(0, 1, 3, 4, 2)), whole(full, ends))


def test_flat_input_that_becomes_frames_streams_by_frames(tmp_path: Path) -> None:
    """[1, T * F], as audio front ends deliver it: a hop is a number of whole frames."""
    net = TimeNet(60)
    net.inputs["x"] = "f32[1,60]"
    y = net.op("Reshape", f"{net.value} {net.const('shape', np.array([1, 1, 12, 5], np.int64))}", "frames")
    y = net.between(net.op("Conv", f"{y} {net.weights(4, 1, 3, 5)}", "conv", kernel_shape=[3, 5]))
    net.value = net.between(net.op("GlobalAveragePool", y, "mean"))
    net.channels, net.steps = 4, 1
    proto = net.classes()
    done, full = compiled(proto, tmp_path, **_time(10)), compiled(proto, tmp_path)
    x = np.random.default_rng(1).normal(0, 3, 200).astype(np.float32)
    long = np.concatenate([np.zeros(50, np.float32), x])
    hops = np.stack([x[None, k : k + 10] for k in range(0, 200, 10)])
    ends = np.stack([long[None, k : k + 60] for k in range(0, 200, 10)])
    np.testing.assert_array_equal(streamed(done, hops), whole(full, ends))
    with pytest.raises(ModelError, match="makes frames of 5 steps"):
        compiled(proto, tmp_path, **_time(4))


def recurrent(op: str, steps: int, *, direction: str = "forward", take: str = "y") -> onnx.ModelProto:
    """A recurrent layer over [steps, 1, 4]; `take` is the output of all steps, or the last state."""
    rng, hidden = np.random.default_rng(0), 5
    gates = {"GRU": 3, "LSTM": 4, "RNN": 1}[op]
    dirs = 2 if direction == "bidirectional" else 1
    consts = {
        "w": rng.normal(0, 0.5, (dirs, gates * hidden, 4)).astype(np.float32),
        "r": rng.normal(0, 0.5, (dirs, gates * hidden, hidden)).astype(np.float32),
    }
    nodes = [node(op, "x w r", "y h", name="cell", hidden_size=hidden, direction=direction)]
    return model(nodes, {"x": f"f32[{steps},1,4]"}, take, consts)


@pytest.mark.parametrize("op", ["GRU", "LSTM", "RNN"])
@pytest.mark.parametrize("take", ["y", "h"])
def test_recurrent_layers_carry_their_state(op: str, take: str, tmp_path: Path) -> None:
    done = compiled(recurrent(op, 8, take=take), tmp_path, **_time(2, time_axis=0))
    x = np.random.default_rng(2).normal(0, 1, (24, 1, 4)).astype(np.float32)
    got = streamed(done, x.reshape(12, 2, 1, 4))
    want = whole(compiled(recurrent(op, 24, take=take), tmp_path), x[None])[0]
    np.testing.assert_allclose(np.concatenate(list(got)) if take == "y" else got[-1], want, rtol=1e-5, atol=1e-6)


def test_window_and_sequence_do_not_mix(tmp_path: Path) -> None:
    proto = recurrent("GRU", 8, take="h")
    proto.graph.node.append(node("ReduceMean", "x axes", "mean", name="mean", keepdims=0))
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.array([0]), "axes"))
    proto.graph.output.append(onnx.helper.make_tensor_value_info("mean", 1, None))
    with pytest.raises(ModelError) as error:
        compiled(proto, tmp_path, **_time(2, time_axis=0))
    assert 'ReduceMean "mean": needs the latest window, but what GRU "cell" gives depends on all steps' in str(
        error.value
    )


@pytest.mark.parametrize("last", [False, True])
def test_recurrent_layer_behind_causal_ones(last: bool, tmp_path: Path) -> None:
    """Both begin with the sequence; the last step is that of all steps since the reset."""

    def net(steps: int) -> onnx.ModelProto:
        one = TimeNet(steps, real=True).conv(5, pads=(2, 0))
        one.value = one.op("Transpose", one.value, "by_step", perm=[2, 0, 1])
        for name, shape in (("w", (1, 9, 5)), ("r", (1, 9, 3))):
            one.const(name, np.random.default_rng(4).normal(0, 0.5, shape).astype(np.float32))
        one.nodes.append(node("GRU", f"{one.value} w r", "all", name="gru", hidden_size=3))
        one.value = one.op("Gather", f"all {one.const('end', np.int64(-1))}", "end_step", axis=0) if last else "all"
        return one.done()

    done = compiled(net(16), tmp_path, **_time(4))
    x = signal(32)
    got = streamed(done, hops_of(x, 4))
    want = whole(compiled(net(32), tmp_path), x[None, None])[0]
    assert done.report["time"]["results_of"] == "sequence"  # type: ignore[index]
    np.testing.assert_allclose(got[-1] if last else np.concatenate(list(got)), want, rtol=1e-5, atol=1e-6)


def test_every_layer_in_the_way_is_named_at_once(tmp_path: Path) -> None:
    net = TimeNet(32).conv(4, pads=(1, 1)).conv(4, pads=(1, 1)).conv(4, 3, stride=2).conv(4, 3, stride=2).mean()
    with pytest.raises(ModelError, match="--input-stream time along axis 2") as error:
        compiled(net.classes(), tmp_path, **_time(1))
    text = str(error.value)
    assert 'Conv "Conv_conv1": pads after the window' in text
    assert 'Conv "Conv_conv3": pads after the window' in text
    assert 'Conv "Conv_conv5": its stride 2 does not divide the 1 steps that --hop 1 brings it' in text
    assert 'Conv "Conv_conv7": its stride 2 does not divide' in text
    assert "take a multiple of 4" in text
    assert "hint: pad the past only" in text


@pytest.mark.parametrize(
    ("proto", "words"),
    [
        (TimeNet(16).conv(4, pads=(2, 0)).mean().classes(), "padding in front of Conv"),
        (TimeNet(16).conv(4, 3, pads=(1, 0)).done(), "pads 1 steps in front, a causal layer of its kernel pads 2"),
        (TimeNet(16).conv(4, 3).pool("AveragePool", 2, 1, (1, 0)).done(), "mean over fewer steps"),
        (TimeNet(16).conv(3, pads=(2, 0)).conv(3).conv(3, pads=(2, 0)).done(), "layers without padding"),
        (recurrent("GRU", 8, direction="bidirectional"), "direction bidirectional"),
        (recurrent("GRU", 8, direction="reverse"), "direction reverse"),
        (TimeNet(16).classes(), "every layer needs the whole window"),
    ],
)  # fmt: skip
def test_what_cannot_be_streamed_says_why(proto: onnx.ModelProto, words: str, tmp_path: Path) -> None:
    axis = 0 if proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value == 8 else None
    with pytest.raises(ModelError, match="--input-stream time") as error:
        compiled(proto, tmp_path, **_time(1, time_axis=axis))
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"input_stream": "time"}, "needs the number of steps"),
        ({"hop": 2}, "--hop without --input-stream time"),
        ({"hop": 2, "time_axis": 1}, "--hop and --time-axis without"),
        ({"input_stream": "time", "hop": 16}, "must have more steps"),
        ({"input_stream": "time", "hop": 2, "time_axis": 3}, "has no time axis 3"),
        ({"input_stream": "time", "hop": 2, "golden": Path("x.npz")}, "with --input-stream time"),
    ],
)
def test_options_that_do_not_go_together(more: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(GlowcError, match=words):
        compiled(TimeNet(16).conv(4).mean().classes(), tmp_path, **more)


def test_model_with_two_inputs_is_refused(tmp_path: Path) -> None:
    proto = model([node("Add", "a b", "y", name="add")], {"a": "f32[1,4,8]", "b": "f32[1,4,8]"}, "y")
    with pytest.raises(ModelError, match="has 2 inputs"):
        compiled(proto, tmp_path, **_time(2))


def test_arithmetic_of_a_sliding_window() -> None:
    x = Steps(0, 20, 4)
    assert slide(x, Window(5, 2, 0, 0), 8, "a") == Slide(4, Steps(0, 8, 2, 2, offset=4))  # one step is left over
    assert slide(x, Window(3, 1, 2, 0), 20, "a") == Slide(2, Steps(0, 20, 4, 1, seen=2, pad_from="a"))
    late = slide(x, Window(3, 1, 1, 1), 20, "a")
    assert late is not None
    assert (late.out.late, late.out.late_from, late.out.seen) == (1, "a", 1)
    assert slide(x, Window(1, 2, 0, 0), 10, "a") == Slide(0, Steps(0, 10, 2, 2))
    assert slide(x, Window(18, 1, 0, 0), 3, "a") is None  # fewer outputs than new ones


def test_wrong_axis_is_the_users_error(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        compiled(TimeNet(16).conv(4).done(), tmp_path, **_time(1, time_axis=-4))
