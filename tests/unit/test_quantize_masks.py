"""Masks of attention as exporters write them: the int8 model hides what they hide, other scores keep their codes."""

from __future__ import annotations

import warnings

import numpy as np
import onnx
import pytest
from onnx import helper

from glowc.quant import Activations, Calibration, QuantizeOptions, Schema, quantize_model
from glowc.quant.engine import Engine
from glowc.quant.load import load_float
from glowc.quant.masked import vanishing
from glowc.quant.profile import profile_net
from glowc.quant.quantizer import quantize_net
from glowc.quant.simulate import relative_error
from tests.unit.quantize_nets import Arrays, model
from tests.unit.test_quantize_model import run

ROWS, WIDTH = 8, 6
LOWEST = float(np.finfo(np.float32).min)
CAUSAL = np.triu(np.ones((ROWS, ROWS), bool), 1)


def attention(mask: list[onnx.NodeProto], masked: str, consts: Arrays, inputs: dict[str, list[int]]) -> onnx.ModelProto:
    """Scores of one head, a mask that makes `masked` of them, Softmax, and the mean of values that it weighs."""
    rng = np.random.default_rng(5)
    weights = {n: rng.normal(size=(WIDTH, WIDTH)).astype(np.float32) for n in ("wq", "wk", "wv")}
    make = helper.make_node
    nodes = [
        make("MatMul", ["x", "wq"], ["q"], name="query"),
        make("MatMul", ["x", "wk"], ["k"], name="key"),
        make("MatMul", ["x", "wv"], ["v"], name="value"),
        make("Transpose", ["k"], ["kt"], name="turn", perm=[0, 2, 1]),
        make("MatMul", ["q", "kt"], ["scores"], name="scores"),
        *mask,
        make("Softmax", [masked], ["p"], name="softmax", axis=-1),
        make("MatMul", ["p", "v"], ["y"], name="mean"),
    ]
    return model(nodes, {**weights, **consts}, {"x": [1, ROWS, WIDTH], **inputs}, {"y": [1, ROWS, WIDTH]})


def added(low: float) -> onnx.ModelProto:
    """A causal mask that is added: 0 or `low`."""
    consts = {"mask": np.where(CAUSAL, np.float32(low), np.float32(0))}
    return attention([helper.make_node("Add", ["scores", "mask"], ["m"], name="hide")], "m", consts, {})


def chosen(low: float) -> onnx.ModelProto:
    """A causal mask by Where, of a constant condition."""
    consts = {"keep": ~CAUSAL[None], "low": np.float32(low)}
    return attention([helper.make_node("Where", ["keep", "scores", "low"], ["m"], name="hide")], "m", consts, {})


def given(low: float) -> onnx.ModelProto:
    """A mask of 0 and 1 that is an input, as tokenisers give it."""
    make = helper.make_node
    mask = [
        make("Sub", ["one", "mask"], ["hidden"], name="invert"),
        make("Mul", ["hidden", "low"], ["lows"], name="lower"),
        make("Add", ["scores", "lows"], ["m"], name="hide"),
    ]
    return attention(mask, "m", {"one": np.float32(1), "low": np.float32(low)}, {"mask": [1, 1, ROWS]})


NETS = {
    "-inf added": added(-np.inf), "-1e9 added": added(-1e9), "lowest float added": added(LOWEST),
    "Where -inf": chosen(-np.inf), "Where -1e9": chosen(-1e9),
    "input, -1e4": given(-1e4), "input, lowest float": given(LOWEST),
}  # fmt: skip


def samples(net: onnx.ModelProto, count: int = 12) -> list[Arrays]:
    rng = np.random.default_rng(1)
    found = [{"x": rng.normal(size=(1, ROWS, WIDTH)).astype(np.float32)} for _ in range(count)]
    if len(net.graph.input) > 1:
        for sample in found:
            sample["mask"] = (np.arange(ROWS) < rng.integers(3, ROWS)).astype(np.float32).reshape(1, 1, ROWS)
    return found


def error(net: onnx.ModelProto, options: QuantizeOptions) -> float:
    """How far the quantised model is from float."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        done = quantize_model(net, samples(net), options)
    return relative_error(run(done.model, samples(net)), run(net, samples(net)))


@pytest.mark.parametrize("name", NETS)
def test_masked_attention_is_near_float_and_all_int8(name: str) -> None:
    done = quantize_model(NETS[name], samples(NETS[name]), QuantizeOptions(float_edge=True))
    assert not done.floats
    assert error(NETS[name], QuantizeOptions(float_edge=True)) < 0.02


@pytest.mark.parametrize(
    "options",
    [{"calibration": Calibration.MINMAX}, {"calibration": Calibration.ENTROPY}, {"activations": Activations.INT16},
     {"schema": Schema.SYMMETRIC_WITH_POWER2_SCALE}],
)  # fmt: skip
@pytest.mark.parametrize("name", ["-inf added", "input, lowest float"])
def test_masks_leave_codes_to_scores_whatever_the_options(name: str, options: dict[str, object]) -> None:
    assert error(NETS[name], QuantizeOptions(float_edge=True, **options)) < 0.03  # type: ignore[arg-type]


@pytest.mark.parametrize("name", NETS)
def test_profile_alone_knows_masks(name: str) -> None:
    net, engine = NETS[name], Engine()
    read = load_float(net)
    profile = profile_net(read, engine, samples(net))
    done = quantize_net(read, engine, profile, [], QuantizeOptions(float_edge=True), lambda _: None)
    assert relative_error(run(done.model, samples(net)), run(net, samples(net))) < 0.02


def test_value_that_is_read_elsewhere_too_is_no_mask() -> None:
    nodes = [helper.make_node("Add", ["x", "low"], ["m"]), helper.make_node("Softmax", ["m"], ["y"])]
    assert vanishing(nodes, ["y"]) == {"x", "low", "m"}
    assert vanishing(nodes, ["y", "m"]) == set()


def test_an_input_that_is_a_mask_may_be_infinite() -> None:
    net = attention([helper.make_node("Add", ["scores", "mask"], ["m"], name="hide")], "m", {}, {"mask": [1, 1, ROWS]})
    given = [{**s, "mask": np.where(s["mask"] > 0, np.float32(0), np.float32(-np.inf))} for s in samples(net)]
    done = quantize_model(net, given, QuantizeOptions(float_edge=True))
    assert not done.floats
    assert relative_error(run(done.model, given), run(net, given)) < 0.02
