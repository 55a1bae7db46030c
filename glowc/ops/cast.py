"""Cast: to the element kind of attr `to` (a TensorProto.DataType).

Integers wrap, as in numpy; to 2 and 4 bits the low bits count, of floats too (cut off to int32 first). Other floats
to integers truncate and saturate, NaN gives 0 (ONNX leaves these undefined);
anything to bool is x != 0. Codes of a quantised tensor are plain numbers here. Source: ONNX Cast-25.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowc.graph.attrs import Int, Str
from glowc.graph.graph import Node
from glowc.graph.types import NARROW, DType, TensorType, dtype_of
from glowc.ops.base import LowerCtx, MaybeTypes, OpDef, OpError, Types
from glowc.ops.derived import derived
from glowc.ops.params import Elements
from glowc.ops.strided import emit_copy, present, whole
from glowc.program.kernel import Arrays, KernelDef

KINDS = {
    1: DType.F32, 2: DType.U8, 3: DType.S8, 4: DType.U16, 5: DType.S16, 6: DType.S32, 7: DType.S64, 9: DType.BOOL,
    11: DType.F64, 12: DType.U32, 13: DType.U64, 21: DType.U4, 22: DType.S4, 25: DType.U2, 26: DType.S2,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class CastParams(Elements):
    """Of `cast`: the C expression over x."""

    expr: str


def infer(node: Node, in_types: MaybeTypes) -> Types:
    """The input's shape in the new kind."""
    (x,) = present(in_types[:1])
    kind = KINDS.get(node.int_("to"))
    if kind is None or x.dtype not in KINDS.values():
        raise OpError(f"cast of {x} to ONNX element type {node.int_('to')}")
    return (TensorType(x.shape, kind, None, x.layout),)


def cast(x: np.ndarray, to: DType) -> np.ndarray:
    """Return x in another element kind."""
    if to == DType.BOOL:
        return np.asarray(x != 0)
    if to in NARROW:
        low = cast(x, DType.S32).astype(np.int64) & ((1 << int(to.value[1:])) - 1)
        return np.asarray(np.where(low > to.qmax, low - (1 << int(to.value[1:])), low).astype(to.numpy))
    if x.dtype.kind != "f" or to.is_float:
        with np.errstate(over="ignore"):
            return x.astype(to.numpy)
    high, low = x.dtype.type(2.0 ** (to.bits - to.is_signed)), x.dtype.type(float(to.qmin))
    inside = (x < high) & (x > low)
    y = np.where(inside, x, 0).astype(to.numpy)
    return np.asarray(np.where(x >= high, to.qmax, np.where(x <= low, to.qmin, y)).astype(to.numpy))


def lower(node: Node, ctx: LowerCtx) -> None:
    """One `cast`; a copy when the kind stays."""
    x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
    if x.type.dtype == y.type.dtype:
        emit_copy(ctx, x, y, whole(x.type.shape))
        return
    ctx.emit("cast", {"in": x, "out": y}, CastParams(x.type.elements, expression(x.type.dtype, y.type.dtype)))


def expression(source: DType, to: DType) -> str:
    """Return the C expression over x."""
    if to == DType.BOOL:
        return "(uint8_t)(x != 0)"
    if to in NARROW:
        mask, half = to.qmax - to.qmin, -to.qmin
        low = f"((uint32_t)({expression(source, DType.S32)}) & {mask}u)"
        return f"(int8_t)((int32_t)({low} ^ {half}u) - {half})" if half else f"(uint8_t){low}"
    if not source.is_float or to.is_float:
        return f"({to.ctype})x"
    end = "f" if source == DType.F32 else ""
    high, low = f"{2.0 ** (to.bits - to.is_signed)}{end}", f"{float(to.qmin)}{end}"
    name = f"{'INT' if to.is_signed else 'UINT'}{to.bits}"
    bottom = f"{name}_MIN" if to.is_signed else "0"
    return f"({to.ctype})(x >= {high} ? {name}_MAX : (x > {low} ? ({to.ctype})x : (x != x ? 0 : {bottom})))"


def _interpret(arrays: Arrays, p: CastParams) -> None:
    out, text = arrays["out"].reshape(-1), p.expr
    kind = DType.BOOL if text == "(uint8_t)(x != 0)" else dtype_of(out)
    for narrow in NARROW:
        ends = f" ^ {-narrow.qmin}u) - {-narrow.qmin})" if narrow.is_signed else f" & {narrow.qmax}u)"
        kind = narrow if text.endswith(ends) else kind
    out[:] = cast(arrays["in"].reshape(-1), kind)


KERNELS = (
    KernelDef("cast", ("in in", "out out"), CastParams, _interpret, needs_math=True,
              doc="change of element kind"),
)  # fmt: skip

OP = OpDef(
    "Cast", infer, derived, lower, attrs={"to": Int(), "saturate": Int(1), "round_mode": Str("up")}, max_version=28,
    doc="change of element kind",
)  # fmt: skip
