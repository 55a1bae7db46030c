"""Models of Keras (.keras), by the backend that is installed (`make test-torch`: PyTorch)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from glowc.api.session import InferenceSession
from glowc.errors import ModelFileError
from glowc.frontend import import_model
from tests.conftest import require_tool
from tests.unit.test_archives import archive

keras = pytest.importorskip("keras", reason="Keras is not installed (make test-torch installs it)")


def _convolutions() -> keras.Model:
    layers = keras.layers
    return keras.Sequential([
        keras.Input((12, 12, 2)), layers.Conv2D(6, 3, padding="same", activation="relu"), layers.BatchNormalization(),
        layers.DepthwiseConv2D(3, strides=2), layers.MaxPooling2D(), layers.Flatten(), layers.Dense(4, "softmax"),
    ])  # fmt: skip


def _recurrent() -> keras.Model:
    layers = keras.layers
    return keras.Sequential([
        keras.Input((7, 5)), layers.LSTM(6, return_sequences=True), layers.GRU(4), layers.Dense(3),
    ])  # fmt: skip


def _two_inputs() -> keras.Model:
    first, second = keras.Input((8,), name="first"), keras.Input((8,), name="second")
    both = keras.layers.Concatenate()([first, second])
    return keras.Model([first, second], [keras.layers.Dense(3)(both), keras.layers.Add()([first, second])])


@pytest.mark.parametrize("make", [_convolutions, _recurrent, _two_inputs])
def test_a_file_computes_what_the_model_does(make: object, tmp_path: Path) -> None:
    require_tool("gcc")
    keras.utils.set_random_seed(0)
    model = make()
    model.save(tmp_path / "net.keras")
    session = InferenceSession(tmp_path / "net.keras")
    inputs = session.get_inputs()
    arrays = [
        np.random.default_rng(i).standard_normal(given.shape).astype(np.float32) for i, given in enumerate(inputs)
    ]
    wanted = model(arrays if len(arrays) > 1 else arrays[0])
    wanted = wanted if isinstance(wanted, list | tuple) else [wanted]
    names = ["output"] if len(wanted) == 1 else [f"output_{i}" for i in range(len(wanted))]
    assert [out.name for out in session.get_outputs()] == names
    found = session.run(None, {given.name: x for given, x in zip(inputs, arrays, strict=True)})
    for got, want in zip(found, wanted, strict=True):
        expected = keras.ops.convert_to_numpy(want)
        assert np.abs(got - expected).max() <= 1e-4 * np.abs(expected).max()


def test_a_file_that_does_not_load_is_told(tmp_path: Path) -> None:
    (tmp_path / "net.keras").write_bytes(archive("metadata.json", "config.json"))
    with pytest.raises(ModelFileError, match=r"Keras .* cannot load"):
        import_model(tmp_path / "net.keras")
