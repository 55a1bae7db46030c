"""Sample data -> samples of a model: .npz, .npy, images, WAV, CSV, raw bytes, or a folder of such files.

A sample is one array per input, of the input's shape and element type; real values become codes where an input is
quantised. Samples of one file are steps in their order where a model has states: the first one has the states' first
values, later ones leave them out, as does an image. Every error names the file, what was seen in it and what to do.
Images need pillow.
"""

from __future__ import annotations

import csv
import wave
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from glowc.board.checked import Checked, NonZero, OneOf
from glowc.errors import DataError, MissingToolError
from glowc.quant.net import Port

Array = np.ndarray
Sample = dict[str, Array]
IMAGES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".ppm", ".pgm", ".tif", ".tiff", ".webp"})
RAW = frozenset({".raw", ".bin", ".dat", ".f32"})
KNOWN = frozenset({".npz", ".npy", ".wav", ".csv"}) | IMAGES | RAW


@dataclass(frozen=True, slots=True, repr=False)
class ImageFormat(Checked):
    """How pixels become values: (pixel - mean) / std, pixels from 0 to 255, in this order of channels and axes.

    `layout` is "nchw" or "nhwc"; None takes what fits the model's shape.
    """

    mean: tuple[float, ...] = (0.0,)
    std: tuple[Annotated[float, NonZero()], ...] = (255.0,)
    layout: Annotated[str, OneOf(("nchw", "nhwc"))] | None = None
    channels: Annotated[str, OneOf(("rgb", "bgr"))] = "rgb"


def read_samples(
    paths: Sequence[Path], inputs: Sequence[Port], images: ImageFormat | None = None
) -> Iterator[Sample]:  # fmt: skip
    """Yield the samples of files and folders, one after the other. Raises InputError for what does not fit."""
    for _, _, sample in located_samples(paths, inputs, images):
        yield sample


def located_samples(
    paths: Sequence[Path], inputs: Sequence[Port], images: ImageFormat | None = None
) -> Iterator[tuple[Path, Path, Sample]]:
    """Yield the samples as `read_samples`, each with the path that was given and the file that it comes from."""
    starts = {port.name: port.start for port in inputs if port.start is not None}
    for path, file in [(given, file) for given in paths for file in _files(given)]:
        begin = {} if file.suffix.lower() in IMAGES else starts
        for sample in _read(file, inputs, images or ImageFormat()):
            yield path, file, {**begin, **sample}
            begin = {}


def _needed(inputs: Sequence[Port]) -> list[Port]:
    """Return the inputs that samples must have: all but states."""
    return [port for port in inputs if port.start is None]


def count_samples(paths: Sequence[Path], inputs: Sequence[Port]) -> int | None:
    """Return how many samples there are, as far as the files' heads say so; None where they must be read for it.

    Raises InputError for a missing path or an empty folder.
    """
    counts = [_count(file, inputs) for path in paths for file in _files(path)]
    return None if None in counts else sum(c for c in counts if c is not None)


def _count(file: Path, inputs: Sequence[Port]) -> int | None:
    kind, port = file.suffix.lower(), _needed(inputs)[0]
    if kind in IMAGES:
        return 1
    if kind in RAW:
        return file.stat().st_size // max(1, int(np.prod(port.shape)) * port.dtype.itemsize)
    shape = _shape(file) if kind in (".npy", ".npz") else None
    if not shape:
        return None
    return 1 if shape == port.shape else shape[0]


def _shape(file: Path) -> tuple[int, ...] | None:
    """Return the shape of the first array of an .npy or .npz, from its head; None where it cannot be read so."""
    try:
        if file.suffix.lower() == ".npy":
            return np.asarray(np.load(file, mmap_mode="r", allow_pickle=False)).shape
        with zipfile.ZipFile(file) as archive, archive.open(archive.namelist()[0]) as member:
            version = np.lib.format.read_magic(member)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            return read(member)[0]
    except (OSError, ValueError, IndexError, zipfile.BadZipFile):
        return None


def _files(path: Path) -> list[Path]:
    """Return a file, or the known files of a folder and its folders in sorted order."""
    if not path.exists():
        raise DataError(f"data {path} does not exist", hint="--data takes a file, or a folder of files")
    if path.is_file():
        return [path]
    found = sorted(p for p in path.rglob("*") if p.is_file() and p.suffix.lower() in KNOWN)
    if not found:
        others = sorted({p.suffix or "no ending" for p in path.rglob("*") if p.is_file()})
        seen = f"it has files of kind {', '.join(others[:5])}" if others else "it is empty"
        raise DataError(f"folder {path} holds no data", details=[seen], hint=f"known kinds: {' '.join(sorted(KNOWN))}")
    return found


def _read(file: Path, inputs: Sequence[Port], images: ImageFormat) -> Iterator[Sample]:
    kind = file.suffix.lower()
    if kind == ".npz":
        yield from _npz(file, inputs)
        return
    port = _only_input(file, inputs)
    if kind != ".npy" and any(axis for axis in port.free):
        shape = "x".join(port.free.get(axis, str(size)) or "?" for axis, size in enumerate(port.shape))
        raise DataError(
            f"{file} does not say what sizes the model shall have: it takes {_shown(port)}",
            hint=f"--input-shape {port.name}={shape} with numbers",
        )
    if kind in IMAGES:
        yield {port.name: _image(file, port, images)}
        return
    readers: dict[str, Callable[[Path, Port], Iterator[Array]]] = {".npy": _npy, ".wav": _wav, ".csv": _csv}
    if kind not in readers and kind not in RAW:
        raise DataError(f"{file} is of no known kind", hint=f"known kinds: {' '.join(sorted(KNOWN))}")
    for array in readers.get(kind, _raw)(file, port):
        yield {port.name: array}


def _only_input(file: Path, inputs: Sequence[Port]) -> Port:
    if len(inputs := _needed(inputs)) == 1:
        return inputs[0]
    names = ", ".join(repr(p.name) for p in inputs)
    raise DataError(
        f"{file} holds one array, the model has {len(inputs)} inputs: {names}",
        hint="write numpy.savez(path, **{name: array}), samples first",
    )


def _shown(port: Port) -> str:
    sizes = ", ".join(port.free.get(axis, str(size)) or "?" for axis, size in enumerate(port.shape))
    return f"{port.name}: {port.dtype}[{sizes}]"


def _load(file: Path) -> object:
    try:
        return np.load(file, allow_pickle=False)
    except Exception as error:  # of a damaged file numpy, zipfile and zlib raise what they like
        raise DataError(
            f"numpy cannot read {file}",
            details=str(error).splitlines()[:2],
            hint="write it with numpy.save or numpy.savez",
        ) from error


def _npz(file: Path, inputs: Sequence[Port]) -> Iterator[Sample]:
    """Yield the samples of named arrays; a single array without the input's name is taken for a single input."""
    content = _load(file)
    if not isinstance(content, np.lib.npyio.NpzFile):
        raise DataError(f"{file} is a single array", hint="name it .npy")
    with content as archive:
        arrays = {name: archive[name] for name in archive.files}
    needed = _needed(inputs)
    if len(needed) == len(arrays) == 1 and needed[0].name not in arrays:
        arrays = {needed[0].name: next(iter(arrays.values()))}
    inputs = [port for port in inputs if port.start is None or port.name in arrays]
    for port in inputs:
        if port.name not in arrays and port.alias in arrays:
            arrays[port.name] = arrays[port.alias]
    missing = [p.name for p in inputs if p.name not in arrays]
    if missing:
        has = ", ".join(map(repr, arrays)) or "no array"
        needs = ", ".join(_shown(p) for p in inputs)
        raise DataError(
            f"{file} has no array {missing[0]!r}", details=[f"it has {has}"], hint=f"the model takes {needs}"
        )
    lists = {p.name: samples_of(arrays[p.name], p, file) for p in inputs}
    counts = {name: len(found) for name, found in lists.items()}
    if len(set(counts.values())) > 1:
        seen = ", ".join(f"{name}: {n}" for name, n in counts.items())
        raise DataError(f"{file}: inputs have different numbers of samples", details=[seen])
    for i in range(next(iter(counts.values()))):
        yield {name: found[i] for name, found in lists.items()}


def _npy(file: Path, port: Port) -> Iterator[Array]:
    content = _load(file)
    if not isinstance(content, np.ndarray):
        raise DataError(f"{file} holds several arrays", hint="name it .npz")
    yield from samples_of(content, port, file)


def open_shapes(inputs: Sequence[Port], sample: Mapping[str, Array]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of inputs whose sizes the model leaves open, by one sample of them."""
    if not isinstance(sample, Mapping):
        return {}
    given = [port for port in inputs if port.free and port.name in sample]
    shapes = {port.name: np.asarray(sample[port.name]).shape for port in given}
    return {port.name: shapes[port.name] for port in given if _fits_open(port, shapes[port.name])}


def open_shapes_of(paths: Sequence[Path], inputs: Sequence[Port]) -> dict[str, tuple[int, ...]]:
    """Return the same by the first .npy or .npz of files and folders; a first axis that is open counts samples.

    Raises InputError for a missing path or an empty folder.
    """
    found: dict[str, tuple[int, ...]] = {}
    files = [file for path in paths for file in _files(path)] if any({*port.free} - {0} for port in inputs) else []
    for file in files:
        found = {**open_shapes_of_arrays(_shapes(file, inputs), inputs), **found}
    return found


def wanted_shapes(
    inputs: Sequence[Port], seen: Mapping[str, tuple[int, ...]], shapes: Mapping[str, tuple[int, ...]],
    symbols: Mapping[str, int], batch_size: int | None,
) -> dict[str, tuple[int, ...]]:  # fmt: skip
    """Return the shapes of inputs as options say them, else as they are `seen` in data.

    Raises InputError with every shape that does not fit.
    """
    found = dict(seen)
    known = {port.name: port for port in inputs}
    problems = [f"--input-shape {name}: the model has {', '.join(known)}" for name in shapes if name not in known]
    problems += [
        f"--input-shape {name}={'x'.join(map(str, shape))}: the model takes {_shown(known[name])}"
        for name, shape in shapes.items()
        if name in known and not _fits_open(known[name], shape)
    ]
    names = {name for port in inputs for name in port.free.values()}
    problems += [f"--define-symbol {name}: the model has no such dimension" for name in symbols if name not in names]
    if problems:
        raise DataError("shapes do not fit the model", details=problems)
    for port in inputs:
        sizes = {axis: symbols[name] for axis, name in port.free.items() if name in symbols}
        if 0 in port.free and batch_size is not None:
            sizes[0] = batch_size
        if sizes:
            known_sizes = enumerate(seen.get(port.name, port.shape))
            found[port.name] = tuple(sizes.get(axis, size) for axis, size in known_sizes)
    return {**found, **shapes}


def open_shapes_of_arrays(shapes: Mapping[str, tuple[int, ...]], inputs: Sequence[Port]) -> dict[str, tuple[int, ...]]:
    """Return the same by the shapes of arrays of samples, by input."""
    found = {}
    for port in (p for p in inputs if p.free and p.name in shapes):
        shape = shapes[port.name]
        counted = len(shape) > len(port.shape)  # samples first; else the model's own first axis counts them
        one = shape[1:] if counted else (port.shape[0], *shape[1:])
        if _fits_open(port, one):
            found[port.name] = one
    return found


def _shapes(file: Path, inputs: Sequence[Port]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the arrays of a file that belong to inputs."""
    if file.suffix.lower() not in (".npy", ".npz"):
        return {}
    content, inputs = _load(file), _needed(inputs)
    if isinstance(content, np.ndarray):
        return {inputs[0].name: content.shape} if len(inputs) == 1 else {}
    assert isinstance(content, np.lib.npyio.NpzFile)
    with content as archive:
        shapes = {name: archive[name].shape for name in archive.files}
    if len(shapes) == len(inputs) == 1:
        return {inputs[0].name: next(iter(shapes.values()))}
    return {port.name: shapes[port.name] for port in inputs if port.name in shapes}


def _fits_open(port: Port, shape: tuple[int, ...]) -> bool:
    return len(shape) == len(port.shape) and all(
        n == m or axis in port.free for axis, (n, m) in enumerate(zip(shape, port.shape, strict=True))
    )


def checked_sample(sample: Mapping[str, Array], inputs: Sequence[Port], number: int) -> Sample:
    """Return a sample that a caller made, in the types of the inputs. Raises InputError with all that does not fit."""
    if not isinstance(sample, Mapping):
        names = ", ".join(f"{port.name!r}: array" for port in inputs)
        raise DataError(f"sample {number} is {type(sample).__name__}", hint=f"a sample is a dict: {{{names}}}")
    known = {port.name: port for port in inputs}
    arrays = {name: np.asarray(value) for name, value in sample.items()}
    problems = [f"there is no {_shown(port)}" for port in _needed(inputs) if port.name not in arrays]
    problems += [f"{name!r} is no input of the model" for name in arrays if name not in known]
    for name, port in ((n, p) for n, p in known.items() if n in arrays):
        array = arrays[name]
        if array.shape != port.shape or array.dtype.kind not in "iubf":
            problems.append(f"{name} is {array.dtype}{list(array.shape)}, the model takes {_shown(port)}")
    if problems:
        raise DataError(f"sample {number} does not fit the model", details=problems)
    return {name: arrays[name].astype(port.dtype, copy=False) for name, port in known.items() if name in arrays}


def samples_of(array: Array, port: Port, where: object) -> list[Array]:
    """Return the samples in an array: samples first; or one sample; or the model's own first axis of 1 counts them."""
    kinds = "iub" if port.dtype.kind in "iu" and port.params is None else "iubf"
    if array.dtype.kind not in kinds:
        raise DataError(f"{where} has values of type {array.dtype}", hint=f"the model takes {_shown(port)}")
    array = as_port(array, port) if array.dtype.kind == "f" else array.astype(port.dtype, copy=False)
    if array.shape == port.shape:
        return [array]
    if array.shape[1:] == port.shape:
        found = list(array)
    elif port.shape[:1] == (1,) and array.shape[1:] == port.shape[1:]:
        found = [sample[None] for sample in array]
    else:
        wanted = ", ".join(map(str, ("N", *port.shape)))
        raise DataError(
            f"{where} has shape {list(array.shape)}, which does not fit the model",
            details=[f"the model takes {_shown(port)}"],
            hint=f"give [{wanted}] for N samples",
        )
    if not found:
        raise DataError(f"{where} holds no sample: shape {list(array.shape)}", hint="give at least one")
    return found


def as_port(values: Array, port: Port) -> Array:
    """Return real values in the element type of an input: the nearest codes where it has a quantisation."""
    if port.params is None:
        return values.astype(port.dtype, copy=False)
    limits = np.iinfo(port.dtype.str)
    codes = np.rint(values / np.float32(port.params.scale)) + port.params.zero_point
    return np.asarray(np.clip(codes, limits.min, limits.max), port.dtype)


def _image(file: Path, port: Port, form: ImageFormat) -> Array:
    """Return an image as the model takes it, scaled to its size."""
    try:
        from PIL import Image
    except ImportError:
        raise MissingToolError(
            f"{file} is an image, and pillow is not installed", hint="pip install 'glowc[quantize]'"
        ) from None
    layout = form.layout or _layout(file, port)
    sizes = port.shape[-3:]
    channels, height, width = sizes if layout == "nchw" else (sizes[2], sizes[0], sizes[1])
    if channels not in (1, 3):
        raise DataError(f"{file} is an image, the model takes {_shown(port)}", hint="images have 1 or 3 channels")
    try:
        with Image.open(file) as opened:
            image = opened.convert("L" if channels == 1 else "RGB").resize((width, height), Image.Resampling.BILINEAR)
    except OSError as error:
        raise DataError(f"{file} is no image that pillow can read", details=[str(error)]) from error
    pixels = np.asarray(image, np.float32).reshape(height, width, channels)
    pixels = pixels[..., ::-1] if form.channels == "bgr" else pixels
    if port.dtype.kind == "f" or port.params is not None:
        pixels = (pixels - _per_channel(form.mean, channels)) / _per_channel(form.std, channels)
    pixels = pixels.transpose(2, 0, 1) if layout == "nchw" else pixels
    return np.ascontiguousarray(as_port(pixels.reshape(port.shape), port))


def _layout(file: Path, port: Port) -> str:
    if len(port.shape) in (3, 4) and int(np.prod(port.shape[:-3])) == 1:
        if port.shape[-3] in (1, 3):
            return "nchw"
        if port.shape[-1] in (1, 3):
            return "nhwc"
    raise DataError(f"{file} is an image, the model takes {_shown(port)}", hint="give the data as .npy or .npz")


def _per_channel(values: tuple[float, ...], channels: int) -> Array:
    if len(values) not in (1, channels):
        raise DataError(
            f"{len(values)} numbers for {channels} channels", hint="give --mean and --std one, or one per channel"
        )
    return np.array(values, np.float32)


def _wav(file: Path, port: Port) -> Iterator[Array]:
    """Yield the sound in pieces of the input's length, mono, from -1 to 1; the rest is filled with silence."""
    try:
        with wave.open(str(file)) as sound:
            width, count = sound.getsampwidth(), sound.getnchannels()
            data = sound.readframes(sound.getnframes())
    except (wave.Error, EOFError) as error:
        raise DataError(f"{file} is no WAV file of PCM samples", details=[str(error)]) from error
    if width not in (1, 2, 4):
        raise DataError(f"{file} has {8 * width} bits a sample", hint="convert it to 16 bits")
    codes = np.frombuffer(data, {1: "u1", 2: "<i2", 4: "<i4"}[width]).astype(np.float32)
    values = (codes - 128) / 128 if width == 1 else codes / float(1 << (8 * width - 1))
    values = values.reshape(-1, count).mean(axis=1)
    size = int(np.prod(port.shape))
    if not values.size:
        raise DataError(f"{file} holds no sound")
    padded = np.zeros(-(-len(values) // size) * size, np.float32)
    padded[: len(values)] = values
    yield from as_port(padded, port).reshape(-1, *port.shape)


def _csv(file: Path, port: Port) -> Iterator[Array]:
    """Yield a sample per line of numbers; a first line of words is a header."""
    size = int(np.prod(port.shape))
    with file.open(newline="", encoding="utf-8-sig", errors="replace") as text:
        for number, row in enumerate(csv.reader(text), 1):
            try:
                values = np.array([float(cell) for cell in row if cell.strip()])
            except ValueError:
                if number == 1:
                    continue
                raise DataError(f"{file}, line {number}: not a number in {','.join(row)[:60]!r}") from None
            if values.size not in (0, size):
                hint = f"the model takes {_shown(port)}: {size} numbers a line"
                raise DataError(f"{file}, line {number} has {values.size} numbers", hint=hint)
            if values.size:
                yield as_port(values, port).reshape(port.shape)


def _raw(file: Path, port: Port) -> Iterator[Array]:
    """Yield samples of the input's own little-endian elements, one after the other."""
    data, size = file.read_bytes(), int(np.prod(port.shape)) * port.dtype.itemsize
    if not data or len(data) % size:
        raise DataError(
            f"{file} has {len(data):,} bytes", hint=f"the model takes {_shown(port)}: {size:,} bytes a sample"
        )
    yield from np.frombuffer(data, port.dtype.newbyteorder("<")).astype(port.dtype).reshape(-1, *port.shape)
