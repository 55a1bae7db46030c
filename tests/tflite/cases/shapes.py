"""Operators that make shapes, fill, look up and update."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tests.tflite.cases.draw import (
    Case,
    Maker,
    Rng,
    data_of,
    finish,
    flag,
    int32,
    moved,
    pair_of_shapes,
    shape_of,
)
from tests.tflite.writer import Build, Tensor


def broadcast_to(rng: Rng) -> Case:
    """BROADCAST_TO."""
    build, kind, q = moved(rng, ("float32", "int8", "uint8", "int16", "int32", "int64", "bool"))
    to = shape_of(rng)
    shape = tuple(d if flag(rng) else 1 for d in to)
    build.op("BROADCAST_TO", [build.input(shape, kind, q), build.const(int32(to))], Tensor(to, kind, q))
    return finish(build, rng, f"BROADCAST_TO {to}")


def broadcast_args(rng: Rng) -> Case:
    """BROADCAST_ARGS of two constant shapes, added to an input so that the model has one."""
    build = Build()
    a, b, y = pair_of_shapes(rng)
    x = build.input((len(y),), "int32")
    made = build.op("BROADCAST_ARGS", [build.const(int32(a)), build.const(int32(b))], Tensor((len(y),), "int32"))
    build.op("ADD", [x, made], Tensor((len(y),), "int32"))
    return finish(build, rng, f"BROADCAST_ARGS {a} {b}")


def fill(rng: Rng) -> Case:
    """FILL with an input."""
    build, kind, q = moved(rng, ("float32", "int8", "int32"))
    to = shape_of(rng)
    build.op("FILL", [build.const(int32(to)), build.input((), kind, q)], Tensor(to, kind, q))
    return finish(build, rng, f"FILL {to}")


def shape(rng: Rng) -> Case:
    """SHAPE, added to an input."""
    build, drawn = Build(), shape_of(rng)
    x, other = build.input(drawn, "float32"), build.input((len(drawn),), "int32")
    made = build.op("SHAPE", [x], Tensor((len(drawn),), "int32"), outType=2)
    build.op("ADD", [other, made], Tensor((len(drawn),), "int32"))
    return finish(build, rng, "SHAPE")


def zeros_like(rng: Rng) -> Case:
    """ZEROS_LIKE, compared with the input."""
    build, kind, q = moved(rng, ("float32", "int8", "int32", "int64"))
    drawn = shape_of(rng)
    x = build.input(drawn, kind, q)
    made = build.op("ZEROS_LIKE", [x], Tensor(drawn, kind, q))
    build.op("MAXIMUM", [x, made], Tensor(drawn, kind, q))
    return finish(build, rng, "ZEROS_LIKE")


def dynamic_update_slice(rng: Rng) -> Case:
    """DYNAMIC_UPDATE_SLICE; the place is clamped into the operand."""
    build, kind, q = moved(rng, ("float32", "int8", "int16", "int32"))
    drawn = shape_of(rng)
    update = tuple(int(rng.integers(1, d + 1)) for d in drawn)
    at = int32([int(rng.integers(-2, d + 2)) for d in drawn])
    place = build.const(at) if flag(rng) else build.input(at.shape, "int32")
    build.op("DYNAMIC_UPDATE_SLICE", [build.input(drawn, kind, q), build.input(update, kind, q), place],
             Tensor(drawn, kind, q))  # fmt: skip
    case = finish(build, rng, f"DYNAMIC_UPDATE_SLICE {update} at {at.tolist()}")
    if len(build.inputs) == 2:
        return case
    arrays = {build.inputs.index(place): at}
    calls = tuple(tuple(arrays.get(i, a) for i, a in enumerate(call)) for call in case.calls)
    return Case(case.label, case.model, calls, case.rtol)


def embedding_lookup(rng: Rng) -> Case:
    """EMBEDDING_LOOKUP."""
    build, kind, q = moved(rng, ("float32", "int8"))
    table = data_of(rng, (7, int(rng.integers(1, 9))), kind)
    index = build.input((4,), "int32")
    build.op("EMBEDDING_LOOKUP", [index, build.const(table, q)], Tensor((4, table.shape[1]), kind, q))
    return Case("EMBEDDING_LOOKUP", build.bytes(), ((rng.integers(0, 7, 4).astype(np.int32),),))


MAKERS: Mapping[str, Maker] = {
    "BROADCAST_TO": broadcast_to, "BROADCAST_ARGS": broadcast_args, "FILL": fill, "SHAPE": shape,
    "ZEROS_LIKE": zeros_like, "DYNAMIC_UPDATE_SLICE": dynamic_update_slice, "EMBEDDING_LOOKUP": embedding_lookup,
}  # fmt: skip
