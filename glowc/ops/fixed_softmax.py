"""Softmax and LogSoftmax of codes along the last axis in TensorFlow Lite's fixed point (`rounding` "tflite").

Softmax of int8, to int8 or int16 codes: exp of the differences to the largest comes from a table
(`glowc.graph.fixed_functions.softmax_table`), which ends where TensorFlow Lite takes 0; the sum has 12 integer bits,
its reciprocal three Newton steps.
Softmax of int16: exp and the reciprocal of the sum come from tables of 513 entries (`glowc.graph.fixed_softmax`).
LogSoftmax of int8: differences to the largest of 5 integer bits and exp of them come from tables of 256 entries; the
log of their sum from a rational function (the same); results are sixteenths less 127.
Source: tensorflow/lite/kernels/internal/reference/{softmax,log_softmax}.h, restated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowc.graph.attrs import Float, Str
from glowc.graph.fixed_functions import softmax_parts, softmax_table
from glowc.graph.fixed_softmax import (
    log_softmax_codes,
    log_softmax_factors,
    log_softmax_tables,
    softmax16_codes,
    softmax16_factor,
    softmax16_tables,
)
from glowc.graph.graph import Node
from glowc.graph.types import DTYPES, DType
from glowc.ops.base import LowerCtx, MaybeTypes, OpError, Ref, Types
from glowc.ops.integer import ROUNDING, codes_of, rule_of_codes
from glowc.ops.params import Along
from glowc.program.kernel import Arrays, KernelDef

ATTRS = {**ROUNDING, "beta": Float(1.0), "dtype": Str("", words=DTYPES)}
_RESULTS = {
    ("Softmax", DType.S8): (DType.S8, DType.S16), ("Softmax", DType.S16): (DType.S16,),
    ("LogSoftmax", DType.S8): (DType.S8,),
}  # fmt: skip
_TOP = 127


@dataclass(frozen=True, slots=True)
class FixedSoftmax(Along):
    """Of `softmax_s8q31`: the entries of the table."""

    entries: int


@dataclass(frozen=True, slots=True)
class LogSoftmax(Along):
    """Of `log_softmax_s8q31`: the factor from logs back to differences, the least difference that counts."""

    mul: int
    shift: int
    least: int


@dataclass(frozen=True, slots=True)
class Softmax16(Along):
    """Of `softmax_s16`: the factor of the differences."""

    mul: int
    shift: int


def infer(node: Node, in_types: MaybeTypes) -> Types:
    """Codes of kind `dtype`."""
    (y,) = rule_of_codes(rank=1)(node, in_types)
    x = in_types[0]
    if x is None or y.dtype not in _RESULTS.get((node.op, x.dtype), ()) or node.int_("axis") not in (-1, x.rank - 1):
        raise OpError(f"{node.op} of {x} to {y}")
    return (y,)


def emit(node: Node, ctx: LowerCtx, x: Ref, y: Ref, dims: tuple[int, int, int]) -> None:
    """One kernel with its tables."""
    scale, operands = codes_of(x.type).scale[0], {"in": x, "out": y}
    if node.op == "LogSoftmax":
        factors = log_softmax_factors(scale)
        exp, fine = log_softmax_tables(factors)
        operands |= {"exp": ctx.const(exp, f"{node.name}_exp"), "fine": ctx.const(fine, f"{node.name}_fine")}
        ctx.emit("log_softmax_s8q31", operands, LogSoftmax(*dims, *factors[2:]))
    elif x.type.dtype is DType.S8:
        table = softmax_table(scale, node.float_("beta"))
        operands["table"] = ctx.const(table, f"{node.name}_exp")
        ctx.emit("softmax_s8q31", operands, FixedSoftmax(*dims, table.size))
    else:
        exp, inverse = softmax16_tables()
        operands |= {"exp": ctx.const(exp, "softmax_exp"), "inverse": ctx.const(inverse, "softmax_inverse")}
        ctx.emit("softmax_s16", operands, Softmax16(*dims, *softmax16_factor(scale, node.float_("beta"))))


def _differences(a: Arrays, p: Along) -> np.ndarray:
    wide = p.view(a["in"]).astype(np.int64)
    return np.asarray(wide - wide.max(1, keepdims=True))


def _interpret(a: Arrays, p: FixedSoftmax) -> None:
    kind = np.iinfo(a["out"].dtype)
    y = softmax_parts(-_differences(a, p), a["table"], kind.bits) + kind.min
    p.view(a["out"])[:] = np.clip(y, kind.min, kind.max)


def _interpret_log(a: Arrays, p: LogSoftmax) -> None:
    y = log_softmax_codes(_differences(a, p), (0, 0, p.mul, p.shift, p.least), (a["exp"], a["fine"])) + _TOP
    p.view(a["out"])[:] = np.clip(y, -128, 127)


def _interpret_16(a: Arrays, p: Softmax16) -> None:
    p.view(a["out"])[:] = softmax16_codes(_differences(a, p), (p.mul, p.shift), (a["exp"], a["inverse"]))


KERNELS = (
    KernelDef("softmax_s8q31", ("in in:s8", "in table:s32", "out out:s8|s16"), FixedSoftmax, _interpret, kind="s8",
              in_place=("in",), doc="int8 softmax in TensorFlow Lite's fixed point"),
    KernelDef("log_softmax_s8q31", ("in in:s8", "in exp:s32", "in fine:s32", "out out:s8"), LogSoftmax, _interpret_log,
              kind="s8", in_place=("in",), doc="int8 log-softmax in TensorFlow Lite's fixed point"),
    KernelDef("softmax_s16", ("in in:s16", "in exp:s16", "in inverse:s16", "out out:s16"), Softmax16, _interpret_16,
              kind="s16", in_place=("in",), doc="int16 softmax by TensorFlow Lite's tables"),
)  # fmt: skip
