"""Softmax and LogSoftmax along attr `axis`: float, and Softmax of int8 by a table of exponentials.

int8: e[q] = exp((q - max) * sx) from a float32 table over the 256 differences, summed in index order in float32;
y = rne((e * floor(1 / sy)) / sum) + zy, each operation in float32. Evidence: com.microsoft QLinearSoftmax of
onnxruntime 1.31 on x86-64, 24 million outputs over 60 random lengths, scales and output scales, all equal
(tests/ops/test_softmax.py repeats a part). Between int8 and uint8 codes (attribute `mixed`) onnxruntime has no
integer kernel, and 1 / sy in the place of floor(1 / sy) gives what it computes in float: 32,528 outputs, all equal.
Where floor(1 / sy) is over 148 * n onnxruntime overflows, and where sy is over 1 it gives only zeros; ONNX's
definition stands there.
Float: exp(x - max) / sum with the sum in index order; libm's exp and other orders of the sum differ, hence a relative
tolerance of 1e-5 (LogSoftmax: absolute 1e-5).
The table takes 1,024 bytes, and as products of two entries of small tables (glowc/graph/exp_factors.py) 136. Small
tensors, the heads of classifiers, have the products (softmax_s8p): a dozen instructions more per element.
The tensor is seen as [outer, n, inner]. Source: ONNX Softmax-13, LogSoftmax-13.

Softmax of int16 codes, the kernel softmax_s16w.

e = exp((x - max) * sx) is the float32 product of two entries of tables of 256 float32: exp(-256 i sx) of the high byte
i of the difference max - x, and exp(-j sx) of its low byte j. y = rne((e * (1 / sy)) / sum) + zy, the sum in index
order, each operation in float32. onnxruntime has no integer kernel and computes in float: at most one step of 65,536
differs (tests/ops/test_softmax.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from glowc.graph.attrs import Int
from glowc.graph.exp_factors import exp_entries, exp_factors
from glowc.graph.graph import Node
from glowc.graph.numerics import F32, round_clamp, softmax_exp_table, softmax_steps
from glowc.graph.types import DType
from glowc.ops import fixed_softmax
from glowc.ops.base import LowerCtx, MaybeTypes, OpDef, OpError, Ref, Types
from glowc.ops.derived import derived
from glowc.ops.integer import is_tflite
from glowc.ops.params import Along
from glowc.ops.strided import axis_of, present
from glowc.program.kernel import Arrays, KernelDef, Outer
from glowc.program.params import Printed

_WIDE = (DType.S16, DType.U16)
_MANY_ELEMENTS = 1024  # from here on the whole table is worth its bytes


@dataclass(frozen=True, slots=True)
class SoftmaxWide(Along):
    """Of softmax_s16w: what the exponentials are multiplied by."""

    out_zp: int
    steps: float


def wide_tables(scale: float) -> np.ndarray:
    """Return exp(-256 * i * scale) of 256 i, then exp(-j * scale) of 256 j, as float32."""
    index = np.arange(256, dtype=np.float64) * np.float64(F32(scale))
    return np.asarray(np.exp(-np.concatenate((256 * index, index))), np.float64).astype(F32)


def softmax_wide(x: np.ndarray, table: np.ndarray, steps: F32, zero: int) -> np.ndarray:
    """Return the int16 softmax along axis 1 of x[outer, n, inner]."""
    codes = x.astype(np.int64)
    difference = codes.max(1, keepdims=True) - codes
    e = table[difference >> 8] * table[256 + (difference & 255)]
    total = np.zeros_like(e[:, :1])
    for i in range(e.shape[1]):
        total = total + e[:, i : i + 1]
    return round_clamp((e * steps) / total, zero, DType.S16.qmin, DType.S16.qmax)


def emit_wide(node: Node, ctx: LowerCtx, x: Ref, y: Ref, dims: tuple[int, int, int]) -> None:
    """Emit softmax_s16w."""
    qx, qy = x.type.quant, y.type.quant
    assert qx is not None and qy is not None  # noqa: PT018
    table = ctx.const(wide_tables(qx.scale[0]), f"{node.name}_exp")
    params = SoftmaxWide(*dims, qy.zero_point[0], float(F32(1) / F32(qy.scale[0])))
    ctx.emit("softmax_s16w", {"in": x, "table": table, "out": y}, params)


def _interpret_wide(a: Arrays, p: SoftmaxWide) -> None:
    p.view(a["out"])[:] = softmax_wide(p.view(a["in"]), a["table"], F32(p.steps), p.out_zp)


@dataclass(frozen=True, slots=True)
class SoftmaxFloat(Along):
    """Of softmax_f32 and softmax_f64; `log`: the logarithm of the result."""

    log: Printed


@dataclass(frozen=True, slots=True)
class SoftmaxCodes(Along):
    """Of softmax_s8 and softmax_s8p: what the exponentials are multiplied by."""

    out_zp: int
    steps: float


def infer(node: Node, in_types: MaybeTypes) -> Types:
    """Same type; the axis must exist."""
    if is_tflite(node):
        return fixed_softmax.infer(node, in_types)
    (x,) = present(in_types[:1])
    axis_of(node.int_("axis"), x.rank)
    if not (x.dtype.is_float or x.dtype in (DType.S8, DType.U8, *_WIDE)):
        raise OpError(f"softmax of {x}")
    return (x,)


def _steps(node: Node, out_scale: float) -> F32:
    return F32(1) / F32(out_scale) if node.int_("mixed") else softmax_steps(out_scale)


def _running_sum(e: np.ndarray) -> np.ndarray:
    acc = np.zeros_like(e[:, :1])
    for i in range(e.shape[1]):
        acc = acc + e[:, i : i + 1]
    return acc


def softmax_codes(x: np.ndarray, table: np.ndarray, steps: F32, zero: int, dtype: DType) -> np.ndarray:
    """Return the int8 softmax along axis 1 of x[outer, n, inner]."""
    codes = x.astype(np.int64)
    e = table[codes.max(1, keepdims=True) - codes]
    return round_clamp((e * steps) / _running_sum(e), zero, dtype.qmin, dtype.qmax)


def softmax_floats(x: np.ndarray, *, log: bool) -> np.ndarray:
    """Return the softmax (or its logarithm) along axis 1 of x[outer, n, inner]."""
    shifted = x - x.max(1, keepdims=True)
    e = np.exp(shifted)
    return np.asarray(shifted - np.log(_running_sum(e)) if log else e / _running_sum(e))


def _dims(shape: tuple[int, ...], axis: int) -> tuple[int, int, int]:
    i = axis_of(axis, len(shape))
    if not shape:
        return 1, 1, 1
    return math.prod(shape[:i]), shape[i], math.prod(shape[i + 1 :])


def lower(log: bool) -> Callable[[Node, LowerCtx], None]:
    """Return the lowering."""

    def emit(node: Node, ctx: LowerCtx) -> None:
        x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
        dims = _dims(x.type.shape, node.int_("axis"))
        if is_tflite(node):
            fixed_softmax.emit(node, ctx, x, y, dims)
            return
        qx, qy = x.type.quant, y.type.quant
        if qx is None or qy is None:
            ctx.emit(f"softmax_{x.type.dtype.value}", {"in": x, "out": y}, SoftmaxFloat(*dims, int(log)))
            return
        if not log and x.type.dtype is DType.S16:
            emit_wide(node, ctx, x, y, dims)
            return
        if log or x.type.dtype != DType.S8:
            raise OpError(f"no integer form of {node.op} for {x.type}")
        factors = exp_factors(qx.scale[0], dims[1]) if x.type.elements < _MANY_ELEMENTS else None
        entries = softmax_exp_table(qx.scale[0], dims[1]) if factors is None else factors
        table = ctx.const(entries, f"{node.name}_exp")
        params = SoftmaxCodes(*dims, qy.zero_point[0], float(_steps(node, qy.scale[0])))
        kernel = "softmax_s8" if factors is None else "softmax_s8p"
        ctx.emit(kernel, {"in": x, "table": table, "out": y}, params)

    return emit


def _interpret_s8(a: Arrays, p: SoftmaxCodes) -> None:
    table = a["table"] if a["table"].dtype == F32 else exp_entries(a["table"])
    y = softmax_codes(p.view(a["in"]), table, F32(p.steps), p.out_zp, DType.S8)
    p.view(a["out"])[:] = y


def _interpret_float(a: Arrays, p: SoftmaxFloat) -> None:
    p.view(a["out"])[:] = softmax_floats(p.view(a["in"]), log=bool(p.log))


_OUTER = (Outer("outer", dict.fromkeys(("in", "out"), ("n", "inner"))),)
KERNELS = (
    KernelDef("softmax_s8", ("in in", "in table:f32", "out out"), SoftmaxCodes, _interpret_s8, in_place=("in",),
              kind="s8", outer=_OUTER, doc="int8 softmax by table"),
    KernelDef("softmax_s8p", ("in in", "in table:u32", "out out"), SoftmaxCodes, _interpret_s8, in_place=("in",),
              kind="s8", template="softmax_s8", outer=_OUTER, doc="int8 softmax by products of two table entries"),
    *(
        KernelDef(f"softmax_{t.value}", ("in in", "out out"), SoftmaxFloat, _interpret_float,
                  in_place=("in",), template="softmax_f32", needs_math=True, kind=t.value,
                  outer=_OUTER, doc="softmax or its logarithm")
        for t in (DType.F32, DType.F64)
    ),
    KernelDef("softmax_s16w", ("in in", "in table:f32", "out out"), SoftmaxWide, _interpret_wide, in_place=("in",),
              kind="s16", outer=_OUTER, doc="int16 softmax by products of two table entries"),
)  # fmt: skip

OPS = (
    OpDef("Softmax", infer, derived, lower(False), max_version=13, int8=True,
          attrs={"axis": Int(-1), "mixed": Int(0), **fixed_softmax.ATTRS}, doc="exp(x) / sum(exp(x)) along an axis"),
    OpDef("LogSoftmax", infer, derived, lower(True), attrs={"axis": Int(-1), **fixed_softmax.ATTRS}, max_version=13,
          doc="logarithm of Softmax"),
)  # fmt: skip
