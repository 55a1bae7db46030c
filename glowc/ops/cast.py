"""Cast: to the element kind of attr `to` (a TensorProto.DataType).

Floats of 8 and 4 bits are cast from and to float32 (glowc/graph/few_bits.py); of those too large, `saturate` says what
they become. Integers wrap, as in numpy; to 2 and 4 bits the low bits count, of floats too (cut off to int32 first).
Other floats to integers truncate and saturate, NaN gives 0 (ONNX leaves these undefined);
anything to bool is x != 0. Codes of a quantised tensor are plain numbers here. Source: ONNX Cast-25.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np

from glowc.graph.attrs import Int, Str
from glowc.graph.few_bits import FEW_BITS, ROUND_MODES, decode, encode
from glowc.graph.graph import Node
from glowc.graph.types import CODED, NARROW, DType, TensorType, dtype_of
from glowc.ops.base import LowerCtx, MaybeTypes, OpDef, OpError, Ref, Types
from glowc.ops.derived import derived
from glowc.ops.params import Elements
from glowc.ops.strided import emit_copy, present, whole
from glowc.program.kernel import Arrays, KernelDef

KINDS = {
    1: DType.F32, 2: DType.U8, 3: DType.S8, 4: DType.U16, 5: DType.S16, 6: DType.S32, 7: DType.S64, 9: DType.BOOL,
    11: DType.F64, 12: DType.U32, 13: DType.U64, 17: DType.E4M3FN, 18: DType.E4M3FNUZ, 19: DType.E5M2,
    20: DType.E5M2FNUZ, 21: DType.U4, 22: DType.S4, 23: DType.E2M1, 24: DType.E8M0, 25: DType.U2, 26: DType.S2,
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
    if DType.F64 in (x.dtype, kind) and {x.dtype, kind} & CODED:
        raise OpError(f"cast of {x} to {kind.value}: cast to float32 between")
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
    ends = {x.type.dtype, y.type.dtype}
    if ends & CODED and DType.F32 not in ends:
        real = ctx.temp(TensorType(x.type.shape, DType.F32), f"{node.name}_real")
        _emit(node, ctx, x, real)
        x = real
    _emit(node, ctx, x, y)


def _emit(node: Node, ctx: LowerCtx, x: Ref, y: Ref) -> None:
    source, to = x.type.dtype, y.type.dtype
    if to in CODED:
        text = coded(to, saturate=bool(node.int_("saturate")), mode=node.str_("round_mode"))
    else:
        text = decoded(source) if source in CODED else expression(source, to)
    kernel = "cast_few" if {source, to} & CODED else "cast"
    ctx.emit(kernel, {"in": x, "out": y}, CastParams(x.type.elements, text))


def coded(to: DType, *, saturate: bool, mode: str) -> str:
    """Return the C expression of the code of x."""
    if to == DType.E8M0:
        return f"glow_power_code(x, {ROUND_MODES.index(mode)}, {0xFE if saturate else 0xFF})"
    few = FEW_BITS[to]
    over = few.most if saturate else few.over
    zero = 0 if few.lone_zero else few.sign
    return f"glow_few_bits(x, {few.sign}u, {zero}u, {few.places}, {few.lowest}, {few.most}u, {over}u, {few.nan}u)"


def decoded(source: DType) -> str:
    """Return the C expression of the number of the code x."""
    if source == DType.E8M0:
        return "x == 255 ? NAN : glow_power_value(x)"
    few, size = FEW_BITS[source], f"(x & {FEW_BITS[source].sign - 1})"
    value = f"glow_few_value(x, {few.sign}u, {few.places}, {127 - 1 + few.lowest}u)"
    if source == DType.E5M2:
        return f"{size} > {few.over} ? NAN : {value} * ({size} == {few.over} ? INFINITY : 1.0f)"
    if few.lone_zero:
        return f"x == {few.sign} ? NAN : {value}"
    return f"{size} > {few.most} ? NAN : {value}" if few.most < few.sign - 1 else value


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


def _interpret_few(arrays: Arrays, p: CastParams) -> None:
    arrays["out"].reshape(-1)[:] = _CODED[p.expr](arrays["in"].reshape(-1))


_CODED: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    **{decoded(kind): partial(decode, kind=kind) for kind in CODED},
    **{
        coded(kind, saturate=bool(saturate), mode=mode): partial(encode, kind=kind, saturate=bool(saturate), mode=mode)
        for kind, saturate, mode in product(CODED, (0, 1), ROUND_MODES)
    },
}

KERNELS = (
    KernelDef("cast", ("in in", "out out"), CastParams, _interpret, needs_math=True,
              doc="change of element kind"),
    KernelDef("cast_few", ("in in", "out out"), CastParams, _interpret_few, template="cast", needs_math=True,
              doc="floats of 8 and 4 bits from and to float32"),
)  # fmt: skip

OP = OpDef(
    "Cast", infer, derived, lower, max_version=28, doc="change of element kind",
    attrs={"to": Int(), "saturate": Int(1), "round_mode": Str("up", words=ROUND_MODES)},
)  # fmt: skip
