"""Models into bundles, float models into int8 ones: what the commands `compile` and `quantize` do."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
import onnx

from glowc.board import load_board
from glowc.board.checked import check_kind
from glowc.compiler.bundle_folder import check_folder
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model, write_bundle
from glowc.compiler.report import Report
from glowc.errors import ArraysError, InputError
from glowc.quant.data import ImageFormat, open_shapes_of, open_shapes_of_arrays, read_samples, samples_of
from glowc.quant.load import read_inputs
from glowc.quant.net import Port
from glowc.quant.quantizer import QuantizeOptions, quantize_model

_IN_MEMORY = ", bytes or an onnx.ModelProto"
Model = str | Path | bytes | onnx.ModelProto
"""A file (.onnx, .tflite), its bytes, or an ONNX model in memory."""
Data = str | Path | Sequence[str | Path] | np.ndarray | Mapping[str, np.ndarray]
"""Files and folders as `--data` takes them, or arrays with a leading axis of samples: one, or one per input."""
_Given = Sequence[Path] | np.ndarray | Mapping[str, np.ndarray]


@dataclass(frozen=True, slots=True, repr=False)
class CompiledModel:
    """A bundle on disk, and what its report.json says of it (sizes in bytes)."""

    folder: Path
    report: Report

    def __repr__(self) -> str:
        made = f"{self.report['model']} for {self.report['board']} in {self.folder}"
        return f"<CompiledModel {made}: arena {self.arena_bytes:,} bytes, constants {self.weights_bytes:,} bytes>"

    @property
    def arena_bytes(self) -> int:
        """All that an inference writes, except the stack."""
        return self.report["arena_bytes"]

    @property
    def weights_bytes(self) -> int:
        """Constants: weights, biases, scales, tables."""
        return self.report["weights_bytes"]


def compile(
    model: Model, out: str | Path, *, board: str = "host", cpu: str | None = None,
    options: CompileOptions | None = None, force: bool = False,
) -> CompiledModel:  # fmt: skip
    """Compile a model for a board and write the bundle into the folder `out`.

    `board` is a name of `glowc boards` or a board's folder, `cpu` another CPU for it. Raises GlowcError for all that is
    wrong with the model or the options, for a model that does not fit, and when `out` holds files that are not glowc's
    (`force` writes beside and over them).
    """
    check_kind(options, CompileOptions, "options")
    folder = _path(out, "out")
    check_folder(folder, force=force)
    with model_file(model) as path:
        compiled = compile_model(path, load_board(str(board), cpu), options)
        write_bundle(compiled, folder, force=force)
    return CompiledModel(folder, compiled.report)


@contextmanager
def model_file(model: Model) -> Iterator[Path]:
    """Yield the model's file: the one given, or a temporary one of what is in memory."""
    if not isinstance(model, bytes | onnx.ModelProto):
        yield _path(model, "model", _IN_MEMORY)
        return
    data = model if isinstance(model, bytes) else model.SerializeToString()
    suffix = ".tflite" if data[4:8] == b"TFL3" else ".onnx"
    with tempfile.TemporaryDirectory(prefix="glowc-") as folder:
        path = Path(folder) / f"model{suffix}"
        path.write_bytes(data)
        yield path


def _path(value: object, name: str, others: str = "") -> Path:
    """Return the path that an argument is. Raises InputError."""
    if isinstance(value, str | PathLike):
        return Path(value)
    raise InputError(f"{name} is a {type(value).__name__}, not a path{others}")


def quantize(
    model: str | Path | bytes | onnx.ModelProto, data: Data, *, options: QuantizeOptions | None = None,
    images: ImageFormat | None = None,
) -> onnx.ModelProto:  # fmt: skip
    """Return an int8 QDQ model of a float ONNX model, its ranges taken from samples.

    An array has the shape of the model's input behind a leading axis of samples; of images in files, `images` says how
    they become numbers. What `glowc quantize` would note is a warning. Raises ModelError, InputError.
    """
    check_kind(options, QuantizeOptions, "options")
    check_kind(images, ImageFormat, "images")
    source = model if isinstance(model, bytes | onnx.ModelProto) else _path(model, "model", _IN_MEMORY)
    states = options.states if options is not None else {}
    inputs, data = read_inputs(source, None, states), _known(data)
    inputs = read_inputs(source, _open_shapes(data, inputs), states)
    done = quantize_model(source, _samples(data, inputs, images or ImageFormat()), options)
    for note in done.notes:
        warnings.warn(note, stacklevel=2)
    return done.model


def _known(data: Data) -> _Given:
    """Return files as a list of paths, arrays as they are. Raises InputError for what is neither."""
    if isinstance(data, np.ndarray | Mapping):
        return data
    paths = [data] if isinstance(data, str | PathLike) else data if isinstance(data, list | tuple) else None
    if paths is None or not all(isinstance(path, str | PathLike) for path in paths):
        seen = type(data).__name__ + (" of other things" if paths is not None else "")
        hint = "an array with a leading axis of samples (np.stack), a dict of those, or paths"
        raise InputError(f"data is a {seen}, not files or an array", hint=hint)
    return [Path(path) for path in paths]


def _open_shapes(data: _Given, inputs: Sequence[Port]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of inputs whose sizes the model leaves open, as the data has them."""
    if isinstance(data, np.ndarray) and len(inputs) == 1:
        data = {inputs[0].name: data}
    if isinstance(data, Mapping):
        return open_shapes_of_arrays({name: np.shape(array) for name, array in data.items()}, inputs)
    return open_shapes_of([] if isinstance(data, np.ndarray) else data, inputs)


def _samples(
    data: _Given, inputs: Sequence[Port], images: ImageFormat
) -> Iterator[dict[str, np.ndarray]]:  # fmt: skip
    if isinstance(data, np.ndarray):
        needed = [port for port in inputs if port.start is None]
        if len(needed) != 1:
            names = ", ".join(port.name for port in needed)
            raise ArraysError(f"one array for a model with {len(needed)} inputs", hint=f"a dict of arrays for {names}")
        data = {needed[0].name: data}
    if isinstance(data, Mapping):
        return _samples_of_arrays(data, inputs)
    return iter(read_samples(data, inputs, images))


def _samples_of_arrays(data: Mapping[str, np.ndarray], inputs: Sequence[Port]) -> Iterator[dict[str, np.ndarray]]:
    inputs = [port for port in inputs if port.start is None or port.name in data]
    wanted = {port.name for port in inputs}
    if wanted != set(data):
        seen = [f"the model has: {', '.join(sorted(wanted))}", f"given: {', '.join(sorted(data))}"]
        raise ArraysError("the arrays are not those of the model's inputs", details=seen)
    columns = {port.name: samples_of(np.asarray(data[port.name]), port, port.name) for port in inputs}
    counts = {name: len(column) for name, column in columns.items()}
    if len(set(counts.values())) > 1:
        raise ArraysError(
            "the arrays have different numbers of samples", details=[f"{n}: {c}" for n, c in counts.items()]
        )
    for values in zip(*columns.values(), strict=True):
        yield dict(zip(columns, values, strict=True))
