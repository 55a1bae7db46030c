"""FixedLstm: TensorFlow Lite's UNIDIRECTIONAL_SEQUENCE_LSTM of codes, whose states are kept between calls.

x[B, T, I] (time_major: [T, B, I]), weights[4, H, I], recurrent[4, H, H], bias[4, H], gates in the order input, forget,
cell, output -> y[.., H] of the kind of x. For each step, with h and c as the step before left them:
gate = sat16(sat16(scaled(sum (x - zx) w + bias, sx sw / 2^-12)) + sat16(scaled(sum (h - zh) r, sh sr / 2^-12)))
i, f, o = logistic(gate) and g = tanh(gate) by table, in units of 2^-15
c = sat16(sat16(scaled(f c, 2^-15)) + sat16(scaled(i g, 2^-30 / sc))), cut off at +-clip / sc; sc is a power of two
h = clamp(scaled(o tanh(c), 2^-30 / sh) + zh), which is also the result. int16 has biases of 64 bits and ends as int16
layers do (`scaled_wide`). The factors are of float64 products of the float32 scales.
Evidence: 400 seeded layers of three calls, all calls of two whole models (tests/tflite), 0 bytes differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from glowc.graph.attrs import Float, Int
from glowc.graph.fixed_functions import logistic_by_table, sigmoid_table, tanh_by_table
from glowc.graph.fixed_point import multiplier, multipliers, scaled, scaled_wide
from glowc.graph.graph import Node
from glowc.graph.types import DType, TensorType
from glowc.ops.base import LowerCtx, MaybeTypes, OpDef, OpError, Ref, Types
from glowc.ops.derived import derived
from glowc.ops.integer import codes_of, result_codes
from glowc.ops.params import OutCodes
from glowc.ops.strided import present
from glowc.program.kernel import Arrays, KernelDef
from glowc.program.params import Params, Printed

GATES = 4
INPUT, FORGET, CELL, OUTPUT = range(GATES)
_GATE_SCALE = 0.00024414062
_UNIT = 2.0**-15
_LOGISTIC_MUL = 3
_ROLES = ("in", "weights", "recurrent", "bias")


@dataclass(frozen=True, slots=True)
class LstmSizes(Params):
    """Steps, batches, inputs, cells; elements from a step to the next, and from one row of the batch to the next."""

    steps: int
    batch: int
    in_k: int
    hidden: int
    time_major: Printed


@dataclass(frozen=True, slots=True)
class LstmCodes(Params):
    """Of `lstm_s8q31` and `lstm_s16q15`: zero points, factors of the three products, tanh's of the cell, the clip."""

    shape: LstmSizes
    in_zp: int
    state: OutCodes
    forget_mul: int
    forget_shift: int
    cell_mul: int
    cell_shift: int
    out_mul: int
    out_shift: int
    tanh_mul: int
    tanh_shift: int
    clip: int


def infer(node: Node, in_types: MaybeTypes) -> Types:
    """One row of cells for each of the input."""
    x, w, r, bias = present(in_types[:4])
    if x.rank != 3 or w.rank != 3 or w.shape[0] != GATES or w.shape[2] != x.shape[2]:
        raise OpError(f"input {x} and weights {w}")
    hidden = w.shape[1]
    if r.shape != (GATES, hidden, hidden) or bias.shape != (GATES, hidden):
        raise OpError(f"weights {w}, recurrent weights {r}, bias {bias}")
    return (TensorType((*x.shape[:2], hidden), x.dtype),)


def sizes_of(node: Node, types: MaybeTypes) -> LstmSizes:
    """Return the sizes."""
    x, w = present(types[:2])
    major = node.int_("time_major")
    steps, batch = x.shape[:2] if major else x.shape[1::-1]
    return LstmSizes(steps, batch, x.shape[2], w.shape[1], major)


def _tanh_factor(power: int) -> tuple[int, int]:
    """Return (mul, right shift) of a cell state in units of 2^power."""
    left = 12 + power
    return (3 << left, 0) if left >= 0 else (3, -left)


def code_params(node: Node, types: MaybeTypes, y: TensorType) -> LstmCodes:
    """Return zero points and factors."""
    power, out = node.int_("cell_power"), codes_of(y)
    cell = 2.0**power
    clip = int(np.clip(node.float_("cell_clip") / cell, -32768, 32767))
    return LstmCodes(
        sizes_of(node, types), codes_of(present(types[:1])[0]).zero_point[0], result_codes(y),
        *multiplier(_UNIT * cell / cell), *multiplier(_UNIT * _UNIT / cell), *multiplier(_UNIT * _UNIT / out.scale[0]),
        *_tanh_factor(power), clip,
    )  # fmt: skip


def gate_factors(types: MaybeTypes, y: TensorType) -> tuple[np.ndarray, np.ndarray]:
    """Return mul and shift of the four sums over the input, then of the four over the state."""
    x, w, r = (codes_of(t) for t in present(types[:3]))
    unit = float(np.float32(_GATE_SCALE))
    both = [x.scale[0] * s / unit for s in w.scale] + [codes_of(y).scale[0] * s / unit for s in r.scale]
    return multipliers(both)


def _sat(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.clip(x, -(1 << 15), (1 << 15) - 1))


def step_codes(p: LstmCodes, x: np.ndarray, h: np.ndarray, c: np.ndarray, a: Arrays) -> np.ndarray:
    """Return the codes of one step x[B, I], having advanced the states [B, H] in place."""
    scale = scaled_wide if a["bias"].dtype == np.int64 else scaled
    mul, shift = a["mul"].astype(np.int64), a["shift"].astype(np.int64)
    size, gates = (GATES, p.shape.hidden), []
    w = a["weights"].reshape(*size, -1).astype(np.int64)
    r = a["recurrent"].reshape(*size, -1).astype(np.int64)
    left, state = x.astype(np.int64) - p.in_zp, h.astype(np.int64) - p.state.out_zp
    for g, bias in enumerate(a["bias"].reshape(size).astype(np.int64)):
        own = _sat(scale(left @ w[g].T + bias, mul[g], shift[g]))
        gate = _sat(own + _sat(scale(state @ r[g].T, mul[GATES + g], shift[GATES + g])))
        gates.append((tanh_by_table if g == CELL else logistic_by_table)(gate, _LOGISTIC_MUL, 0))
    kept = _sat(scaled(gates[FORGET] * c.astype(np.int64), p.forget_mul, p.forget_shift))
    cell = _sat(kept + _sat(scaled(gates[INPUT] * gates[CELL], p.cell_mul, p.cell_shift)))
    c[...] = np.clip(cell, -p.clip, p.clip) if p.clip > 0 else cell
    product = gates[OUTPUT] * tanh_by_table(c, p.tanh_mul, p.tanh_shift)
    h[...] = p.state.codes(scaled(product, p.out_mul, p.out_shift))
    return h


def lower(node: Node, ctx: LowerCtx) -> None:
    """One `lstm_*` on kept states."""
    types = tuple(ctx.type(name) for name in node.inputs)
    y = ctx.write(node.outputs[0])
    mul, shift = gate_factors(types, y.type)
    p = code_params(node, types, y.type)
    state = (p.shape.batch, p.shape.hidden)
    h = np.full(state, p.state.out_zp, y.type.dtype.numpy)
    operands: Mapping[str, Ref] = {
        **{role: ctx.read(name) for role, name in zip(_ROLES, node.inputs, strict=True)},
        "mul": ctx.const(mul, f"{node.name}_mul"), "shift": ctx.const(shift, f"{node.name}_shift"),
        "table": ctx.const(sigmoid_table(), "sigmoid_table"),
        "h": ctx.state(f"{node.name}_h", TensorType(state, y.type.dtype), h),
        "c": ctx.state(f"{node.name}_c", TensorType(state, DType.S16), np.zeros(state, np.int16)),
        "out": y,
    }  # fmt: skip
    macs = p.shape.steps * p.shape.batch * GATES * p.shape.hidden * (p.shape.in_k + p.shape.hidden)
    ctx.emit("lstm_s8q31" if y.type.dtype is DType.S8 else "lstm_s16q15", operands, p, macs=macs)


def _interpret(a: Arrays, p: LstmCodes) -> None:
    s = p.shape
    h, c = (a[role].reshape(s.batch, s.hidden) for role in "hc")
    first = (s.steps, s.batch) if s.time_major else (s.batch, s.steps)
    x, out = a["in"].reshape(*first, s.in_k), a["out"].reshape(*first, s.hidden)
    if not s.time_major:
        x, out = x.transpose(1, 0, 2), out.transpose(1, 0, 2)
    for t in range(s.steps):
        out[t] = step_codes(p, x[t], h, c, a)


def _touched(p: LstmCodes) -> dict[str, int]:
    """Each of four gates of a cell reads the inputs and the state."""
    s = p.shape
    cells = s.steps * s.batch * s.hidden
    return {"in": GATES * cells * s.in_k, "h": cells * (GATES * s.hidden + 1), "c": 2 * cells}


KERNELS = tuple(
    KernelDef(f"lstm_{kind}{end}",
              ("in in", "in weights:s8", "in recurrent:s8", f"in bias:{bias}", "in mul:s32", "in shift:s8",
               "in table:u16", "inout h", "inout c:s16", "out out"),
              LstmCodes, _interpret, kind=kind, template="lstm_q31", touched=_touched,
              doc="long short-term memory of codes in TensorFlow Lite's fixed point")
    for kind, end, bias in (("s8", "q31", "s32"), ("s16", "q15", "s64"))
)  # fmt: skip

OP = OpDef("FixedLstm", infer, derived, lower, {"time_major": Int(0), "cell_clip": Float(0.0), "cell_power": Int()},
           doc="long short-term memory of codes as TensorFlow Lite computes it (internal)")  # fmt: skip
