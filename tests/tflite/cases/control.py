"""Branches and loops whose conditions are known."""

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
    """WHILE that counts from a constant."""
    build, shape, turns = Build(), shape_of(rng), int(rng.integers(0, 5))
    condition, body = Build(), Build()
    count, _ = condition.input((1,), "int32"), condition.input(shape, "float32")
    condition.op("LESS", [count, condition.const(np.asarray([turns], np.int32))], Tensor((1,), "bool"))
    count, x = body.input((1,), "int32"), body.input(shape, "float32")
    after = body.op("ADD", [count, body.const(np.asarray([1], np.int32))], Tensor((1,), "int32"))
    y = body.op("MUL", [x, body.const(data_of(rng, shape, "float32", 1.0))], Tensor(shape, "float32"))
    body.outputs = [after, y]
    build.called = [condition, body]
    start = build.const(np.asarray([0], np.int32))
    outs = [Tensor((1,), "int32"), Tensor(shape, "float32")]
    build.op("WHILE", [start, build.input(shape, "float32")], outs, condSubgraphIndex=1, bodySubgraphIndex=2)
    build.outputs = build.outputs[1:]
    return finish(build, rng, f"WHILE {turns}")


MAKERS: Mapping[str, Maker] = {"IF": branch, "WHILE": loop}
