"""FixedLogSoftmax of int8 and FixedSoftmax16 of int16 along the last axis, in TensorFlow Lite's fixed point.

FixedLogSoftmax: differences to the largest of 5 integer bits and exp of them come from tables of 256 entries; the log
of their sum from a rational function (`glowc.graph.fixed_log`); results are sixteenths less 127.
FixedSoftmax16: exp and the reciprocal of the sum come from tables of 513 entries (`glowc.graph.fixed_softmax16`).
Source: tensorflow/lite/kernels/internal/reference/{log_softmax,softmax}.h, restated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowc.graph.attrs import Float
from glowc.graph.fixed_log import log_softmax_codes, log_softmax_factors, log_softmax_tables
from glowc.graph.fixed_softmax16 import softmax16_codes, softmax16_factor, softmax16_tables
from glowc.graph.graph import Node
from glowc.graph.types import DType
from glowc.ops.base import LowerCtx, OpDef
from glowc.ops.derived import derived
from glowc.ops.integer import codes_of, rule_of_codes
from glowc.ops.params import Along
from glowc.program.kernel import Arrays, KernelDef

_TOP = 127


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


def _differences(x: np.ndarray) -> np.ndarray:
    wide = x.astype(np.int64)
    return np.asarray(wide - wide.max(1, keepdims=True))


def lower(node: Node, ctx: LowerCtx) -> None:
    """One kernel with its tables."""
    x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
    n, scale = x.type.shape[-1], codes_of(x.type).scale[0]
    dims = (x.type.elements // n, n, 1)
    if node.op == "FixedLogSoftmax":
        factors = log_softmax_factors(scale)
        exp, fine = log_softmax_tables(factors)
        tables = {"exp": ctx.const(exp, f"{node.name}_exp"), "fine": ctx.const(fine, f"{node.name}_fine")}
        ctx.emit("log_softmax_s8q31", {"in": x, **tables, "out": y}, LogSoftmax(*dims, *factors[2:]))
        return
    exp, inverse = softmax16_tables()
    tables = {"exp": ctx.const(exp, "softmax_exp"), "inverse": ctx.const(inverse, "softmax_inverse")}
    factor = softmax16_factor(scale, node.float_("beta"))
    ctx.emit("softmax_s16", {"in": x, **tables, "out": y}, Softmax16(*dims, *factor))


def _interpret_log(a: Arrays, p: LogSoftmax) -> None:
    factors = (0, 0, p.mul, p.shift, p.least)
    y = log_softmax_codes(_differences(p.view(a["in"])), factors, (a["exp"], a["fine"])) + _TOP
    p.view(a["out"])[:] = np.clip(y, -128, 127)


def _interpret_16(a: Arrays, p: Softmax16) -> None:
    d = _differences(p.view(a["in"]))
    p.view(a["out"])[:] = softmax16_codes(d, (p.mul, p.shift), (a["exp"], a["inverse"]))


KERNELS = (
    KernelDef("log_softmax_s8q31", ("in in:s8", "in exp:s32", "in fine:s32", "out out:s8"), LogSoftmax, _interpret_log,
              kind="s8", in_place=("in",), doc="int8 log-softmax in TensorFlow Lite's fixed point"),
    KernelDef("softmax_s16", ("in in:s16", "in exp:s16", "in inverse:s16", "out out:s16"), Softmax16, _interpret_16,
              kind="s16", in_place=("in",), doc="int16 softmax by TensorFlow Lite's tables"),
)  # fmt: skip

OPS = (
    OpDef("FixedLogSoftmax", rule_of_codes(DType.S8, rank=1), derived, lower,
          doc="log-softmax of codes as TensorFlow Lite computes it (internal)"),
    OpDef("FixedSoftmax16", rule_of_codes(DType.S16, rank=1), derived, lower, {"beta": Float(1.0)},
          doc="softmax of int16 codes as TensorFlow Lite computes it (internal)"),
)  # fmt: skip
