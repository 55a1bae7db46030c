"""Zip archives that hold a network: exported programs of PyTorch (.pt2) and models of Keras (.keras).

Who loads them runs code of PyTorch or Keras, which unpickles. So the file's name must say that it is one: an .onnx file
stays data, whatever it holds (SECURITY.md).
"""

from __future__ import annotations

import io
import zipfile
from functools import lru_cache

import onnx

from glowc.errors import ModelFileError

ENDINGS = (".pt2", ".keras")
_PROGRAM = ("archive_format", "serialized_exported_program.json")  # the latter before PyTorch 2.7
_KERAS = {"metadata.json", "config.json"}
_EXPORT = "torch.export.save(torch.export.export(module.eval(), (example,)), 'net.pt2')"


def read_archive(data: bytes, label: str) -> onnx.ModelProto:
    """Return the network in an archive as an ONNX model. Raises ModelFileError, MissingToolError, ModelError."""
    return onnx.load_model_from_string(_converted(data, label))


@lru_cache(maxsize=2)
def _converted(data: bytes, label: str) -> bytes:
    """Return the model's bytes; a command reads its model several times, and exporting takes seconds."""
    names = _members(data, label)
    if any(name.endswith(_PROGRAM) for name in names):
        from glowc.frontend.torch_program import load_program

        return bytes(load_program(data, label).SerializeToString())
    if names >= _KERAS:
        from glowc.frontend.keras_model import load_keras

        return load_keras(data, label)
    if any(name.endswith("data.pkl") for name in names):
        raise ModelFileError(f"{label} holds pickled PyTorch objects, not an exported program", hint=_EXPORT)
    hint = "give an .onnx, .tflite, .pt2 or .keras file"
    raise ModelFileError(f"{label} is a zip archive without a network that glowc knows", hint=hint)


def _members(data: bytes, label: str) -> set[str]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return set(archive.namelist())
    except zipfile.BadZipFile:
        raise ModelFileError(f"{label} is a damaged archive", hint="copy, download or save the file again") from None
