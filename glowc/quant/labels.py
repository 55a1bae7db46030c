"""Labels of samples: .npy, .npz, .csv, a text file with one a line, or the folders that images lie in; samples with the
file that each comes from, and labels where there are any.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from glowc.errors import LabelsError
from glowc.quant.data import ImageFormat, located_samples
from glowc.quant.net import Port

_NAMES = ("label", "labels", "y", "target", "targets", "class")
_KINDS = "labels are in .npy, .npz, .csv, or a text file with one a line"


@dataclass(frozen=True, slots=True)
class Labels:
    """What is right for each sample: `values` is int64[samples] of classes, or any array with samples first.

    `names` are those of the classes, in the order of the model's outputs, where they are known.
    """

    values: np.ndarray
    names: tuple[str, ...] = ()

    @property
    def classes(self) -> bool:
        """Say whether the labels are numbers of classes."""
        return self.values.ndim == 1 and self.values.dtype.kind in "iub"

    def shown(self, index: int) -> str:
        """Return the name of a class, or its number."""
        return self.names[index] if 0 <= index < len(self.names) else str(index)


def read_labels(path: Path, count: int, names: Sequence[str] = ()) -> Labels:
    """Return the labels of `count` samples. Raises InputError for another number of them, and for what is no label."""
    if not path.is_file():
        raise LabelsError(f"label file {path} does not exist", hint=_KINDS)
    kind = path.suffix.lower()
    if kind in (".npy", ".npz"):
        found = Labels(_array(path), tuple(names))
    else:
        found = _words(_column(path) if kind == ".csv" else _lines(path), path, tuple(names))
    if len(found.values) != count:
        raise LabelsError(f"{path} has {len(found.values)} labels, the data has {count} samples",
                         hint="give one label per sample, in the order of the data")  # fmt: skip
    return found


def folder_labels(files: Sequence[tuple[Path, Path]], names: Sequence[str] = ()) -> Labels | None:
    """Return labels by the first folder below the given one, of pairs (given path, file); None where there is none.

    Classes are the folders' names in sorted order, or the numbers that all of them are.
    """
    below = [file.relative_to(given).parts[:-1] if given.is_dir() else () for given, file in files]
    if not below or not all(below):
        return None
    return _words([parts[0] for parts in below], files[0][0], tuple(names))


def _words(words: Sequence[str], path: Path, names: tuple[str, ...]) -> Labels:
    """Return numbers of classes: the words themselves, or their places among the names."""
    if words and all(word.lstrip("-").isdecimal() for word in words):
        return Labels(np.array([int(word) for word in words], np.int64), names)
    numbers = _floats(words)
    if numbers is not None:
        return Labels(numbers, names)
    known = names or tuple(sorted(set(words)))
    unknown = sorted(set(words) - set(known))
    if unknown:
        raise LabelsError(f"{path}: label {unknown[0]!r} is not one of the {len(known)} classes", hint="see --classes")
    return Labels(np.array([known.index(word) for word in words], np.int64), known)


def _floats(words: Sequence[str]) -> np.ndarray | None:
    try:
        return np.array([float(word) for word in words], np.float32)
    except ValueError:
        return None


def _array(path: Path) -> np.ndarray:
    """Return the labels in an .npy, or in an .npz: the array named like labels, or the only one."""
    try:
        content = np.load(path, allow_pickle=False)
    except Exception as error:  # of a damaged file numpy, zipfile and zlib raise what they like
        raise LabelsError(f"numpy cannot read {path}", details=str(error).splitlines()[:2], hint=_KINDS) from error
    if not isinstance(content, np.lib.npyio.NpzFile):
        return _classes(np.asarray(content), path)
    with content as archive:
        name = next((n for n in archive.files if n.lower() in _NAMES), None)
        if name is None and len(archive.files) != 1:
            raise LabelsError(f"{path} has no array of labels: {', '.join(map(repr, archive.files)) or 'it is empty'}",
                             hint="name it 'label'")  # fmt: skip
        return _classes(np.asarray(archive[name or archive.files[0]]), path)


def _classes(array: np.ndarray, path: Path) -> np.ndarray:
    """Return whole numbers as int64 without axes of one entry; other labels as they are."""
    if array.dtype.kind not in "iubf" or not array.ndim:
        raise LabelsError(f"{path} has values of type {array.dtype}, shape {list(array.shape)}: no labels", hint=_KINDS)
    flat = array.reshape(len(array), -1)
    if flat.shape[1] != 1 or not np.array_equal(flat, np.rint(flat)):
        return array
    return np.asarray(flat[:, 0], np.int64)


def _column(path: Path) -> list[str]:
    """Return the only column of a CSV file, or the one whose header says that it is labels."""
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as text:
        rows = [[cell.strip() for cell in row] for row in csv.reader(text) if any(cell.strip() for cell in row)]
    if not rows:
        return []
    head = [cell.lower() for cell in rows[0]]
    named = next((i for i, cell in enumerate(head) if cell in _NAMES), None)
    if named is None and len(head) > 1:
        raise LabelsError(f"{path} has {len(head)} columns, none is named 'label'", hint="name one of them 'label'")
    column, body = named or 0, rows[1:] if named is not None else rows
    short = next((i for i, row in enumerate(body, 1) if len(row) <= column), None)
    if short is not None:
        raise LabelsError(f"{path}: row {short} has no label", hint="give one label per sample")
    return [row[column] for row in body]


def _lines(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8-sig", errors="replace")
    return [line.strip() for line in text.splitlines() if line.strip()]


def read_classes(path: Path) -> tuple[str, ...]:
    """Return the names of classes: one a line, in the order of the model's outputs."""
    if not path.is_file():
        raise LabelsError(f"file of classes {path} does not exist", hint="give the name of a class per line")
    return tuple(_lines(path))


@dataclass(frozen=True, slots=True)
class EvalSet:
    """Samples of a model (arrays with samples first, by input), the file of each, and labels where there are any."""

    inputs: dict[str, np.ndarray]
    files: tuple[Path, ...]
    labels: Labels | None

    @property
    def count(self) -> int:
        """The number of samples."""
        return len(self.files)

    def samples(self) -> list[dict[str, np.ndarray]]:
        """Return one dict of arrays for each sample."""
        return [{name: array[i] for name, array in self.inputs.items()} for i in range(self.count)]


def read_set(
    data: Sequence[Path], inputs: Sequence[Port], labels: Path | None, classes: Sequence[str], images: ImageFormat
) -> EvalSet:  # fmt: skip
    """Return the samples of files and folders with their labels: of a file, else of the folders' names."""
    found = list(located_samples(data, inputs, images))
    if not found:
        raise LabelsError("the data holds no sample", hint="--data FILE_OR_FOLDER, e.g. --data test.npz")
    arrays = {p.name: np.stack([sample[p.name] for _, _, sample in found]) for p in inputs}
    files = [(given, file) for given, file, _ in found]
    known = read_labels(labels, len(found), classes) if labels is not None else folder_labels(files, classes)
    return EvalSet(arrays, tuple(file for _, file in files), known)
