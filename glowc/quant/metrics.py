"""How good outputs are: shares of right classes, area under the ROC curve, confusion, errors, a user's metric."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import numpy as np

from glowc.errors import LabelsError
from glowc.paths import module_spec
from glowc.quant.labels import Labels

Array = np.ndarray
Metric = Callable[[Array, Array], float]
MOST_DECIBELS = 200.0  # of a ratio without any error


def scores(outputs: Array) -> Array:
    """Return outputs (samples first) as float64[samples][classes]; a single one is the score of class 1 of two."""
    flat = np.asarray(outputs, np.float64).reshape(len(outputs), -1)
    if flat.shape[1] != 1:
        return flat
    zero = 0.5 if flat.min() >= 0 and flat.max() <= 1 else 0.0  # a probability, or what goes into a sigmoid
    return np.concatenate([2 * zero - flat, flat], axis=1)


def top(outputs: Array, labels: Array, k: int = 1) -> float:
    """Return the share of samples whose label is among the k largest outputs; of equal outputs the first counts."""
    order = np.argsort(-scores(outputs), axis=1, kind="stable")[:, :k]
    return float((order == labels[:, None]).any(axis=1).mean())


def predicted(outputs: Array) -> Array:
    """Return the class of each sample, int64[samples]."""
    return np.asarray(scores(outputs).argmax(axis=1), np.int64)


def auc(outputs: Array, labels: Array) -> float | None:
    """Return the area under the ROC curve of two classes; None where there are others, or just one was seen.

    It is the share of pairs of samples, one of each class, that the outputs put in the right order; ties count half.
    """
    table = scores(outputs)
    if table.shape[1] != 2 or set(np.unique(labels).tolist()) != {0, 1}:
        return None
    _, inverse, counts = np.unique(table[:, 1] - table[:, 0], return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse.reshape(-1)]
    ones = int((labels == 1).sum())
    return float((ranks[labels == 1].sum() - ones * (ones + 1) / 2) / (ones * (len(labels) - ones)))


def confusion(outputs: Array, labels: Array) -> Array:
    """Return int64[class that is right][class that was predicted]."""
    found = predicted(outputs)
    size = int(max(found.max(), labels.max(), scores(outputs).shape[1] - 1)) + 1
    counts = np.zeros((size, size), np.int64)
    np.add.at(counts, (labels, found), 1)
    return counts


def check_classes(labels: Labels, outputs: Array) -> None:
    """Raise InputError for a class that the model has no output of."""
    count = scores(outputs).shape[1]
    wrong = [i for i, label in enumerate(labels.values.tolist()) if not 0 <= label < count]
    if wrong:
        raise LabelsError(
            f"sample {wrong[0]} has label {labels.values[wrong[0]]}, the model knows classes 0 to {count - 1}",
            details=[f"{len(wrong)} labels are so"],
            hint="count classes from 0, in the order of the model's outputs",
        )


def sqnr_db(got: Array, want: Array) -> float:
    """Return the signal to quantisation noise ratio in decibels."""
    exact = np.asarray(want, np.float64)
    noise = float(np.square(got - exact, dtype=np.float64).mean())
    signal = float(np.square(exact, dtype=np.float64).mean())
    if noise == 0:
        return MOST_DECIBELS
    return float(np.clip(10 * np.log10(max(signal, 1e-300) / noise), -MOST_DECIBELS, MOST_DECIBELS))


def cosine(got: Array, want: Array) -> float:
    """Return the cosine of the angle between all values; 1 where both are zero, 0 where one is."""
    a, b = np.asarray(got, np.float64).ravel(), np.asarray(want, np.float64).ravel()
    norm = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b / norm) if norm else float(not a.any() and not b.any())


def load_metric(where: str) -> Metric:
    """Return the function of `file.py:function`: (outputs, labels), samples first, to a number; more is better.

    What it raises, and what is no number, is an InputError.
    """
    path, _, name = where.rpartition(":")
    if not path or not Path(path).is_file():
        raise LabelsError(f"--metric {where}: no such file", hint="--metric file.py:function")
    spec = module_spec("glowc_metric", path)
    if spec is None or spec.loader is None:
        raise LabelsError(f"--metric {where}: {path} is no Python file", hint="--metric file.py:function")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise LabelsError(
            f"--metric {where} fails: {type(error).__name__}: {error}", hint="run the file alone"
        ) from error
    function = getattr(module, name, None)
    if not callable(function):
        raise LabelsError(f"--metric {where}: {path} has no function {name!r}", hint="--metric file.py:function")
    return lambda outputs, labels: _number(function, where, outputs, labels)


def _number(function: Callable[[Array, Array], object], where: str, outputs: Array, labels: Array) -> float:
    try:
        found = function(outputs, labels)
        value = float(found)  # type: ignore[arg-type]
    except Exception as error:
        hint = "it is called with outputs and labels, arrays with samples first"
        raise LabelsError(f"--metric {where} fails: {type(error).__name__}: {error}", hint=hint) from error
    if not np.isfinite(value):
        raise LabelsError(f"--metric {where} returns {value}", hint="return a number, more is better")
    return value
