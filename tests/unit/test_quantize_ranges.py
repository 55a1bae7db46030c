"""The ranges that `auto` gives: margins by size and by how far samples differ, equal channels where others agree."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from glowc.graph.numerics import softmax_steps
from glowc.quant import QuantizeOptions, quantize_model
from glowc.quant.choose import FEW_TO_MANY
from glowc.quant.emit import edge_params
from glowc.quant.engine import Engine, all_samples, run_net
from glowc.quant.equalize import best_strength, find_classes
from glowc.quant.load import load_float
from glowc.quant.net import Net
from glowc.quant.ranges import SPREADS, bounds_of
from glowc.quant.scheme import Params
from tests.unit.quantize_nets import Arrays, conv_net, images, model


def copying(size: int, *behind: str) -> onnx.ModelProto:
    """A fully connected layer that computes what it is given, and operators of one input behind it."""
    names = ["x", "a", *(f"b{i}" for i in range(len(behind)))]
    nodes = [helper.make_node("Gemm", ["x", "w"], ["a"], name="copy")]
    nodes += [helper.make_node(op, [names[i + 1]], [names[i + 2]]) for i, op in enumerate(behind)]
    nodes[-1].output[0] = "y"
    return model(nodes, {"w": np.eye(size, dtype=np.float32)}, {"x": [1, size]}, {"y": [1, size]})


def output_of(net: onnx.ModelProto, *largest: float, size: int = 4) -> Params:
    """The quantisation of the output, for samples with a largest value each."""
    samples = [{"x": np.linspace(0, top, size, dtype=np.float32)[None]} for top in largest]
    return edge_params(quantize_model(net, samples).model)["y"]


def test_sample_beyond_all_others_is_margin_enough_for_an_output() -> None:
    params = output_of(copying(4), 2.0, 2.5, 3.0, 10.0)
    assert 10 <= params.high <= 10 * 1.021


def test_samples_that_differ_give_an_output_a_margin() -> None:
    params = output_of(copying(4), 8.0, 9.0, 10.0, 10.0)
    spread = float(np.std([8, 9, 10])) * SPREADS / 4
    assert 10 + spread <= params.high <= (10 + spread) * 1.021


def test_output_of_two_samples_has_the_margin_of_other_tensors() -> None:
    assert output_of(copying(4), 5.0, 10.0).high == pytest.approx(15, rel=1e-3)


def test_large_tensors_have_a_narrow_margin() -> None:
    few, many = FEW_TO_MANY
    for size, margin in ((few, 2 / 4), (round((few * many) ** 0.5), 2**0.5 * 0.65 / 4), (many, 0.3 / 4)):
        weights = np.ones((size, 1), np.float32) / size
        nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Gemm", ["a", "w"], ["y"])]
        net = model(nodes, {"w": weights}, {"x": [1, size]}, {"y": [1, 1]})
        samples = [{"x": np.linspace(0, top, size, dtype=np.float32)[None] ** 2} for top in (1, 1.5, 1.7, 2)]
        found = edge_params(quantize_model(net, samples).model)["x"]
        assert found.high == pytest.approx(4 * (1 + margin), rel=1e-3)


def test_what_is_normalised_line_by_line_has_the_whole_margin() -> None:
    lines, size = 8, 256
    consts = {"one": np.ones(size, np.float32), "zero": np.zeros(size, np.float32)}
    nodes = [helper.make_node("LayerNormalization", ["x", "one", "zero"], ["y"])]
    net = model(nodes, consts, {"x": [1, lines, size]}, {"y": [1, lines, size]})
    samples = [{"x": np.linspace(0, top, lines * size, dtype=np.float32).reshape(1, lines, size) ** 2}
               for top in (1, 1.5, 1.7, 2)]  # fmt: skip
    assert edge_params(quantize_model(net, samples).model)["x"].high == pytest.approx(4 * (1 + 1 / 4), rel=1e-3)


@pytest.mark.parametrize(
    ("tops", "change"), [((2, 2, 2, 2), 0.5), ((1.9, 1.8, 1.94, 2), (6 * 0.07 / 0.5) ** 0.5), ((1, 1, 1.5, 2), 2)]
)
def test_samples_that_go_beyond_others_have_a_wider_margin(tops: tuple[float, ...], change: float) -> None:
    net = model([helper.make_node("Gemm", ["x", "w"], ["y"])], {"w": np.ones((4, 1), np.float32)}, {"x": [1, 4]},
                {"y": [1, 1]})  # fmt: skip
    samples = [{"x": np.asarray([[0.1234, 0.4321, 0.7654, top]], np.float32)} for top in tops]
    assert edge_params(quantize_model(net, samples).model)["x"].high == pytest.approx(2 * (1 + change / 4), rel=1e-3)


@pytest.mark.parametrize("activations", ["int8", "int16"])
def test_biases_behind_nothing_but_zeros_are_kept(activations: str) -> None:
    consts = {"w": np.full((4, 2), 0.5, np.float32), "b": np.array([3e-6, -1e-6], np.float32)}
    net = model([helper.make_node("Gemm", ["x", "w", "b"], ["y"])], consts, {"x": [1, 4]}, {"y": [1, 2]})
    made = quantize_model(net, [{"x": np.zeros((1, 4), np.float32)}], QuantizeOptions(activations=activations))
    (codes,) = (a for t in made.model.graph.initializer if (a := numpy_helper.to_array(t)).dtype.itemsize >= 4
                and a.dtype.kind == "i" and a.shape == (2,) and a.any())  # fmt: skip
    assert abs(codes[0] / codes[1] + 3) < 0.02


def test_margin_ends_where_values_cannot_be() -> None:
    consts = {"low": np.array(-3, np.float32), "high": np.array(6, np.float32), "w": np.ones((4, 1), np.float32)}
    nodes = [helper.make_node("Clip", ["x", "low", "high"], ["a"]), helper.make_node("GlobalAveragePool", ["a"], ["b"]),
             helper.make_node("Flatten", ["b"], ["c"]), helper.make_node("Gemm", ["c", "w"], ["y"])]  # fmt: skip
    float_net = load_float(model(nodes, consts, {"x": [1, 4, 2, 2]}, {"y": [1, 1]}))
    assert bounds_of(float_net, ["a"]) == bounds_of(float_net, ["b"]) == bounds_of(float_net, ["b", "c"]) == (-3, 6)
    assert bounds_of(float_net, ["a", "x"]) == (-np.inf, np.inf)


@pytest.mark.parametrize(("activations", "bound"), [(["Sigmoid", "Tanh"], 1.0), (["Sigmoid", "Relu"], np.inf)])
def test_states_are_within_one_with_the_usual_activations_alone(activations: list[str], bound: float) -> None:
    consts = {"w": np.ones((1, 12, 3), np.float32), "r": np.ones((1, 12, 4), np.float32)}
    nodes = [helper.make_node("GRU", ["x", "w", "r"], ["y", ""], hidden_size=4, activations=activations)]
    float_net = load_float(model(nodes, consts, {"x": [5, 1, 3]}, {"y": [5, 1, 1, 4]}))
    assert bounds_of(float_net, ["y"]) == (-bound, bound)


@pytest.mark.parametrize(("sharpness", "narrow"), [(0.1, True), (20.0, False)])
def test_small_probabilities_of_an_attention_have_finer_codes(sharpness: float, narrow: bool) -> None:
    rng, size = np.random.default_rng(2), 16
    nodes = [helper.make_node("MatMul", ["x", "q"], ["a"]), helper.make_node("Softmax", ["a"], ["p"]),
             helper.make_node("MatMul", ["p", "v"], ["y"])]  # fmt: skip
    consts = {n: rng.normal(size=(size, size)).astype(np.float32) for n in ("q", "v")}
    consts["q"] *= np.float32(sharpness)
    net = model(nodes, consts, {"x": [1, size, size]}, {"y": [1, size, size]})
    samples = [{"x": rng.normal(size=(1, size, size)).astype(np.float32)} for _ in range(8)]
    done = quantize_model(net, samples).model
    scale = next(float(numpy_helper.to_array(i)) for i in done.graph.initializer if i.name == "p_quantized_scale")
    assert (1 / np.float32(scale) >= 500) == narrow  # at most twice the largest that 16 alike have
    assert softmax_steps(scale) * scale == pytest.approx(1, rel=1e-6)  # kernels round 1 / scale down


def test_probabilities_of_one_have_a_code() -> None:
    sure = model([helper.make_node("Gemm", ["x", "w"], ["a"]), helper.make_node("Softmax", ["a"], ["y"])],
                 {"w": np.eye(4, dtype=np.float32)}, {"x": [1, 4]}, {"y": [1, 4]})  # fmt: skip
    assert output_of(sure, 30.0, 40.0, 50.0).high == pytest.approx(1, rel=1e-6)
    assert output_of(sure, 0.5, 1.0, 1.5).scale == 1 / 256


def equal_channels(samples: list[np.ndarray]) -> float:
    """The strength with which the channels between two layers are made equal."""
    rng = np.random.default_rng(5)
    consts: Arrays = {"w1": np.eye(8, dtype=np.float32), "w2": rng.normal(size=(6, 8)).astype(np.float32)}
    nodes = [helper.make_node("Gemm", ["x", "w1"], ["a"], transB=1), helper.make_node("Relu", ["a"], ["b"]),
             helper.make_node("Gemm", ["b", "w2"], ["y"], transB=1)]  # fmt: skip
    engine = Engine()
    net = load_float(model(nodes, consts, {"x": [1, 8]}, {"y": [1, 6]}))
    values = run_net(engine, net, {"x": np.stack(samples)})

    def run(other: Net, node: onnx.NodeProto, given: np.ndarray) -> np.ndarray:
        return all_samples(engine, other, node, {node.input[0]: given}, other.consts)[0]

    (one,) = find_classes(net, {name: a.shape[1:] for name, a in values.items()})
    return best_strength(net, one, values, run)


def test_channels_that_are_small_in_all_samples_become_larger() -> None:
    rng, sizes = np.random.default_rng(1), 2.0 ** -np.arange(8)
    assert equal_channels([(rng.uniform(0.8, 1, (1, 8)) * sizes).astype(np.float32) for _ in range(6)]) > 0


def test_channels_that_are_large_in_one_sample_alone_stay_as_they_are() -> None:
    samples = [np.full((1, 8), 0.01, np.float32) for _ in range(6)]
    for i, sample in enumerate(samples):
        sample[0, i] = 2.0**-i
        sample[0, 7] = 1.0
    assert equal_channels(samples) == 0


def test_biases_stay_as_they_are_without_their_correction() -> None:
    options = (QuantizeOptions(equalise=False, bias_correction=b) for b in (True, False))
    corrected, plain = (_bias_of(quantize_model(conv_net(), images(4), o).model) for o in options)
    np.testing.assert_allclose(
        plain, numpy_helper.to_array(next(i for i in conv_net().graph.initializer if i.name == "b2")), atol=1e-3
    )
    assert np.abs(corrected - plain).max() > 1e-3


def _bias_of(quantised: onnx.ModelProto) -> np.ndarray:
    """The bias of the depthwise convolution."""
    consts = {i.name: numpy_helper.to_array(i) for i in quantised.graph.initializer}
    return np.asarray(consts["c2_bias_codes"] * consts["c2_bias_scale"])
