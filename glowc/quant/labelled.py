"""Samples with the file that each comes from, and labels where there are any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from glowc.errors import InputError
from glowc.quant.data import ImageFormat, located_samples
from glowc.quant.labels import Labels, folder_labels, read_labels
from glowc.quant.net import Port


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
        raise InputError("the data holds no sample", hint="--data FILE_OR_FOLDER, e.g. --data test.npz")
    arrays = {p.name: np.stack([sample[p.name] for _, _, sample in found]) for p in inputs}
    files = [(given, file) for given, file, _ in found]
    known = read_labels(labels, len(found), classes) if labels is not None else folder_labels(files, classes)
    return EvalSet(arrays, tuple(file for _, file in files), known)
