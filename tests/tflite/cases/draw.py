"""What the makers of cases draw: shapes, scales, elements; and the case that they make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tests.tflite.writer import Build, Quant, quant

Rng = np.random.Generator
Shape = tuple[int, ...]
Arrays = tuple[np.ndarray, ...]
ACTIVATIONS = (0, 1, 2, 3)
INT_MIN, INT_MAX = -(2**31), 2**31 - 1
Maker = Callable[[Rng], "Case"]


@dataclass(frozen=True)
class Case:
    """A model, the inputs of one or several calls; floats are compared within `rtol` of the largest magnitude."""

    label: str
    model: bytes
    calls: tuple[Arrays, ...]
    rtol: float = 1e-6


def pick(rng: Rng, *choices: object) -> object:
    """Return one of several things."""
    return choices[int(rng.integers(len(choices)))]


def flag(rng: Rng) -> bool:
    """Return a coin's side."""
    return bool(rng.integers(2))


def shape_of(rng: Rng, rank: int = 0, largest: int = 6) -> Shape:
    """Return a shape of 1 to 4 axes, or of `rank`."""
    return tuple(int(d) for d in rng.integers(1, largest + 1, rank or int(rng.integers(1, 5))))


def scale_of(rng: Rng, low: float = -8, high: float = -1) -> float:
    """Return a scale between two powers of two."""
    return float(np.float32(2.0 ** rng.uniform(low, high)))


def q_of(rng: Rng, kind: str, low: float = -8, high: float = -1) -> Quant | None:
    """Return a random quantisation of a kind; None for floats; int16 is symmetric."""
    if kind == "int8":
        return quant(scale_of(rng, low, high), int(pick(rng, -128, 127, 0, int(rng.integers(-128, 128)))))
    if kind == "uint8":
        return quant(scale_of(rng, low, high), int(rng.integers(0, 256)))
    return quant(scale_of(rng, low - 8, high - 8), 0) if kind == "int16" else None


def data_of(rng: Rng, shape: Shape, kind: str, spread: float = 4.0) -> np.ndarray:
    """Return random elements; whole ranges of 8 and 16 bits."""
    if kind.startswith("float"):
        return rng.normal(0, spread, shape).astype(kind)
    if kind == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    info = np.iinfo(kind)
    low, high = (info.min, info.max) if info.bits <= 16 else (-1000, 1000)
    return rng.integers(low, high, shape, endpoint=True).astype(kind)


def int32(*values: int | Sequence[int]) -> np.ndarray:
    """Return whole numbers as TensorFlow Lite takes shapes and axes."""
    return np.asarray(values[0] if len(values) == 1 and not isinstance(values[0], int) else values, np.int32)


def finish(build: Build, rng: Rng, label: str, *, calls: int = 1, rtol: float = 1e-6, spread: float = 4.0) -> Case:
    """Return the case with random inputs."""
    inputs = [build.tensors[i] for i in build.inputs]
    data = tuple(tuple(data_of(rng, t.shape, t.kind, spread) for t in inputs) for _ in range(calls))
    shown = " ".join(f"{t.kind}{list(t.shape)}" for t in inputs)
    return Case(f"{label} {shown}", build.bytes(), data, rtol)


def pair_of_shapes(rng: Rng) -> tuple[Shape, Shape, Shape]:
    """Return two shapes that broadcast, and the result's."""
    shape = shape_of(rng)
    mode = int(rng.integers(4))
    if mode < 2:
        return shape, shape, shape
    other = tuple(d if flag(rng) else 1 for d in shape)
    if mode == 3:
        other = other[int(rng.integers(len(shape))) :]
    return (shape, other, shape) if flag(rng) else (other, shape, shape)


def moved(rng: Rng, kinds: Sequence[str] = ("float32", "int8", "int16")) -> tuple[Build, str, Quant | None]:
    kind = str(pick(rng, *kinds))
    return Build(), kind, q_of(rng, kind)


def weights_of(
    rng: Rng, shape: Shape, axis: int, *, kind: str = "int8", per_axis: bool = True, q_zero: int = 0
) -> tuple[np.ndarray, Quant]:
    """Return int8 (or int4) codes with one scale, or one per index of an axis."""
    low, high = (-7, 7) if kind == "int4" else (-127, 127)
    data = rng.integers(low, high, shape, endpoint=True).astype(np.int8)
    count = shape[axis] if per_axis else 1
    return data, Quant(tuple(scale_of(rng, -10, -5) for _ in range(count)), (q_zero,) * count, axis)
