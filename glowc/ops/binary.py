"""Binary operators with numpy broadcasting: arithmetic, comparisons, logic; functions in `binary_table`.

Quantised Add, Sub and Mul are in `binary_codes`. Floats: one operation of the element type, correctly rounded, so
C and numpy agree to the last bit, but for Pow and Mod with fmod (libm: relative tolerance 1e-5). Min and Max
take any number of inputs. Axes are merged in the lowering; a `rank` of loops is printed.
Source: ONNX Add-14, Sub-14, Mul-14, Div-14, Min-13, Max-13, Pow-15, Mod-13, PRelu-16, Equal-19, Less-13,
Greater-13, And-7 and their kin.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from glowc.graph.attrs import Attr, Int, Str
from glowc.graph.graph import Node
from glowc.graph.numerics import F32
from glowc.graph.types import DType, TensorType
from glowc.ops.base import CLAMP, LowerCtx, MaybeTypes, OpDef, OpError, Ref, Types
from glowc.ops.binary_codes import bounds, emit_codes
from glowc.ops.binary_table import TABLE, expression
from glowc.ops.derived import derived
from glowc.ops.params import Clamp, Pairs
from glowc.ops.requant_shift import SHIFT_ATTRS, shift_dtype
from glowc.ops.strided import access, broadcast_shape, emit_copy, present, whole
from glowc.program.kernel import Arrays, KernelDef
from glowc.program.params import Params, Printed


@dataclass(frozen=True, slots=True)
class BinaryParams(Params):
    """Of `binary`: the loops, the entry of TABLE, its C expression over x and y, and bounds that count if `clamp`."""

    loops: Pairs
    op: str
    expr: str
    clamp: Printed
    bounds: Clamp


def infer(name: str) -> Callable[[Node, MaybeTypes], Types]:
    """Return the type rule: broadcast shape, the inputs' element kind, bool for a comparison."""

    def rule(node: Node, in_types: MaybeTypes) -> Types:
        types = present(in_types)
        if any(t.dtype != types[0].dtype for t in types) and name != "pow":
            raise OpError("element kinds differ: " + ", ".join(map(str, types)))
        if name == "shift_left" and (not types[0].dtype.is_integer):
            raise OpError(f"shifts integers, not {types[0]}")
        layout = next((t.layout for t in types if t.layout), "")
        dtype = DType.BOOL if TABLE[name].boolean else shift_dtype(node, types[0])
        shape = broadcast_shape(types)
        return (TensorType(shape, dtype, None, layout if len(shape) == 4 else ""),)

    return rule


def _entry(name: str, node: Node) -> str:
    if node.op == "BitShift":
        direction = node.str_("direction")
        if direction not in ("LEFT", "RIGHT"):
            raise OpError(f"direction {direction!r}: neither LEFT nor RIGHT")
        return f"shift_{direction.lower()}"
    return "fmod" if node.op == "Mod" and node.int_("fmod") else name


def lower(name: str, *, swap: bool = False) -> Callable[[Node, LowerCtx], None]:
    """Return the lowering; more than two inputs accumulate in the output."""

    def emit(node: Node, ctx: LowerCtx) -> None:
        y = ctx.write(node.outputs[0])
        refs = [ctx.read(i) for i in (reversed(node.inputs) if swap else node.inputs)]
        if y.type.quant is not None:
            emit_codes(node, ctx, name, refs[0], refs[1], y)
        elif name == "pow" and _exponent(ctx, node) == 2.0 and y.type.dtype.is_float:
            _emit_plain(node, ctx, "mul", refs[0], refs[0], y)
        elif len(refs) == 1:
            emit_copy(ctx, refs[0], y, whole(y.type.shape))
        else:
            left = refs[0]
            for i, right in enumerate(refs[1:], 2):
                shape = broadcast_shape((left.type, right.type))
                target = y if i == len(refs) else ctx.temp(TensorType(shape, y.type.dtype), f"{node.name}_part")
                _emit_plain(node, ctx, name, left, right, target)
                left = target

    return emit


def _exponent(ctx: LowerCtx, node: Node) -> float | None:
    value = ctx.const_value(node.inputs[1])
    return float(value.reshape(-1)[0]) if value is not None and value.size == 1 else None


def _emit_plain(node: Node, ctx: LowerCtx, name: str, a: Ref, b: Ref, y: Ref) -> None:
    name, (low, high) = _entry(name, node), bounds(node)
    if y.type.elements == 0:
        return
    clamp = int(y.type.dtype.is_float and (low, high) != (-math.inf, math.inf))
    params = BinaryParams(access(a, b, y), name, expression(name, a.type.dtype), clamp, Clamp(low, high))
    ctx.emit("binary", {"a": a, "b": b, "out": y}, params)


def _interpret(a: Arrays, p: BinaryParams) -> None:
    loops, kind = p.loops, a["out"].dtype.type
    with np.errstate(all="ignore"):
        y = np.asarray(TABLE[p.op].function(loops.view(a["a"], loops.a), loops.view(a["b"], loops.b)))
    if p.clamp:
        y = np.clip(y, kind(F32(p.bounds.act_min)), kind(F32(p.bounds.act_max)))
    a["out"].reshape(-1)[: y.size] = y.reshape(-1).astype(a["out"].dtype)


KERNELS = (
    KernelDef("binary", ("in a", "in b", "out out"), BinaryParams, _interpret, in_place=("a", "b"),
              needs_math=True, length="d0", doc="elementwise function of two tensors"),
)  # fmt: skip

# ONNX operator -> entry of TABLE, newest known version, inputs exchanged
_ONNX: Mapping[str, tuple[str, int, bool]] = {
    "Add": ("add", 14, False), "Sub": ("sub", 14, False), "Mul": ("mul", 14, False), "Div": ("div", 14, False),
    "FloorDiv": ("floor_div", 0, False), "Min": ("min", 13, False), "Max": ("max", 13, False),
    "Pow": ("pow", 15, False), "Mod": ("mod", 28, False), "PRelu": ("prelu", 16, False),
    "Equal": ("equal", 19, False), "Less": ("less", 13, False), "LessOrEqual": ("less_equal", 16, False),
    "Greater": ("less", 13, True), "GreaterOrEqual": ("less_equal", 16, True), "And": ("and", 7, False),
    "Or": ("or", 7, False), "Xor": ("xor", 7, False), "BitwiseAnd": ("bit_and", 18, False),
    "BitwiseOr": ("bit_or", 18, False), "BitwiseXor": ("bit_xor", 18, False), "BitShift": ("shift_left", 28, False),
}  # fmt: skip
_CODES = {"unsigned": Int(0), "mixed": Int(0)}
_ATTRS: Mapping[str, Mapping[str, Attr]] = {
    "Add": {**CLAMP, **SHIFT_ATTRS, **_CODES}, "Sub": {**CLAMP, **SHIFT_ATTRS, **_CODES}, "Mul": {**CLAMP, **_CODES},
    "Div": CLAMP, "Mod": {"fmod": Int(0)}, "BitShift": {"direction": Str(words=("LEFT", "RIGHT"))},
}  # fmt: skip


def _op(name: str) -> OpDef:
    entry, version, swap = _ONNX[name]
    return OpDef(
        name, infer(entry), derived, lower(entry, swap=swap), _ATTRS.get(name, {}),
        max_version=version, int8=name in ("Add", "Sub", "Mul"),
        doc=f"elementwise {entry.replace('_', ' ')} with broadcasting",
    )  # fmt: skip


OPS = tuple(_op(name) for name in _ONNX)
