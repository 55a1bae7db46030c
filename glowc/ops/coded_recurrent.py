"""What LSTM and GRU layers on int8 codes share: operands, the sums of gates, their functions, the order of steps.

x[T, B, I], weights[D, G H, I], recurrent[D, G H, H], rows of the G gates in the order of ONNX, bias[D, 2, G H] int32
and scale[D, 2, G H] float32 of the sums over x and over h -> y[T, D, B, H], D directions, all states 0 at first. With
initial states there are two results: y, and cells[D, B, H] of int16, those of an LSTM or the states of a GRU, after the
last step. They start as the last operand, cells of the same form; an LSTM has the codes h[D, B, H] before it. So a
sequence has the same codes as its steps one by one. The codes of h are those of y, zy before the first step; of a GRU
with initial states those of its cells. The zero points of x and h are inside of the biases. A sum is
float32(bias + sum of products) * scale, every operation in float32, in units of 2^-12. Functions of gates are tables
of 513 entries from -8 to 8, linear between them, in units of 2^-15. A second direction, or the only one with
`reverse`, goes from the last step to the first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from glowc.graph.attrs import Attr, Int
from glowc.graph.fixed_softmax import lookup_table
from glowc.graph.graph import Node
from glowc.graph.numerics import F32, round_clamp
from glowc.graph.types import DType, QuantParams, TensorType
from glowc.ops.base import LowerCtx, MaybeTypes, OpDef, OpError, Types
from glowc.ops.derived import derived
from glowc.ops.strided import present
from glowc.program.kernel import Arrays, KernelDef
from glowc.program.params import Params, Printed

GATES: Mapping[str, int] = {"lstm": 4, "gru": 3}
GATE_SCALE = 2.0**-12
ROLES = ("in", "weights", "recurrent", "bias", "scale")
START_ROLES: Mapping[str, tuple[str, ...]] = {"lstm": ("start_codes", "start_cells"), "gru": ("start_cells",)}
OPERANDS = ("in in", "in weights:s8", "in recurrent:s8", "in bias:s32", "in scale:f32", "in table:s16", "out out")
_STATE_OPERANDS = {"start_codes": "in start_codes:s8", "start_cells": "in start_cells:s16"}
ATTRS: Mapping[str, Attr] = {"reverse": Int(0)}
_REACH = 8.0  # of gates: 2^15 * 2^-12


@dataclass(frozen=True, slots=True)
class CodedLayer(Params):
    """Sizes, the code of 0, the factor from the unit of the state to that of its codes; `cell` is "lstm" or "gru".

    `starts`: with initial states, and those after the last step as a result.
    """

    steps: int
    batch: int
    in_k: int
    hidden: int
    dirs: int
    reverse: int
    out_zp: int
    out_factor: float
    cell: str
    starts: Printed


L = TypeVar("L", bound=CodedLayer)


@dataclass(frozen=True, slots=True)
class Cell(Generic[L]):
    """What a cell is, "lstm" or "gru": its parameters, of a node with x and y, and its step.

    `step(p, a, x[B, I], h[B, H], cells[B, H])` takes the constants `a` of a direction and the codes of h, returns those
    of the next h and advances the cells in place.
    """

    name: str
    takes: type[L]
    params: Callable[[Node, TensorType, TensorType], L]
    step: Callable[[L, Arrays, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
    doc: str


def infer_layer(in_types: MaybeTypes, cell: str) -> Types:
    """Return the type of y, and of cells where there are initial ones; OpError for shapes that do not fit."""
    x, w, r, bias, scale = present(in_types[:5])
    gates = GATES[cell]
    if x.rank != 3 or w.rank != 3 or w.shape[1] % gates or w.shape[2] != x.shape[2]:
        raise OpError(f"input {x} and weights {w}")
    dirs, rows, hidden = w.shape[0], w.shape[1], w.shape[1] // gates
    if r.shape != (dirs, rows, hidden) or not bias.shape == scale.shape == (dirs, 2, rows):
        raise OpError(f"weights {w}, recurrent weights {r}, bias {bias}, scales {scale}")
    y = TensorType((x.shape[0], dirs, x.shape[1], hidden), x.dtype)
    starts = present(in_types[len(ROLES) :])
    if any(t.shape != (dirs, x.shape[1], hidden) for t in starts) or (starts and starts[-1].dtype is not DType.S16):
        raise OpError(f"weights {w}, initial states {', '.join(map(str, starts))}")
    return (y, starts[-1]) if starts else (y,)


def layer_params(node: Node, x: TensorType, y: TensorType, cell: str, unit: float) -> CodedLayer:
    """Return the parameters of a layer whose states, before they become codes, have that unit."""
    if x.dtype is not DType.S8 or y.quant is None:
        raise OpError(f"needs int8 codes, not {x} -> {y}")
    factor = float(F32(unit / np.float64(F32(y.quant.scale[0]))))
    steps, dirs, batch, hidden = y.shape
    sizes = (steps, batch, x.shape[2], hidden, dirs)
    starts = int(len(node.inputs) > len(ROLES))
    return CodedLayer(*sizes, node.int_("reverse"), y.quant.zero_point[0], factor, cell, starts)


def gate_tables() -> np.ndarray:
    """Return the tables of sigmoid and of tanh."""

    def sigmoid(v: np.ndarray) -> np.ndarray:
        return np.asarray(1 / (1 + np.exp(-v.astype(np.float64))))

    def tanh(v: np.ndarray) -> np.ndarray:
        return np.asarray(np.tanh(v.astype(np.float64)))

    return np.concatenate([lookup_table(f, -_REACH, _REACH) for f in (sigmoid, tanh)])


def gate_scales(x: QuantParams, w: np.ndarray, y: QuantParams, r: np.ndarray) -> np.ndarray:
    """Return scale[D, 2, G H] from the scales[D, G H] of the rows of both weights."""
    pairs = ((x.scale[0], w), (y.scale[0], r))
    scales = [np.float64(F32(s)) * rows.astype(np.float64) / GATE_SCALE for s, rows in pairs]
    return np.stack(scales, axis=1).astype(F32)


def sat16(x: np.ndarray) -> np.ndarray:
    """Return integers in the range of int16."""
    return np.asarray(np.clip(x, -(1 << 15), (1 << 15) - 1))


def rounded16(sums: np.ndarray) -> np.ndarray:
    """Return float32 numbers rounded half to even, in the range of int16."""
    return round_clamp(sums, 0, -(1 << 15), (1 << 15) - 1).astype(np.int64)


def state_codes(p: CodedLayer, state: np.ndarray) -> np.ndarray:
    """Return the codes of states."""
    return round_clamp(state.astype(F32) * F32(p.out_factor), p.out_zp, DType.S8.qmin, DType.S8.qmax)


def scaled_sums(a: Arrays, role: str, codes: np.ndarray) -> np.ndarray:
    """Return the sums[B, G H] of codes[B, K] with the weights of that role, times their scales."""
    index = ("weights", "recurrent").index(role)
    acc = a["bias"][index].astype(np.int64) + codes.astype(np.int64) @ a[role].astype(np.int64).T
    return np.asarray(acc.astype(F32) * a["scale"][index])


def run_layer(cell: Cell[L], p: L, a: Arrays) -> tuple[np.ndarray, np.ndarray]:
    """Return the codes y[T, D, B, H] of all steps, and the cells[D, B, H] after the last one."""
    rows = GATES[p.cell] * p.hidden
    shapes = {
        "weights": (p.dirs, rows, p.in_k), "recurrent": (p.dirs, rows, p.hidden), "bias": (p.dirs, 2, rows),
        "scale": (p.dirs, 2, rows),
    }  # fmt: skip
    consts = {role: a[role].reshape(shape) for role, shape in shapes.items()}
    x, y = a["in"].reshape(p.steps, p.batch, p.in_k), np.zeros((p.steps, p.dirs, p.batch, p.hidden), np.int8)
    codes, cells = _start(p, a)
    for d in range(p.dirs):
        part = {**{role: array[d] for role, array in consts.items()}, "table": a["table"].reshape(2, -1)}
        h = codes[d]
        for s in range(p.steps):
            t = p.steps - 1 - s if d or p.reverse else s
            y[t, d] = h = cell.step(p, part, x[t], h, cells[d])
    return y, cells


def _start(p: CodedLayer, a: Arrays) -> tuple[np.ndarray, np.ndarray]:
    """Return the codes and the cells [D, B, H] before the first step."""
    shape = (p.dirs, p.batch, p.hidden)
    if not p.starts:
        return np.full(shape, p.out_zp), np.zeros(shape, np.int64)
    cells = a["start_cells"].reshape(shape).astype(np.int64)
    return a["start_codes"].reshape(shape) if p.cell == "lstm" else state_codes(p, cells), cells


def touched(p: CodedLayer) -> dict[str, int]:
    """Return the elements touched: all gates of a cell read the inputs and the state, the outputs before, together."""
    cells = p.steps * p.batch * p.dirs * p.hidden
    return {"in": cells * p.in_k, "out": cells * (p.hidden + 1)}


def coded_op(name: str, cell: Cell[L], attrs: Mapping[str, Attr]) -> tuple[OpDef, tuple[KernelDef[L], ...]]:
    """Return the operator of that name for layers of these cells; its kernels without and with initial states."""
    kernels = f"{cell.name}_s8", f"{cell.name}_state_s8"
    roles = (*ROLES, *START_ROLES[cell.name])

    def infer(_: Node, in_types: MaybeTypes) -> Types:
        return infer_layer(in_types, cell.name)

    def lower(node: Node, ctx: LowerCtx) -> None:
        results = dict(zip(("out", "last_cells"), map(ctx.write, node.outputs), strict=False))
        operands = {role: ctx.read(name) for role, name in zip(roles, node.inputs, strict=False)}
        x, w, r = (ctx.type(name) for name in node.inputs[:3])
        macs = x.shape[0] * x.shape[1] * (w.elements + r.elements)
        table = ctx.const(gate_tables(), "gate_tables")
        p = cell.params(node, x, results["out"].type)
        ctx.emit(kernels[p.starts], {**operands, "table": table, **results}, p, macs=macs)

    def interpret(a: Arrays, p: L) -> None:
        y, cells = run_layer(cell, p, a)
        a["out"].reshape(-1)[:] = y.reshape(-1)
        if p.starts:
            a["last_cells"].reshape(-1)[:] = cells.reshape(-1)

    op = OpDef(
        name, infer, derived, lower, attrs=attrs, doc=f"{cell.name.upper()} of codes with int8 weights (internal)"
    )
    starts = (_STATE_OPERANDS[role] for role in START_ROLES[cell.name])
    forms = {kernels[0]: (OPERANDS, cell.doc), kernels[1]: (
        (*OPERANDS[:-2], *starts, *OPERANDS[-2:], "out last_cells:s16"), f"{cell.doc}, with initial states"
    )}  # fmt: skip
    return op, tuple(
        KernelDef(kernel, operands, cell.takes, interpret, kind="s8", template="coded_layer", touched=touched, doc=doc)
        for kernel, (operands, doc) in forms.items()
    )
