"""Type rules of ONNX's operators: whatever shapes, kinds and attributes come, they accept them or raise OpError."""

from __future__ import annotations

import random
from collections.abc import Mapping
from contextlib import suppress

import onnx
import pytest

from glowc.graph.attrs import Attr, AttrValue, Float, FloatList, Int, IntList, Str, StrList
from glowc.graph.graph import Node
from glowc.graph.types import DType, TensorType
from glowc.ops.base import OpDef, OpError
from glowc.ops.registry import all_ops
from glowc.ops.requant_shift import SHIFT_ATTRS

CASES = 150
KINDS = (DType.F32, DType.F32, DType.F32, DType.S8, DType.U8, DType.S32, DType.S64)
VALUES: Mapping[type[Attr], tuple[AttrValue, ...]] = {
    Int: (0, 1, -1, 2, 3, -5, 7),
    Float: (0.0, 1.5, -1.0),
    Str: ("NOTSET", "SAME_UPPER", "VALID", "constant", "edge", "nearest", "x"),
    IntList: ((), (1,), (0, 1), (1, 1), (2, 2), (-1, 9), (0, 0, 0, 0), (1, 1, 1, 1)),
    FloatList: ((), (1.0,), (0.5, 2.0), (0.0, -1.0, 1.0)),
    StrList: ((), ("Tanh",), ("x", "y")),
}
# What passes put on nodes that fit it: a quantised type comes with them.
PASSES = frozenset(SHIFT_ATTRS) | {"layout", "planar", "dtype"}
OPS = {name: op for name, op in all_ops().items() if op.domain == "" and onnx.defs.has(name)}


def some_type(rng: random.Random) -> TensorType:
    shape = tuple(rng.choice((0, 1, 1, 2, 3, 4, 7)) for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 3, 4, 4, 5))))
    return TensorType(shape, rng.choice(KINDS))


def some_attrs(op: OpDef, rng: random.Random) -> dict[str, AttrValue]:
    some = {key: attr for key, attr in sorted(op.attrs.items()) if attr.required or rng.random() < 0.6}
    return {key: rng.choice(VALUES[type(attr)]) for key, attr in some.items() if key not in PASSES}


@pytest.mark.parametrize("name", OPS)
def test_type_rule_refuses_what_does_not_fit_by_an_error_of_its_own(name: str) -> None:
    schema, rng = onnx.defs.get_schema(name), random.Random(name)
    for _ in range(CASES):
        count = rng.randint(schema.min_input, min(schema.max_input, 5))
        node = Node("n", name, tuple(f"x{i}" for i in range(count)), ("y",), some_attrs(OPS[name], rng), ("n",))
        with suppress(OpError):
            OPS[name].infer(node, tuple(some_type(rng) for _ in range(count)))
