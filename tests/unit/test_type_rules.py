"""Type rules of ONNX's operators: whatever shapes, kinds and attributes come, they accept them or raise OpError."""

from __future__ import annotations

import random
from collections.abc import Mapping
from contextlib import suppress

import onnx
import pytest

from glowc.graph.graph import Node
from glowc.graph.types import DType, TensorType
from glowc.ops.base import OpDef, OpError
from glowc.ops.registry import all_ops

CASES = 150
KINDS = (DType.F32, DType.F32, DType.F32, DType.S8, DType.U8, DType.S32, DType.S64)
VALUES: Mapping[str, tuple[object, ...]] = {
    "INT": (0, 1, -1, 2, 3, -5, 7),
    "FLOAT": (0.0, 1.5, -1.0),
    "STRING": ("NOTSET", "SAME_UPPER", "VALID", "constant", "edge", "nearest", "x"),
    "INTS": ((), (1,), (0, 1), (1, 1), (2, 2), (-1, 9), (0, 0, 0, 0), (1, 1, 1, 1)),
}
# What glowc keeps as attributes of a node though ONNX now has them as inputs.
LISTS = frozenset({"axes", "repeats", "shape", "split", "starts", "ends", "steps", "pads", "sizes"})
OPS = {name: op for name, op in all_ops().items() if op.domain == "" and onnx.defs.has(name)}


def some_type(rng: random.Random) -> TensorType:
    shape = tuple(rng.choice((0, 1, 1, 2, 3, 4, 7)) for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 3, 4, 4, 5))))
    return TensorType(shape, rng.choice(KINDS))


def some_attrs(op: OpDef, schema: onnx.defs.OpSchema, rng: random.Random) -> dict[str, object]:
    found = {}
    for key in sorted(op.attrs):
        kind = schema.attributes[key].type.name if key in schema.attributes else "INTS" if key in LISTS else ""
        if kind in VALUES and rng.random() < 0.6:
            found[key] = rng.choice(VALUES[kind])
    return found


@pytest.mark.parametrize("name", OPS)
def test_type_rule_refuses_what_does_not_fit_by_an_error_of_its_own(name: str) -> None:
    schema, rng = onnx.defs.get_schema(name), random.Random(name)
    for _ in range(CASES):
        count = rng.randint(schema.min_input, min(schema.max_input, 5))
        node = Node("n", name, tuple(f"x{i}" for i in range(count)), ("y",), some_attrs(OPS[name], schema, rng), ("n",))
        with suppress(OpError):
            OPS[name].infer(node, tuple(some_type(rng) for _ in range(count)))
