"""Operators that keep the bytes of their input: Reshape, AssignQuant, Identity, Dropout (at inference), and BitCast,
which reads them as another element kind of the same size (attr `to`; source: ONNX BitCast-26).
"""

from __future__ import annotations

import math
from dataclasses import replace

from glowc.graph.attrs import Float, Int, IntList
from glowc.graph.graph import Node
from glowc.graph.types import NARROW, TensorType
from glowc.ops.base import LowerCtx, MaybeTypes, OpDef, OpError, Types
from glowc.ops.cast import KINDS
from glowc.ops.derived import derived
from glowc.ops.strided import emit_copy, present, whole


def infer_reshape(node: Node, in_types: MaybeTypes) -> Types:
    """Output shape from attr `shape`."""
    (x,) = present(in_types[:1])
    keep = node.int_("allowzero") == 0
    wanted = node.ints("shape")
    dims = [x.shape[i] if d == 0 and keep and i < x.rank else d for i, d in enumerate(wanted)]
    if dims.count(-1) == 1:
        rest = math.prod(d for d in dims if d != -1)
        dims[dims.index(-1)] = x.elements // rest if rest and x.elements % rest == 0 else -1
    if any(d < 0 for d in dims) or math.prod(dims) != x.elements:
        raise OpError(f"cannot reshape {x} to {list(wanted)}")
    return (x.with_shape(dims),)


def infer_same(_: Node, in_types: MaybeTypes) -> Types:
    """Output type is the first input's."""
    return (present(in_types[:1])[0],)


def lower(node: Node, ctx: LowerCtx) -> None:
    """One contiguous copy."""
    x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
    emit_copy(ctx, x, y, whole(x.type.shape))


def infer_dropout(node: Node, in_types: MaybeTypes) -> Types:
    """Identity; the mask output is not supported."""
    if any(node.outputs[1:]):
        raise OpError("output mask of Dropout is only defined for training")
    return infer_same(node, in_types)


def infer_bit_cast(node: Node, in_types: MaybeTypes) -> Types:
    """The input's shape in the new kind."""
    (x,) = present(in_types[:1])
    kind = KINDS.get(node.int_("to"))
    fits = kind is not None and kind.bits == x.dtype.bits and x.dtype in KINDS.values()
    if kind is None or not fits or kind in NARROW or x.dtype in NARROW:
        raise OpError(f"the bits of {x} as ONNX element type {node.int_('to')}")
    return (TensorType(x.shape, kind, None, x.layout),)


def lower_bit_cast(node: Node, ctx: LowerCtx) -> None:
    """One contiguous copy, which becomes a view."""
    x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
    emit_copy(ctx, replace(x, type=replace(x.type, dtype=y.type.dtype)), y, whole(x.type.shape))


OPS = (
    OpDef("Reshape", infer_reshape, derived, lower, max_version=25, int8=True,
          attrs={"shape": IntList((-1,)), "allowzero": Int(0)}, doc="same bytes, another shape"),
    OpDef("AssignQuant", infer_same, derived, lower, int8=True, doc="same bytes, read as quantized"),
    OpDef("Identity", infer_same, derived, lower, max_version=25, int8=True, doc="same tensor"),
    OpDef("Dropout", infer_dropout, derived, lower, max_version=22, int8=True,
          attrs={"seed": Int(0), "ratio": Float(0.5), "training_mode": Int(0)}, doc="identity at inference"),
    OpDef("BitCast", infer_bit_cast, derived, lower_bit_cast, attrs={"to": Int()}, max_version=28,
          doc="bytes of another kind"),
)  # fmt: skip
