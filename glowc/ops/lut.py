"""Lut: any function of one int8 tensor as a table of its 256 results, made by pass fuse-lut; y = table[x + 128]."""

from __future__ import annotations

from glowc.graph.graph import Node
from glowc.graph.types import DType, TensorType
from glowc.ops.base import LowerCtx, MaybeTypes, OpDef, OpError, Types
from glowc.ops.derived import derived
from glowc.ops.params import Elements
from glowc.ops.strided import present


def infer(node: Node, in_types: MaybeTypes) -> Types:
    """Type of x; the table has 256 int8 codes."""
    x, table = present(in_types[:2])
    if x.dtype != DType.S8 or table.shape != (256,) or table.dtype != DType.S8:
        raise OpError(f"table {table} for {x}")
    return (TensorType(x.shape, DType.S8, None, x.layout),)


def lower(node: Node, ctx: LowerCtx) -> None:
    """Emit lut_s8."""
    x, table, y = ctx.read(node.inputs[0]), ctx.read(node.inputs[1]), ctx.write(node.outputs[0])
    ctx.emit("lut_s8", {"in": x, "lut": table, "out": y}, Elements(x.type.elements))


OP = OpDef("Lut", infer, derived, lower, int8=True, doc="function of an int8 tensor as a table (internal)")
