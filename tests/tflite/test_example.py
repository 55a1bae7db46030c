"""examples/tflite/sine.tflite is the network of firmware-make's sine.onnx, written as converters write it."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType

import numpy as np

from tests.conftest import ROOT, require_module
from tests.tflite.writer import Build, Quant, Tensor, quant

EXAMPLE = ROOT / "examples/tflite"
MAKER = ROOT / "examples/firmware-make/models/make_models.py"


def _layer(build: Build, x: tuple[int, float], weights: np.ndarray, bias: np.ndarray, relu: int, y: Tensor) -> int:
    """Add a fully connected layer of float weights; `x` is a tensor with its scale."""
    scale = float(np.abs(weights).max()) / 127
    w = build.const(np.rint(weights / scale).astype(np.int8), quant(scale))
    b = build.const(np.rint(bias / (x[1] * scale)).astype(np.int32), quant(x[1] * scale))
    return build.op("FULLY_CONNECTED", (x[0], w, b), y, fusedActivationFunction=relu)


def _sine(maker: ModuleType) -> bytes:
    w1, b1, w2, b2 = maker.sine_layers()
    build = Build()
    angle: Quant = quant(maker.X_SCALE, maker.X_ZERO)
    x = build.add(Tensor((1, 1), "int8", angle, name="x"))
    build.inputs.append(x)
    hidden = Tensor((1, maker.KNOTS), "int8", angle, name="hidden")
    active = _layer(build, (x, maker.X_SCALE), w1, b1, 1, hidden)
    y = Tensor((1, 1), "int8", quant(maker.Y_SCALE, maker.Y_ZERO), name="y")
    _layer(build, (active, maker.X_SCALE), w2, b2, 0, y)
    return build.bytes()


def _maker() -> ModuleType:
    module = ModuleType("make_models")
    module.__file__ = str(MAKER)
    exec(MAKER.read_text("utf-8"), vars(module))
    return module


def test_model_of_the_example_is_the_sine() -> None:
    require_module("tflite_micro")
    made, file = _sine(_maker()), Path(EXAMPLE / "sine.tflite")
    if os.environ.get("GLOWC_UPDATE_GOLDEN") == "1":
        file.write_bytes(made)
    assert file.read_bytes() == made
    assert (EXAMPLE / "sine_test.npz").read_bytes() == (MAKER.parent / "sine_test.npz").read_bytes()
