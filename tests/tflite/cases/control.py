"""Branches, and loops whose conditions are known, or computed with a counter that ends them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tests.tflite.cases.draw import Case, Maker, Rng, data_of, finish, flag, shape_of
from tests.tflite.writer import Build, Tensor


def _one(code: str, shape: tuple[int, ...], rng: Rng) -> Build:
    """Return a subgraph of one operator with a constant."""
    build = Build()
    x = build.input(shape, "float32")
    build.op(code, [x, build.const(data_of(rng, shape, "float32"))], Tensor(shape, "float32"))
    return build


def branch(rng: Rng) -> Case:
    """IF with a constant condition."""
    build, shape = Build(), shape_of(rng)
    build.called = [_one("ADD", shape, rng), _one("MUL", shape, rng)]
    condition = build.const(np.asarray([flag(rng)]))
    build.op("IF", [condition, build.input(shape, "float32")], Tensor(shape, "float32"), thenSubgraphIndex=1,
             elseSubgraphIndex=2)  # fmt: skip
    return finish(build, rng, "IF")


def loop(rng: Rng) -> Case:
    """WHILE that counts from a constant, and half of the time asks a value too."""
    build, shape, turns, asks = Build(), shape_of(rng), int(rng.integers(0, 5)), flag(rng)
    condition, body = Build(), Build()
    count, x = condition.input((1,), "int32"), condition.input(shape, "float32")
    less = condition.op("LESS", [count, condition.const(np.asarray([turns], np.int32))], Tensor((1,), "bool"))
    if asks:
        size = condition.const(np.asarray([int(np.prod(shape))], np.int32))
        flat = condition.op("RESHAPE", [x, size], Tensor((int(np.prod(shape)),), "float32"))
        axis = condition.const(np.asarray([0], np.int32))
        most = condition.op("REDUCE_MAX", [flat, axis], Tensor((1,), "float32"), keepDims=True)
        large = condition.op("LESS", [condition.const(data_of(rng, (1,), "float32", 1.0)), most], Tensor((1,), "bool"))
        condition.outputs = [condition.op("LOGICAL_AND", [less, large], Tensor((1,), "bool"))]
    count, x = body.input((1,), "int32"), body.input(shape, "float32")
    after = body.op("ADD", [count, body.const(np.asarray([1], np.int32))], Tensor((1,), "int32"))
    y = body.op("MUL", [x, body.const(data_of(rng, shape, "float32", 1.0))], Tensor(shape, "float32"))
    body.outputs = [after, y]
    build.called = [condition, body]
    start = build.const(np.asarray([0], np.int32))
    outs = [Tensor((1,), "int32"), Tensor(shape, "float32")]
    build.op("WHILE", [start, build.input(shape, "float32")], outs, condSubgraphIndex=1, bodySubgraphIndex=2)
    build.outputs = build.outputs[1:]
    return finish(build, rng, f"WHILE {turns}{' asks' if asks else ''}")


MAKERS: Mapping[str, Maker] = {"IF": branch, "WHILE": loop}
