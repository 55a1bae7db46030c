"""Arrays that come with a command: .npz files of samples, or one .npy for a model with one input."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from glowc.errors import ArraysError
from glowc.graph.graph import Graph

_POSITIONS = ("arr_{}", "input_{}", "output_{}", "{}")  # the first are those of numpy.savez without names
_SAVEZ = "write it with numpy.savez(path, **{name: array})"


def load_samples(path: Path, graph: Graph) -> dict[str, np.ndarray]:
    """Return the model's inputs from an .npz: one array per input, with a leading sample axis.

    Raises InputError that names every array which is missing, of another type, or does not fit.
    """
    wanted = {name: (graph.types[name].shape, graph.types[name].dtype.numpy) for name in graph.inputs}
    return read_arrays(path, wanted, graph.aliases)


def read_arrays(
    path: Path,
    wanted: Mapping[str, tuple[tuple[int, ...], np.dtype[np.generic]]],
    aliases: Mapping[str, str] | None = None,
) -> dict[str, np.ndarray]:
    """Return the arrays of a file checked against (shape of one sample, dtype) by name.

    Where a name is not in the file, what the model's file calls it besides counts (`aliases`), then its position.
    A sample may lack the leading axis of the file when the file holds just one. An .npy holds the only array wanted.
    float16 stands for float32.
    """
    arrays = _named(_load(path, tuple(wanted)), tuple(wanted), aliases or {})
    found, problems = {}, []
    for name, (shape, dtype) in wanted.items():
        array = arrays.get(name)
        if array is None:
            problems.append(f"no array named {name!r} (the file has {', '.join(map(repr, arrays)) or 'none'})")
            continue
        if array.dtype == np.float16 and dtype == np.float32:
            array = array.astype(dtype)  # exact: float16 models compute in float32
        if array.shape == shape:
            array = array[None]
        if array.shape[1:] != shape or array.dtype != dtype:
            problems.append(
                f"{name}: {array.dtype}{list(array.shape)}, the model takes {dtype}{list(shape)} "
                "with a leading sample axis"
            )
            continue
        found[name] = array
    counts = {len(a) for a in found.values()}
    if not problems and (len(counts) != 1 or 0 in counts):
        problems.append(f"arrays hold {sorted(counts)} samples; every input needs the same number, at least one")
    if problems:
        names = ", ".join(f"{name}={dtype}{[1, *shape]}" for name, (shape, dtype) in wanted.items())
        hint = f"numpy.savez(path, ...) with {names}"
        raise ArraysError(f"{path} does not fit the model", details=problems, hint=hint)
    return found


def _named(arrays: dict[str, np.ndarray], names: tuple[str, ...], aliases: Mapping[str, str]) -> dict[str, np.ndarray]:
    """Return the arrays with those under another name, or a position, under the model's."""
    found = dict(arrays)
    for at, name in enumerate(names):
        others = [aliases.get(name, ""), *(form.format(at) for form in _POSITIONS)]
        given = next((o for o in others if o in found and o not in names), None)
        if name not in found and given is not None:
            found[name] = found.pop(given)
    return found


def nan_counts(path: Path) -> dict[str, int]:
    """Return how many elements of each array of a readable file are not a number; arrays without any are left out."""
    arrays = _load(path, ("input",))
    counts = {name: int(np.isnan(array).sum()) for name, array in arrays.items() if array.dtype.kind == "f"}
    return {name: count for name, count in counts.items() if count}


def _load(path: Path, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Return the arrays of a file by name; InputError when numpy cannot read it."""
    try:
        content = np.load(path, allow_pickle=False)
        if isinstance(content, np.lib.npyio.NpzFile):
            with content as archive:
                return {name: archive[name] for name in archive.files}
    except FileNotFoundError:
        raise ArraysError(f"input file {path} does not exist", hint=_SAVEZ) from None
    except Exception as error:  # of a damaged archive numpy, zipfile and zlib raise what they like
        raise ArraysError(
            f"{path} is not an .npz file that numpy can read", details=str(error).splitlines()[:3], hint=_SAVEZ
        ) from error
    if len(names) != 1:
        raise ArraysError(
            f"{path} holds one array without a name, {len(names)} are needed: {', '.join(map(repr, names))}",
            hint=_SAVEZ,
        )
    return {names[0]: np.asarray(content)}
