"""Parameters that kernels of several operators have (`glowc.program.params`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, TypeAlias

import numpy as np

from glowc.graph.types import QuantParams
from glowc.kernels.shapes import MAX_RANK
from glowc.program.params import Params, Printed, Suffixes

Ints = tuple[int, ...]
PerAxis: TypeAlias = Annotated[tuple[int, ...], Suffixes(tuple(map(str, range(MAX_RANK))))]
"""A length or step of every loop over an N-dimensional tensor, the outermost first: d0 .. d5 of a field `d`."""


Spatial: TypeAlias = Annotated[tuple[int, ...], Suffixes(("_d", "_h", "_w"))]
"""One number for each of depth, rows and columns: k_d, k_h, k_w of a field `k`."""


@dataclass(frozen=True, slots=True)
class Elements(Params):
    """A loop over n elements."""

    n: int


@dataclass(frozen=True, slots=True)
class Along(Params):
    """A tensor seen as [outer, n, inner] around one axis."""

    outer: int
    n: int
    inner: int

    def view(self, array: np.ndarray) -> np.ndarray:
        """Return a flat array as [outer, n, inner]."""
        return array.reshape(-1)[: self.outer * self.n * self.inner].reshape(self.outer, self.n, self.inner)


@dataclass(frozen=True, slots=True)
class Channels(Params):
    """A tensor seen as [outer, channels, inner]."""

    outer: int
    channels: int
    inner: int

    def view(self, array: np.ndarray) -> np.ndarray:
        """Return a flat array as [outer, channels, inner]."""
        return array.reshape(self.outer, self.channels, self.inner)


@dataclass(frozen=True, slots=True)
class Clamp(Params):
    """The bounds of a result in floats."""

    act_min: float
    act_max: float


@dataclass(frozen=True, slots=True)
class OutCodes(Params):
    """The zero point and the bounds of a result in codes."""

    out_zp: int
    out_min: int
    out_max: int

    @property
    def bounds(self) -> tuple[int, int, int]:
        """Zero point, least and largest code."""
        return self.out_zp, self.out_min, self.out_max

    def codes(self, y: np.ndarray) -> np.ndarray:
        """Return whole numbers of steps as codes."""
        return np.asarray(np.clip(y + self.out_zp, self.out_min, self.out_max))


@dataclass(frozen=True, slots=True)
class Nest(Params):
    """`rank` loops of d[0] .. d[rank - 1] iterations."""

    rank: Printed
    d: PerAxis

    def view(self, flat: np.ndarray, steps: Ints, offset: int = 0) -> np.ndarray:
        """Return the view of a flat array that the loops walk by these steps."""
        strides = [step * flat.itemsize for step in steps[: self.rank]]
        return np.lib.stride_tricks.as_strided(flat.reshape(-1)[offset:], self.d[: self.rank], strides)

    def positions(self, steps: Ints) -> np.ndarray:
        """Return sum x_k * steps[k] of every iteration, in order."""
        total = np.zeros((), np.int64)
        for i in range(self.rank):
            way = np.arange(self.d[i], dtype=np.int64) * steps[i]
            total = total + way.reshape([-1 if j == i else 1 for j in range(self.rank)])
        return np.asarray(total).reshape(-1)


@dataclass(frozen=True, slots=True)
class Pairs(Nest):
    """Loops that read two operands by steps a and b for a dense output."""

    a: PerAxis
    b: PerAxis


def padded_dims(dims: Sequence[int]) -> Ints:
    """Return the loops of a nest, filled up with single ones."""
    return (*dims, *(1,) * (MAX_RANK - len(dims)))


def padded_steps(strides: Sequence[int]) -> Ints:
    """Return the steps of an operand, filled up with 0."""
    return (*strides, *(0,) * (MAX_RANK - len(strides)))


def one_quant(scale: float, zero_point: int) -> QuantParams:
    """Return the quantisation of a whole tensor."""
    return QuantParams((scale,), (zero_point,))


def around(shape: Sequence[int], axis: int) -> tuple[int, int, int]:
    """Return the elements before an axis, along it, and after it."""
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
