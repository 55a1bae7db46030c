"""CodedLSTM: an LSTM on int8 codes with int8 weights, gates and cells of 16 bits; one direction, all states 0 at first.

x[T, B, I], weights[4 H, I], recurrent[4 H, H], rows of the gates in the order of ONNX (input, output, forget, cell),
bias[2, 4 H] int32 and scale[2, 4 H] float32 of the sums over x and over h -> y[T, 1, B, H]. For each step
gate = sat16(rne(float32(bias + sum x w) * scale + float32(bias' + sum h r) * scale')) in units of 2^-12, every
operation in float32, h being zy in the first step; the zero points of x and h are inside of the biases;
i, o, f = sigmoid(gate) and g = tanh(gate) from tables of 513 entries, linear between them, in units of 2^-15;
c = sat16((f c + ((i g + 2^3) >> 4) + 2^14) >> 15) in units of 2^-11, as TensorFlow Lite's cells have them;
h = clamp(rne(float32(o tanh(sat16(2 c))) * (2^-30 / sy)) + zy), which is also the result.
onnxruntime has no such kernel and computes in float: tests/ops/test_coded_lstm.py measures the difference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowc.graph.fixed_softmax16 import looked_up, lookup_table
from glowc.graph.graph import Node
from glowc.graph.numerics import F32, round_clamp
from glowc.graph.types import DType, QuantParams, TensorType
from glowc.ops.base import Call, LowerCtx, MaybeTypes, OpDef, OpError, Types
from glowc.ops.strided import present
from glowc.program.kernel import Arrays, KernelDef
from glowc.program.params import Params

GATES = 4
INPUT, OUTPUT, FORGET, CELL = range(GATES)
GATE_SCALE = 2.0**-12
_PRODUCT = 2.0**-30
_REACH = 8.0  # of gates: 2^15 * 2^-12
_ROLES = ("in", "weights", "recurrent", "bias", "scale")


@dataclass(frozen=True, slots=True)
class CodedLstm(Params):
    """Of `lstm_s8`: sizes, the code of 0 and the factor of the state."""

    steps: int
    batch: int
    in_k: int
    hidden: int
    out_zp: int
    out_factor: float


def infer(node: Node, in_types: MaybeTypes) -> Types:
    """One row of cells for each of the input."""
    x, w, r, bias, scale = present(in_types[:5])
    if x.rank != 3 or w.rank != 2 or w.shape[0] % GATES or w.shape[1] != x.shape[2]:
        raise OpError(f"input {x} and weights {w}")
    hidden = w.shape[0] // GATES
    if r.shape != (GATES * hidden, hidden) or not bias.shape == scale.shape == (2, GATES * hidden):
        raise OpError(f"weights {w}, recurrent weights {r}, bias {bias}, scales {scale}")
    return (TensorType((x.shape[0], 1, x.shape[1], hidden), x.dtype),)


def params_of(types: MaybeTypes, y: TensorType) -> CodedLstm:
    """Return the parameters of the kernel."""
    x = present(types[:1])[0]
    if x.dtype is not DType.S8 or y.quant is None:
        raise OpError(f"needs int8 codes, not {x} -> {y}")
    factor = float(F32(_PRODUCT / np.float64(F32(y.quant.scale[0]))))
    return CodedLstm(x.shape[0], x.shape[1], x.shape[2], y.shape[3], y.quant.zero_point[0], factor)


def gate_tables() -> np.ndarray:
    """Return the tables of sigmoid and of tanh."""

    def sigmoid(v: np.ndarray) -> np.ndarray:
        return np.asarray(1 / (1 + np.exp(-v.astype(np.float64))))

    def tanh(v: np.ndarray) -> np.ndarray:
        return np.asarray(np.tanh(v.astype(np.float64)))

    return np.concatenate([lookup_table(f, -_REACH, _REACH) for f in (sigmoid, tanh)])


def gate_scales(x: QuantParams, w: np.ndarray, y: QuantParams, r: np.ndarray) -> np.ndarray:
    """Return scale[2, 4 H] from the scales of the rows of both weights."""
    pairs = ((x.scale[0], w), (y.scale[0], r))
    return np.stack([np.float64(F32(s)) * rows.astype(np.float64) / GATE_SCALE for s, rows in pairs]).astype(F32)


def _sat(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.clip(x, -(1 << 15), (1 << 15) - 1))


def step_codes(p: CodedLstm, a: Arrays, x: np.ndarray, h: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return the codes of a step x[B, I] after the state h[B, H], having advanced the cells c[B, H] in place."""
    rows, scale = GATES * p.hidden, a["scale"].reshape(2, -1)
    bias = a["bias"].reshape(2, rows).astype(np.int64)
    own = bias[0] + x.astype(np.int64) @ a["weights"].reshape(rows, -1).astype(np.int64).T
    past = bias[1] + h.astype(np.int64) @ a["recurrent"].reshape(rows, -1).astype(np.int64).T
    sums = own.astype(F32) * scale[0] + past.astype(F32) * scale[1]
    gates = round_clamp(sums, 0, -(1 << 15), (1 << 15) - 1).astype(np.int64).reshape(-1, GATES, p.hidden)
    sigmoid, tanh = a["table"].reshape(2, -1)
    i, o, f = (looked_up(gates[:, k], sigmoid) for k in (INPUT, OUTPUT, FORGET))
    fresh = (i * looked_up(gates[:, CELL], tanh) + 8) >> 4
    c[...] = _sat((f * c + fresh + (1 << 14)) >> 15)
    product = o * looked_up(_sat(2 * c), tanh)
    return round_clamp(product.astype(F32) * F32(p.out_factor), p.out_zp, DType.S8.qmin, DType.S8.qmax)


def run_codes(p: CodedLstm, a: Arrays) -> np.ndarray:
    """Return the codes y[T, B, H] of all steps."""
    x, y = a["in"].reshape(p.steps, p.batch, p.in_k), np.zeros((p.steps, p.batch, p.hidden), np.int8)
    c, start = np.zeros((p.batch, p.hidden), np.int64), np.full((p.batch, p.hidden), p.out_zp)
    for t in range(p.steps):
        y[t] = step_codes(p, a, x[t], y[t - 1] if t else start, c)
    return y


def reference(call: Call) -> tuple[np.ndarray, ...]:
    """Evaluate all steps."""
    arrays = {role: call.array(i) for i, role in enumerate(_ROLES)}
    y = run_codes(params_of(call.in_types, call.out_types[0]), {**arrays, "table": gate_tables()})
    return (y.reshape(call.out_types[0].shape),)


def lower(node: Node, ctx: LowerCtx) -> None:
    """Emit one `lstm_s8`."""
    y = ctx.write(node.outputs[0])
    operands = {role: ctx.read(name) for role, name in zip(_ROLES, node.inputs, strict=True)}
    p = params_of(tuple(ctx.type(name) for name in node.inputs), y.type)
    macs = p.steps * p.batch * GATES * p.hidden * (p.in_k + p.hidden)
    ctx.emit("lstm_s8", {**operands, "table": ctx.const(gate_tables(), "gate_tables"), "out": y}, p, macs=macs)


def _interpret(a: Arrays, p: CodedLstm) -> None:
    a["out"].reshape(-1)[:] = run_codes(p, a).reshape(-1)


KERNELS = (
    KernelDef(
        "lstm_s8",
        ("in in", "in weights:s8", "in recurrent:s8", "in bias:s32", "in scale:f32", "in table:s16", "out out"),
        CodedLstm, _interpret, kind="s8", doc="LSTM of int8 codes and weights with gates and cells of 16 bits",
    ),
)  # fmt: skip

OP = OpDef("CodedLSTM", infer, reference, lower, doc="LSTM of codes with int8 weights (internal)")
