"""IsNaN and IsInf: bool of a float. Source: ONNX IsNaN-20, IsInf-20 (attrs detect_positive, detect_negative)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowc.graph.attrs import Int
from glowc.graph.graph import Node
from glowc.graph.types import DType, TensorType
from glowc.ops.base import LowerCtx, MaybeTypes, OpDef, OpError, Types
from glowc.ops.derived import derived
from glowc.ops.params import Elements
from glowc.ops.strided import present
from glowc.program.kernel import Arrays, KernelDef

EXPRESSIONS = {
    "nan": "(uint8_t)(x != x)", "inf": "(uint8_t)(x == INFINITY || x == -INFINITY)",
    "positive": "(uint8_t)(x == INFINITY)", "negative": "(uint8_t)(x == -INFINITY)",
    "none": "(uint8_t)(x != x && x == x)",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class PredicateParams(Elements):
    """Of `predicate`: the key in EXPRESSIONS and what it says."""

    op: str
    expr: str


def kind_of(node: Node) -> str:
    """Return the key in EXPRESSIONS."""
    if node.op == "IsNaN":
        return "nan"
    up, down = node.int_("detect_positive"), node.int_("detect_negative")
    return ("inf" if down else "positive") if up else ("negative" if down else "none")


def infer(_: Node, in_types: MaybeTypes) -> Types:
    """bool of the same shape."""
    (x,) = present(in_types[:1])
    if x.dtype not in (DType.F32, DType.F64):
        raise OpError(f"needs a float, not {x}")
    return (TensorType(x.shape, DType.BOOL, None, x.layout),)


def holds(x: np.ndarray, kind: str) -> np.ndarray:
    """Return the predicate of each element."""
    result = {
        "nan": np.isnan(x), "inf": np.isinf(x), "positive": np.isposinf(x), "negative": np.isneginf(x),
        "none": np.zeros(x.shape, np.bool_),
    }  # fmt: skip
    return np.asarray(result[kind])


def lower(node: Node, ctx: LowerCtx) -> None:
    """One `predicate`."""
    x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
    kind = kind_of(node)
    ctx.emit("predicate", {"in": x, "out": y}, PredicateParams(x.type.elements, kind, EXPRESSIONS[kind]))


def _interpret(arrays: Arrays, p: PredicateParams) -> None:
    arrays["out"].reshape(-1)[:] = holds(arrays["in"].reshape(-1), p.op)


KERNELS = (
    KernelDef("predicate", ("in in:f32|f64", "out out:bool"), PredicateParams, _interpret,
              template="cast", needs_math=True, doc="test of every element"),
)  # fmt: skip

OPS = (
    OpDef("IsNaN", infer, derived, lower, max_version=20, doc="true for NaN"),
    OpDef("IsInf", infer, derived, lower, max_version=20,
          attrs={"detect_positive": Int(1), "detect_negative": Int(1)}, doc="true for infinities"),
)  # fmt: skip
