"""A model file of any format -> Graph: the bytes say what the file is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from glowc.errors import SizesError
from glowc.frontend.given import Shape, Values
from glowc.frontend.given import given_arrays as given_onnx
from glowc.frontend.half import is_half as is_half_onnx
from glowc.frontend.importer import import_onnx
from glowc.frontend.reader import Source, check_name, file_bytes, name_of
from glowc.frontend.tflite import is_tflite_file
from glowc.graph.graph import Graph


def import_model(
    source: Source,
    *,
    name: str | None = None,
    batch_size: int | None = None,
    symbols: Mapping[str, int] | None = None,
    input_shapes: Mapping[str, tuple[int, ...]] | None = None,
    set_inputs: Mapping[str, tuple[int | float, ...]] | None = None,
    keep_unknown: bool = False,
    float32: bool = False,
) -> Graph:
    """Read an ONNX or TensorFlow Lite model and return its graph with static types.

    `name` is the C identifier of the network (default: from the file name). What the other arguments mean is said by
    `import_onnx`; a TensorFlow Lite model has no symbols and takes no values of inputs.
    Raises ModelError with everything that is wrong with the model, InputError for options that do not fit it.
    """
    data = tflite_bytes(source)
    if data is None:
        return import_onnx(
            source, name=name, batch_size=batch_size, symbols=symbols, input_shapes=input_shapes,
            set_inputs=set_inputs, keep_unknown=keep_unknown, float32=float32,
        )  # fmt: skip
    check_name(name)
    wrong = [option for option, value in (("--define-symbol", symbols), ("--set-input", set_inputs)) if value]
    if wrong:
        text = f"{', '.join(wrong)}: not for a TensorFlow Lite model"
        raise SizesError(text, hint="--batch-size and --input-shape say which shapes its inputs have")
    from glowc.frontend.tflite.importer import (
        import_tflite,  # which takes as long to import as a small model to compile
    )
    from glowc.frontend.tflite.sizes import Sizes

    label = str(source) if isinstance(source, Path) else "model"
    return import_tflite(data, label, name or name_of(source), Sizes(batch_size, input_shapes or {}))


def tflite_bytes(source: Source) -> bytes | None:
    """Return the bytes of a TensorFlow Lite model; None for anything else."""
    if isinstance(source, Path):
        suffix = source.suffix.lower() == ".tflite"
        try:
            with source.open("rb") as file:
                if not suffix and not is_tflite_file(file.read(8)):
                    return None
        except OSError:
            return file_bytes(source) if suffix else None
        return file_bytes(source)
    return source if isinstance(source, bytes) and is_tflite_file(source) else None


def is_half(source: Source) -> bool:
    """Say whether a model computes in float16."""
    return tflite_bytes(source) is None and is_half_onnx(source)


def given_arrays(source: Source, shapes: Mapping[str, Shape], values: Mapping[str, Values]) -> dict[str, np.ndarray]:
    """Return the arrays of inputs that the user made constants, for whoever runs the file itself."""
    return given_onnx(source, shapes, values) if values else {}
