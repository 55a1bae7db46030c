"""States in the quantiser: recurrent layers that are given them, the codes in which they go round, steps in order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from glowc.errors import GroupError
from glowc.frontend import import_model
from glowc.frontend.kept import STATES_KEY, Kept, note_states, noted_states
from glowc.graph.graph import Graph
from glowc.graph.types import DType
from glowc.ops.interp import run_graph
from glowc.passes.pipeline import run_pipeline
from glowc.quant import QuantizeOptions, quantize_model
from glowc.quant.data import read_samples
from glowc.quant.emit import edge_params
from glowc.quant.load import read_inputs
from glowc.quant.quantizer import Quantized
from tests.fuzz.streaming import Stream, draw_stream
from tests.unit.cli_calls import Glowc, refused
from tests.unit.quantize_nets import model

SEEDS = {"lstm": 0, "gru": 1, "two lstm layers": 2, "two gru layers": 3}
_COUNT = 24


def quantised(stream: Stream, **options: object) -> Quantized:
    return quantize_model(stream.model, stream.sequence(0, _COUNT), QuantizeOptions(states=stream.states, **options))


def compiled(done: Quantized) -> Graph:
    return run_pipeline(import_model(done.model))


@pytest.mark.parametrize("seed", SEEDS.values(), ids=list(SEEDS))
def test_states_go_round_in_codes_that_lose_nothing(seed: int) -> None:
    stream = draw_stream(seed)
    done = quantised(stream)
    onnx.checker.check_model(done.model, full_check=True)
    assert not done.floats
    assert not done.wide
    graph = compiled(done)
    assert {n.op for n in graph.nodes} & {"LSTM", "GRU", "DequantizeLinear", "QuantizeLinear", "Requantize"} == set()
    kinds = {s.value: graph.types[s.value] for s in graph.states}
    assert all(graph.types[s.next] == kinds[s.value] for s in graph.states)
    assert {name: kind.dtype for name, kind in kinds.items()} == (
        {"h": DType.S8, "c": DType.S16} if stream.op == "LSTM" else {"h": DType.S16}
    )
    zeros = [s.initial - kinds[s.value].quant.zero_point[0] for s in graph.states]  # type: ignore[union-attr]
    assert not any(z.any() for z in zeros)


@pytest.mark.parametrize("seed", SEEDS.values(), ids=list(SEEDS))
def test_integers_do_not_drift_from_float(seed: int) -> None:
    stream = draw_stream(seed)
    calls = stream.sequence(5, 60)
    done = quantize_model(stream.model, calls, QuantizeOptions(states=stream.states))
    params, graph, exact = edge_params(done.model), compiled(done), import_model(stream.model)
    codes: dict[str, np.ndarray] = {}
    floats = {name: np.zeros(exact.types[name].shape, np.float32) for name in stream.states}
    errors, sizes = [], []
    for step in calls:
        want = run_graph(exact, {**step, **floats})
        floats = {name: want[out] for name, out in stream.states.items()}
        got = run_graph(graph, {"x": params["x"].codes(step["x"])}, states=codes)
        errors.append(float(np.square(params["y"].values(got["y"]) - want["y"]).mean()))
        sizes.append(np.abs(want["y"]).max())
    assert np.sqrt(np.mean(errors)) < 0.03 * max(sizes)
    assert np.sqrt(np.mean(errors[40:])) < 0.03 * max(sizes)


def test_error_over_steps_is_that_of_the_file() -> None:
    done = quantised(draw_stream(1))
    assert done.steps == _COUNT
    assert done.error is not None
    assert done.steps_error is not None
    assert 0.3 * done.error < done.steps_error < 5 * done.error


def initial_net(op: str, start: str, read: str, size: float = 0.5) -> onnx.ModelProto:
    """A layer whose first states are a constant, computed by a Tanh or by a Gemm alone, and what is read of it."""
    rng, gates, cells = np.random.default_rng(0), {"LSTM": 24, "GRU": 18}[op], 6
    consts = {
        "W": rng.normal(size=(1, gates, 4)), "R": 0.4 * rng.normal(size=(1, gates, cells)),
        "k": rng.normal(size=(cells, 3)), "e": size * rng.normal(size=(cells, cells)),
        "const": rng.uniform(-size, size, (1, 1, cells)),
    }  # fmt: skip
    shapes = {"flat": np.array([-1, cells]), "state": np.array([1, 1, cells])}
    nodes = [
        helper.make_node("MatMul", ["a", "e"], ["sums"]), helper.make_node("Tanh", ["sums"], ["bounded"]),
        *(helper.make_node("Reshape", [n, "state"], [f"{n}_state"]) for n in ("sums", "bounded")),
        helper.make_node(op, ["x", "W", "R", "", "", start], ["y", "h", "c"][: 2 + (op == "LSTM")], name="layer",
                         hidden_size=cells),
        helper.make_node("Reshape", [read, "flat"], ["rows"]), helper.make_node("MatMul", ["rows", "k"], ["z"]),
    ]  # fmt: skip
    inputs = {"x": [3, 1, 4]} if start in ("", "const") else {"x": [3, 1, 4], "a": [1, cells]}
    nodes = nodes[4:] if start in ("", "const") else nodes
    held = {**{n: a.astype(np.float32) for n, a in consts.items()}, **shapes}
    return model(nodes, held, inputs, {"z": [3 if read == "y" else 1, 3]})


@pytest.mark.parametrize(
    ("op", "start", "read"),
    [("LSTM", "const", "y"), ("LSTM", "sums_state", "y"), ("LSTM", "", "c"), ("LSTM", "bounded_state", "c"),
     ("GRU", "const", "h"), ("GRU", "bounded_state", "y"), ("GRU", "bounded_state", "h")],
)  # fmt: skip
def test_first_states_that_the_network_has_or_computes(op: str, start: str, read: str) -> None:
    done = quantize_model(initial_net(op, start, read), starts_given(start))
    assert not done.floats
    assert f"Coded{op}" in {n.op for n in compiled(done).nodes}


def test_first_states_of_a_gru_beyond_its_codes_keep_it_float() -> None:
    done = quantize_model(initial_net("GRU", "const", "y", size=4), starts_given("const"))
    assert ("GRU", "its initial states are beyond what int16 holds of them") in {(f.op, f.reason) for f in done.floats}


def starts_given(start: str) -> list[dict[str, np.ndarray]]:
    rng = np.random.default_rng(1)
    shapes = {"x": (3, 1, 4)} if start in ("", "const") else {"x": (3, 1, 4), "a": (1, 6)}
    return [{n: rng.normal(size=s).astype(np.float32) for n, s in shapes.items()} for _ in range(8)]


def test_float_edge_leaves_states_in_codes() -> None:
    stream = draw_stream(0)
    done = quantised(stream, float_edge=True)
    assert edge_params(done.model).keys() == {"h", "c", "h_next", "c_next"}


def test_states_of_different_codes_in_one_tensor_stay_float_and_lose_nothing() -> None:
    stream = draw_stream(0, packed=True)
    done = quantised(stream)
    assert {f.reason for f in done.floats} == {"it joins states of different codes"}
    graph = compiled(done)
    assert "CodedLSTM" in {n.op for n in graph.nodes}
    assert graph.types["s"].dtype is DType.F32
    apart = quantised(draw_stream(0))
    assert done.steps_error == pytest.approx(apart.steps_error, rel=0.5)


def test_layer_on_int16_and_its_states() -> None:
    done = quantised(draw_stream(3), activations="int16")
    assert "GRU" in {f.op for f in done.floats}
    assert {p.dtype for p in edge_params(done.model).values()} == {np.dtype(np.int16)}


def smooth_net(scale: float = 0.5) -> onnx.ModelProto:
    """A running mean: m' = 0.5 m + scale x, which is multiplied by weights."""
    rng = np.random.default_rng(2)
    consts = {"half": np.float32(0.5), "scale": np.float32(scale), "w": rng.normal(size=(6, 4)).astype(np.float32)}
    nodes = [
        helper.make_node("Mul", ["m", "half"], ["old"]), helper.make_node("Mul", ["x", "scale"], ["new"]),
        helper.make_node("Add", ["old", "new"], ["m_next"]), helper.make_node("MatMul", ["m_next", "w"], ["y"]),
    ]  # fmt: skip
    return model(nodes, consts, {"x": [1, 6], "m": [1, 6]}, {"y": [1, 4], "m_next": [1, 6]})


def test_state_of_other_layers_has_one_range() -> None:
    rng = np.random.default_rng(0)
    samples = [{"x": rng.normal(size=(1, 6)).astype(np.float32)} for _ in range(20)]
    done = quantize_model(smooth_net(), samples, QuantizeOptions(states={"m": "m_next"}))
    params = edge_params(done.model)
    assert params["m"] == params["m_next"]
    assert noted_states(done.model) == {"m": "m_next"}


def test_state_that_leaves_as_something_else_is_float() -> None:
    net = smooth_net()
    net.graph.node.append(helper.make_node("Erf", ["e"], ["m_next"]))
    net.graph.node[2].output[0] = net.graph.node[3].input[0] = net.graph.node[4].input[0] = "sum"
    samples = [{"x": np.full((1, 6), i / 4, np.float32)} for i in range(8)]
    options = QuantizeOptions(states={"m": "m_next"}, keep_float=("Erf",))
    done = quantize_model(net, samples, options)
    kinds = {v.name: v.type.tensor_type.elem_type for v in (*done.model.graph.input, *done.model.graph.output)}
    assert kinds["m"] == kinds["m_next"] == onnx.TensorProto.FLOAT
    assert kinds["x"] == onnx.TensorProto.INT8
    assert {s.value for s in compiled(done).states} == {"m"}


def test_sample_that_has_a_state_starts_with_it() -> None:
    given = [{"x": np.ones((1, 6), np.float32)} for _ in range(3)]
    given[1]["m"] = np.full((1, 6), 9, np.float32)
    done = quantize_model(smooth_net(), given, QuantizeOptions(states={"m": "m_next"}, calibration="minmax"))
    assert edge_params(done.model)["m"].high == pytest.approx(9, rel=0.01)


def test_each_file_is_a_sequence(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones((3, 6), np.float32))
    np.save(tmp_path / "b.npy", np.ones((2, 6), np.float32))
    inputs = read_inputs(smooth_net(), None, ("m",))
    begins = ["m" in sample for sample in read_samples([tmp_path], inputs)]
    assert begins == [True, False, False, True, False]


@pytest.mark.parametrize("pairs", [{"m": "y"}, {"n": "m_next"}, {"m": "none"}])
def test_wrong_state_is_refused(pairs: dict[str, str]) -> None:
    with pytest.raises(GroupError, match="--state names an input"):
        quantize_model(smooth_net(), [{"x": np.ones((1, 6), np.float32)}], QuantizeOptions(states=pairs))


def test_noted_states_keep_other_metadata() -> None:
    net = smooth_net()
    helper.set_model_props(net, {"made": "by hand"})
    note_states(net, [Kept("m", "m_next", np.full((1, 6), 2, np.float32))])
    assert {p.key for p in net.metadata_props} == {"made", STATES_KEY}
    (start,) = [p.start for p in read_inputs(net) if p.start is not None]
    assert (start == 2).all()


def test_command_line(glowc: Glowc, tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(smooth_net().SerializeToString())
    np.savez(tmp_path / "in.npz", x=np.random.default_rng(0).normal(size=(12, 6)).astype(np.float32))
    data = ("--data", tmp_path / "in.npz", "--state", "m=m_next")
    done = glowc("quantize", tmp_path / "net.onnx", *data, "-o", "q.onnx")
    assert "after 12 steps with its own states" in done.out
    assert glowc("compile", "q.onnx", "--state", "m=m_next", "-o", "bundle").status == 0
    both = glowc("compile", tmp_path / "net.onnx", "--quantize-data", *data[1:], "-o", "both")
    assert both.status == 0
    says = ["its steps are not scored one by one"]
    refused(glowc, "quantize", tmp_path / "net.onnx", *data, "--target-accuracy", "1", "-o", "r.onnx", says=says)
