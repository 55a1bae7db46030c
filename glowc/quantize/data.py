"""Sample data -> samples of a model: .npz, .npy, images, WAV, CSV, raw bytes, or a folder of such files.

A sample is one array per input, of the input's shape and element type. Every error names the file, what was seen in it
and what to do. Images need pillow.
"""

from __future__ import annotations

import csv
import wave
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from glowc.errors import InputError, ToolError
from glowc.quantize.net import Net, Port

Array = np.ndarray
Sample = dict[str, Array]
IMAGES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".ppm", ".pgm", ".tif", ".tiff", ".webp"})
RAW = frozenset({".raw", ".bin", ".dat", ".f32"})
KNOWN = frozenset({".npz", ".npy", ".wav", ".csv"}) | IMAGES | RAW


@dataclass(frozen=True, slots=True)
class ImageFormat:
    """How pixels become values: (pixel - mean) / std, pixels from 0 to 255, in this order of channels and axes.

    `layout` is "nchw" or "nhwc"; None takes what fits the model's shape.
    """

    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (255.0,)
    layout: str | None = None
    channels: str = "rgb"


def read_samples(paths: Sequence[Path], net: Net, images: ImageFormat | None = None) -> Iterator[Sample]:
    """Yield the samples of files and folders, one after the other. Raises InputError for what does not fit."""
    files = [file for path in paths for file in _files(path)]
    for file in files:
        yield from _read(file, net, images or ImageFormat())


def count_files(paths: Sequence[Path]) -> int:
    """Return how many files there are to read. Raises InputError for a missing path or an empty folder."""
    return sum(len(_files(path)) for path in paths)


def _files(path: Path) -> list[Path]:
    """Return a file, or the known files of a folder and its folders in sorted order."""
    if not path.exists():
        raise InputError(f"data {path} does not exist", hint="--data takes a file, or a folder of files")
    if path.is_file():
        return [path]
    found = sorted(p for p in path.rglob("*") if p.is_file() and p.suffix.lower() in KNOWN)
    if not found:
        others = sorted({p.suffix or "no ending" for p in path.rglob("*") if p.is_file()})
        seen = f"it has files of kind {', '.join(others[:5])}" if others else "it is empty"
        raise InputError(f"folder {path} holds no data", details=[seen], hint=f"known kinds: {' '.join(sorted(KNOWN))}")
    return found


def _read(file: Path, net: Net, images: ImageFormat) -> Iterator[Sample]:
    kind = file.suffix.lower()
    if kind == ".npz":
        yield from _npz(file, net)
        return
    port = _only_input(file, net)
    if kind in IMAGES:
        yield {port.name: _image(file, port, images)}
        return
    readers: dict[str, Callable[[Path, Port], Iterator[Array]]] = {".npy": _npy, ".wav": _wav, ".csv": _csv}
    if kind not in readers and kind not in RAW:
        raise InputError(f"{file} is of no known kind", hint=f"known kinds: {' '.join(sorted(KNOWN))}")
    for array in readers.get(kind, _raw)(file, port):
        yield {port.name: array}


def _only_input(file: Path, net: Net) -> Port:
    if len(net.inputs) == 1:
        return net.inputs[0]
    names = ", ".join(repr(p.name) for p in net.inputs)
    raise InputError(
        f"{file} holds one array, the model has {len(net.inputs)} inputs: {names}",
        hint="write numpy.savez(path, **{name: array}), samples first",
    )


def _shown(port: Port) -> str:
    return f"{port.name}: {port.dtype}{list(port.shape)}"


def _load(file: Path) -> object:
    try:
        return np.load(file, allow_pickle=False)
    except Exception as error:  # of a damaged file numpy, zipfile and zlib raise what they like
        raise InputError(
            f"numpy cannot read {file}",
            details=str(error).splitlines()[:2],
            hint="write it with numpy.save or numpy.savez",
        ) from error


def _npz(file: Path, net: Net) -> Iterator[Sample]:
    """Yield the samples of named arrays; a single array without the input's name is taken for a single input."""
    content = _load(file)
    if not isinstance(content, np.lib.npyio.NpzFile):
        raise InputError(f"{file} is a single array", hint="name it .npy")
    with content as archive:
        arrays = {name: archive[name] for name in archive.files}
    if len(net.inputs) == len(arrays) == 1 and net.inputs[0].name not in arrays:
        arrays = {net.inputs[0].name: next(iter(arrays.values()))}
    missing = [p.name for p in net.inputs if p.name not in arrays]
    if missing:
        has = ", ".join(map(repr, arrays)) or "no array"
        needs = ", ".join(_shown(p) for p in net.inputs)
        raise InputError(
            f"{file} has no array {missing[0]!r}", details=[f"it has {has}"], hint=f"the model takes {needs}"
        )
    lists = {p.name: samples_of(arrays[p.name], p, file) for p in net.inputs}
    counts = {name: len(found) for name, found in lists.items()}
    if len(set(counts.values())) > 1:
        seen = ", ".join(f"{name}: {n}" for name, n in counts.items())
        raise InputError(f"{file}: inputs have different numbers of samples", details=[seen])
    for i in range(next(iter(counts.values()))):
        yield {name: found[i] for name, found in lists.items()}


def _npy(file: Path, port: Port) -> Iterator[Array]:
    content = _load(file)
    if not isinstance(content, np.ndarray):
        raise InputError(f"{file} holds several arrays", hint="name it .npz")
    yield from samples_of(content, port, file)


def samples_of(array: Array, port: Port, where: object) -> list[Array]:
    """Return the samples in an array: samples first; or one sample; or the model's own first axis of 1 counts them."""
    kinds = "iub" if port.dtype.kind in "iu" else "iubf"
    if array.dtype.kind not in kinds:
        raise InputError(f"{where} has values of type {array.dtype}", hint=f"the model takes {_shown(port)}")
    array = array.astype(port.dtype) if array.dtype != port.dtype else array
    if array.shape == port.shape:
        return [array]
    if array.shape[1:] == port.shape:
        found = list(array)
    elif port.shape[:1] == (1,) and array.shape[1:] == port.shape[1:]:
        found = [sample[None] for sample in array]
    else:
        wanted = ", ".join(map(str, ("N", *port.shape)))
        raise InputError(
            f"{where} has shape {list(array.shape)}, which does not fit the model",
            details=[f"the model takes {_shown(port)}"],
            hint=f"give [{wanted}] for N samples",
        )
    if not found:
        raise InputError(f"{where} holds no sample: shape {list(array.shape)}", hint="give at least one")
    return found


def _image(file: Path, port: Port, form: ImageFormat) -> Array:
    """Return an image as the model takes it, scaled to its size."""
    try:
        from PIL import Image
    except ImportError:
        raise ToolError(
            f"{file} is an image, and pillow is not installed", hint="pip install 'glowc[quantize]'"
        ) from None
    layout = form.layout or _layout(file, port)
    sizes = port.shape[-3:]
    channels, height, width = sizes if layout == "nchw" else (sizes[2], sizes[0], sizes[1])
    if channels not in (1, 3):
        raise InputError(f"{file} is an image, the model takes {_shown(port)}", hint="images have 1 or 3 channels")
    try:
        with Image.open(file) as opened:
            image = opened.convert("L" if channels == 1 else "RGB").resize((width, height), Image.Resampling.BILINEAR)
    except OSError as error:
        raise InputError(f"{file} is no image that pillow can read", details=[str(error)]) from error
    pixels = np.asarray(image, np.float32).reshape(height, width, channels)
    pixels = pixels[..., ::-1] if form.channels == "bgr" else pixels
    if port.dtype.kind == "f":
        pixels = (pixels - _per_channel(form.mean, channels)) / _per_channel(form.std, channels)
    pixels = pixels.transpose(2, 0, 1) if layout == "nchw" else pixels
    return np.ascontiguousarray(pixels.reshape(port.shape), port.dtype)


def _layout(file: Path, port: Port) -> str:
    if len(port.shape) in (3, 4) and int(np.prod(port.shape[:-3])) == 1:
        if port.shape[-3] in (1, 3):
            return "nchw"
        if port.shape[-1] in (1, 3):
            return "nhwc"
    raise InputError(f"{file} is an image, the model takes {_shown(port)}", hint="give the data as .npy or .npz")


def _per_channel(values: tuple[float, ...], channels: int) -> Array:
    if len(values) not in (1, channels):
        raise InputError(
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
        raise InputError(f"{file} is no WAV file of PCM samples", details=[str(error)]) from error
    if width not in (1, 2, 4):
        raise InputError(f"{file} has {8 * width} bits a sample", hint="convert it to 16 bits")
    codes = np.frombuffer(data, {1: "u1", 2: "<i2", 4: "<i4"}[width]).astype(np.float32)
    values = (codes - 128) / 128 if width == 1 else codes / float(1 << (8 * width - 1))
    values = values.reshape(-1, count).mean(axis=1)
    size = int(np.prod(port.shape))
    if not values.size:
        raise InputError(f"{file} holds no sound")
    padded = np.zeros(-(-len(values) // size) * size, np.float32)
    padded[: len(values)] = values
    yield from padded.astype(port.dtype).reshape(-1, *port.shape)


def _csv(file: Path, port: Port) -> Iterator[Array]:
    """Yield a sample per line of numbers; a first line of words is a header."""
    size = int(np.prod(port.shape))
    with file.open(newline="", encoding="utf-8", errors="replace") as text:
        for number, row in enumerate(csv.reader(text), 1):
            try:
                values = np.array([float(cell) for cell in row if cell.strip()])
            except ValueError:
                if number == 1:
                    continue
                raise InputError(f"{file}, line {number}: not a number in {','.join(row)[:60]!r}") from None
            if values.size not in (0, size):
                hint = f"the model takes {_shown(port)}: {size} numbers a line"
                raise InputError(f"{file}, line {number} has {values.size} numbers", hint=hint)
            if values.size:
                yield values.astype(port.dtype).reshape(port.shape)


def _raw(file: Path, port: Port) -> Iterator[Array]:
    """Yield samples of the input's own little-endian elements, one after the other."""
    data, size = file.read_bytes(), int(np.prod(port.shape)) * port.dtype.itemsize
    if not data or len(data) % size:
        raise InputError(
            f"{file} has {len(data):,} bytes", hint=f"the model takes {_shown(port)}: {size:,} bytes a sample"
        )
    yield from np.frombuffer(data, port.dtype.newbyteorder("<")).astype(port.dtype).reshape(-1, *port.shape)
