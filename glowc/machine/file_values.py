"""The values of a program under the names, and in the layout, that they have in the model's file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import permutations
from pathlib import Path

import numpy as np

from glowc.frontend import tflite_bytes
from glowc.frontend.reader import load
from glowc.graph.graph import Graph
from glowc.machine.taps import Tapped
from glowc.passes.axes import TO_NHWC

_MADE = re.compile(
    r"(\.nhwc|\.nchw|\.t|\.q|\.quantized|\.\d+)+$"
)  # what passes add to a name of a value that they change


def plain_name(value: str) -> str:
    """Return the name in the file of a value of the program, which passes may have moved."""
    return _MADE.sub("", value)


class FileValues:
    """What onnxruntime computes of a file, by the values of the program that is made from it."""

    def __init__(self, model: Path, graph: Graph, reference: Mapping[str, np.ndarray]) -> None:
        self._graph, self._reference = graph, reference
        self._codes: dict[str, list[str]] = {}  # of a float value, the values that are its codes
        if tflite_bytes(model) is None:
            for node in load(model).proto.graph.node:
                if node.op_type == "QuantizeLinear":
                    self._codes.setdefault(node.input[0], []).append(node.output[0])

    def names(self, layer: Tapped) -> list[str]:
        """Return the names in the file of what a layer leaves, the likeliest first."""
        plain = plain_name(layer.tap.value)
        codes = self._codes.get(plain, [])
        made_codes = layer.tap.type.dtype.is_integer and plain != layer.tap.value and codes
        return [*codes, plain] if made_codes else [plain, *codes]

    def of(self, layer: Tapped) -> np.ndarray | None:
        """Return what onnxruntime has of a layer's result, in the program's layout; None where it has no such value."""
        array = self._known(layer)
        perm = None if array is None else self._perm(layer, array)
        return None if array is None or perm is None else array.transpose(_behind_samples(perm))

    def in_file(self, layer: Tapped) -> np.ndarray:
        """Return a layer's result on the board in the file's layout, as it lies where nobody knows that."""
        array = self._known(layer)
        perm = self._moved(layer) if array is None else self._perm(layer, array)
        return layer.board if perm is None else layer.board.transpose(np.argsort(_behind_samples(perm)))

    def _known(self, layer: Tapped) -> np.ndarray | None:
        found = (self._reference.get(name) for name in self.names(layer))
        return next((a for a in found if a is not None and a.dtype == layer.board.dtype), None)

    def _moved(self, layer: Tapped) -> tuple[int, ...] | None:
        """Return how the program permutes a value as its graph says: as images, or not at all; None: in another way."""
        value, rank = layer.tap.value, layer.board.ndim - 1
        kind = self._graph.types.get(value)
        if kind is not None and kind.layout == "nhwc" and rank == len(TO_NHWC):
            return TO_NHWC
        return tuple(range(rank)) if plain_name(value) == value else None

    def _perm(self, layer: Tapped, array: np.ndarray) -> tuple[int, ...] | None:
        """Return how the program permutes a value of the file; None where it is no permutation of it.

        Where the graph does not say, it is one that makes the shapes equal; of several, the one under which the
        interpreter comes nearest: what the board says has no part in it.
        """
        known = self._moved(layer)
        fitting = [p for p in ([known] if known else _perms(array.ndim - 1)) if _shape(array, p) == layer.board.shape]
        equal = {p: float(np.mean(array.transpose(_behind_samples(p)) == layer.expected)) for p in fitting}
        return max(fitting, key=lambda p: equal[p], default=None)


def _perms(rank: int) -> Iterator[tuple[int, ...]]:
    return permutations(range(rank)) if rank <= 5 else iter([tuple(range(rank))])


def _behind_samples(perm: tuple[int, ...]) -> tuple[int, ...]:
    """Return the permutation of an array with a leading axis of samples."""
    return 0, *(axis + 1 for axis in perm)


def _shape(array: np.ndarray, perm: tuple[int, ...]) -> tuple[int, ...]:
    if len(perm) != array.ndim - 1:
        return ()
    return tuple(array.shape[axis] for axis in _behind_samples(perm))
