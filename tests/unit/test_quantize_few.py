"""Few samples: what they justify of biases and ranges, spectra in float, and networks drawn from seeds."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper, numpy_helper

from glowc.quant import QuantizeOptions, quantize_model
from glowc.quant.calibrate import entropy_range
from glowc.quant.emit import edge_params
from glowc.quant.front import spectrum
from glowc.quant.layers import corrected
from glowc.quant.load import load_float
from glowc.quant.profile import stats_of
from glowc.quant.scheme import Schema
from tests.fuzz.trained import FAMILIES, draw_net
from tests.unit.quantize_nets import conv_net
from tests.unit.test_quantize_ranges import copying

SOUND = draw_net(13)  # its codes lose most of what the logarithm spreads


def test_a_mean_error_is_believed_as_far_as_samples_agree_on_it() -> None:
    exact = np.asarray([[[1.0, 3.0]], [[1.01, -3.0]], [[0.99, 0.3]], [[1.0, -0.3]]])  # samples, batch, channels
    bias, sums = np.zeros(2, np.float32), np.zeros_like(exact)
    believed = corrected(bias, sums, exact, agreed=True)
    assert believed[0] == pytest.approx(1.0, abs=1e-3)
    assert abs(believed[1]) < 1e-3
    assert corrected(bias, sums, exact)[0] == pytest.approx(4 / 12)


def test_entropy_keeps_the_whole_range_of_few_values() -> None:
    values = np.random.default_rng(0).normal(size=40).astype(np.float32)
    low, high = entropy_range(stats_of(values), Schema.ASYMMETRIC)
    assert (low, high) == pytest.approx((values.min(), values.max()))


@pytest.mark.parametrize(("op", "largest"), [("Softmax", 0.3), ("Sigmoid", 0.5)])
def test_small_part_of_a_known_range_gets_finer_codes(op: str, largest: float) -> None:
    size = 12 if op == "Softmax" else 8
    samples = [{"x": np.full((1, size), -3, np.float32)} for _ in range(12)]
    net = copying(size, op)
    net.graph.node[-1].output[0] = "inside"
    net.graph.node.append(helper.make_node("Gemm", ["inside", "w"], ["y"]))
    consts = {c.name: numpy_helper.to_array(c) for c in quantize_model(net, samples).model.graph.initializer}
    assert consts["inside_quantized_scale"] < largest / 255


@pytest.mark.parametrize("op", ["Softmax", "Sigmoid"])
def test_output_keeps_its_whole_range(op: str) -> None:
    samples = [{"x": np.full((1, 12), -3, np.float32)} for _ in range(12)]
    params = edge_params(quantize_model(copying(12, op), samples).model)["y"]
    assert params.scale == pytest.approx(1 / 256, rel=0.01)


def test_a_spectrum_stays_float_and_says_so() -> None:
    assert SOUND.family == "sound"
    samples = SOUND.samples(0, 6)
    done = quantize_model(SOUND.model, samples)
    kept = [f for f in done.floats if "part of a spectrum" in f.reason]
    assert {"Mul", "Log"} & {f.op for f in kept}
    forced = quantize_model(SOUND.model, samples, QuantizeOptions(float_spectrum=False))
    assert len(forced.floats) < len(done.floats)
    assert done.error is not None
    assert forced.error is not None
    assert done.error < forced.error


def test_no_spectrum_is_found_behind_an_activation() -> None:
    assert not spectrum(load_float(conv_net()))


@pytest.mark.parametrize("seed", range(len(FAMILIES)))
def test_drawn_networks_are_sound(seed: int) -> None:
    net = draw_net(seed)
    assert net.family == list(FAMILIES)[seed]
    assert net.model.SerializeToString() == draw_net(seed).model.SerializeToString()
    assert all(np.isfinite(sample["x"]).all() and sample["x"].shape == net.shape for sample in net.samples(0, 2))
