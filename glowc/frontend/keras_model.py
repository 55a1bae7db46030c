"""A Keras model (`model.save`) -> ONNX, by Keras' own export. Source: documentation of Keras 3, Model.export."""

from __future__ import annotations

import os
import tempfile
import warnings
from pathlib import Path
from typing import Any

import onnx

from glowc.errors import MissingToolError, ModelError, ModelFileError

_INSTALL = "pip install 'glowc[keras]', or install PyTorch and set KERAS_BACKEND=torch"


def load_keras(data: bytes, label: str) -> bytes:
    """Return the bytes of the ONNX model that Keras exports from a .keras file.

    Inputs have the names of the model; the output is `output`, several are `output_0`, `output_1` ...
    Code in the file, such as that of Lambda layers, is not run: Keras refuses it. Raises MissingToolError without
    Keras, its backend or the exporter for it, ModelFileError for a file that Keras cannot load, ModelError for a model
    that it cannot export.
    """
    keras = _keras(label)
    with tempfile.TemporaryDirectory(prefix="glowc-") as folder:
        source, result = Path(folder) / "model.keras", Path(folder) / "model.onnx"
        source.write_bytes(data)
        try:
            model = keras.saving.load_model(source, compile=False, safe_mode=True)
        except Exception as error:  # Keras raises what it likes
            text = f"Keras {keras.__version__} cannot load {label}: {_first_line(error)}"
            raise ModelFileError(text, hint="save it again with model.save; custom layers need their code") from error
        _export(model, result, label)
        exported = onnx.load(result)
    _name_outputs(exported.graph)
    return bytes(exported.SerializeToString())


def _keras(label: str) -> Any:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # TensorFlow writes about the machine otherwise
    try:
        import keras
    except ImportError as error:
        missing = (error.name or "keras").partition(".")[0]
        raise MissingToolError(f"{label} is a Keras model, and {missing} is not installed", hint=_INSTALL) from None
    return keras


def _export(model: Any, result: Path, label: str) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the exporter's own ways
            model(model.inputs if len(model.inputs) > 1 else model.inputs[0])  # Keras exports only what was called
            model.export(result, format="onnx", verbose=False)
    except ImportError as error:
        raise MissingToolError(f"Keras cannot export {label}: {_first_line(error)}", hint=_INSTALL) from None
    except Exception as error:  # Keras raises what it likes
        raise ModelError(f"Keras cannot export {label} to ONNX: {_first_line(error)}") from error


def _name_outputs(graph: onnx.GraphProto) -> None:
    """Let outputs have names that the exporter does not make up from its own operators."""
    count = len(graph.output)
    names = {out.name: "output" if count == 1 else f"output_{i}" for i, out in enumerate(graph.output)}
    for node in graph.node:
        for values in (node.input, node.output):
            values[:] = [names.get(value, value) for value in values]
    for out in graph.output:
        out.name = names[out.name]


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
