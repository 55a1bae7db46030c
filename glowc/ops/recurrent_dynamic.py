"""DynamicQuantizeLSTM of onnxruntime: an LSTM of floats whose products are int8, quantised while it runs.

x is quantised once over all its steps, h before every step over all samples of the batch: with the range [low, high]
extended to 0, scale = (high - low) / 255 (1 for an empty range), zero point = rne(-low / scale), codes = rne(x / scale)
+ zero point. A sum is float32(sum (x - zx) * (w - zw)) * (sx * sw[row]) + the same of h; then bias, peepholes and
activations in float32 as in LSTM. Weights become int8 (u8 minus 128) in rows, scales one per row.
Measured against onnxruntime 1.31: equal within 4e-7 over 200 steps with one thread. Where libm and onnxruntime's
approximations of exp and tanh put an h on two sides of a rounding boundary, a code may differ by one: once 1/255 of the
range of h. With several samples onnxruntime splits them between its threads and quantises each part by itself: its
result depends on the number of threads, ours is that of one. Source: com.microsoft DynamicQuantizeLSTM-1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glowc.graph.attrs import Int
from glowc.graph.graph import Node
from glowc.graph.numerics import F32
from glowc.graph.types import DType, TensorType
from glowc.ops.base import LowerCtx, MaybeTypes, OpDef, OpError, Types
from glowc.ops.derived import derived
from glowc.ops.recurrent import COMMON, constant, emit_layer
from glowc.ops.recurrent import infer as infer_layer
from glowc.ops.recurrent_cell import Cell, Step, lstm_gates, steps_of
from glowc.ops.recurrent_kernels import LstmParams, input_view, interpret_layer, operands
from glowc.ops.recurrent_spec import DYNAMIC, LENS, B, R, Shape, W, X, shape_of
from glowc.program.kernel import Arrays, KernelDef

W_SCALE, W_ZERO, R_SCALE, R_ZERO = range(8, 12)
LONGEST = (2**31 - 1) // (255 * 255)  # products that an int32 holds


@dataclass(frozen=True, slots=True)
class Packed:
    """Constants of all directions: w[D, 4 * H, I] and r[D, 4 * H, H] int8, a scale per row, zero points [D, 2]."""

    w: np.ndarray
    r: np.ndarray
    w_scale: np.ndarray
    r_scale: np.ndarray
    zero_points: np.ndarray


def infer(node: Node, in_types: MaybeTypes) -> Types:
    """As LSTM; the weights are 8-bit integers, and their scales must fit."""
    types = infer_layer(node, in_types)
    shape, x = shape_of(node, in_types), in_types[X]
    if x is None or x.dtype is not DType.F32:
        raise OpError(f"input {x}: needs f32")
    for index, name in ((W, "W"), (R, "R")):
        type_ = in_types[index]
        if type_ is None or type_.dtype not in (DType.S8, DType.U8):
            raise OpError(f"{name} is {type_}, needs s8 or u8")
    for index in (W_SCALE, W_ZERO, R_SCALE, R_ZERO):
        type_ = in_types[index] if index < len(in_types) else None
        if type_ is not None and type_.shape not in ((shape.dirs,), (shape.dirs, 4 * shape.hidden)):
            raise OpError(f"scale or zero point {type_}: needs one per direction, or one per direction and row")
    if len(in_types) > LENS and in_types[LENS] is not None and shape.batch > 1:
        raise OpError("sequence_lens of several samples, where onnxruntime's result depends on its threads")
    if max(shape.in_k, shape.hidden) > LONGEST:
        raise OpError(f"more than {LONGEST} inputs or hidden units")
    return types


def pack(shape: Shape, arrays: Sequence[np.ndarray | None]) -> Packed:
    """Return the constants from W, R and their scales and zero points; OpError for zero points that differ."""
    w, r, w_scale, w_zero, r_scale, r_zero = arrays
    assert w is not None and r is not None  # noqa: PT018
    parts = [_rows(w, w_zero), _rows(r, r_zero)]
    rows = 4 * shape.hidden
    scales = [_per_row(scale, shape.dirs, rows) for scale in (w_scale, r_scale)]
    zero_points = np.stack([zero for _, zero in parts], axis=1).astype(np.int32)
    return Packed(parts[0][0], parts[1][0], scales[0], scales[1], zero_points)


def _rows(codes: np.ndarray, zero: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return int8 codes with a row per gate and unit, and the zero point of each direction."""
    dirs = codes.shape[0]
    points = np.zeros((dirs, 1), np.int64) if zero is None else zero.astype(np.int64).reshape(dirs, -1)
    if (points != points[:, :1]).any():
        raise OpError("zero points that differ between the rows of one direction")
    shift = 128 if codes.dtype == np.uint8 else 0
    moved = (codes.astype(np.int64) - shift).transpose(0, 2, 1)
    return np.ascontiguousarray(moved, np.int8), points[:, 0] - shift


def _per_row(scale: np.ndarray | None, dirs: int, rows: int) -> np.ndarray:
    if scale is None or not (np.isfinite(scale) & (scale > 0)).all():
        raise OpError("a scale of the weights is missing, or not a positive number")
    return np.ascontiguousarray(np.broadcast_to(scale.reshape(dirs, -1), (dirs, rows)), F32)


def quantised(x: np.ndarray) -> tuple[F32, np.ndarray]:
    """Return scale and centred codes (code minus zero point)."""
    low, high = F32(x.min(initial=F32(0))), F32(x.max(initial=F32(0)))
    scale = F32((high - low) / F32(255)) if high > low else F32(1)
    zero = np.rint(np.clip(-(low / scale), F32(0), F32(255)))
    return scale, (np.clip(np.rint(x / scale), -zero, F32(255) - zero)).astype(np.float64)


def dynamic_steps(cell: Cell, k: Packed, bias: np.ndarray, peephole: np.ndarray | None, x_scale: F32) -> list[Step]:
    """Return the step function of each direction; x comes as centred codes."""
    return [_step(cell, d, k, bias[d], None if peephole is None else peephole[d], x_scale) for d in range(cell.dirs)]


def _step(cell: Cell, d: int, k: Packed, bias: np.ndarray, peephole: np.ndarray | None, x_scale: F32) -> Step:
    gates = lstm_gates(cell, d, peephole, np.dtype(F32))
    w = (k.w[d].astype(np.float64) - k.zero_points[d, 0]).T
    r = (k.r[d].astype(np.float64) - k.zero_points[d, 1]).T

    def step(x: np.ndarray, h: np.ndarray, c: np.ndarray | None) -> tuple[np.ndarray, ...]:
        assert c is not None
        h_scale, codes = quantised(h)
        left = (x @ w).astype(F32) * (x_scale * k.w_scale[d])
        return gates(left + (codes @ r).astype(F32) * (h_scale * k.r_scale[d]) + bias, c)

    return step


def _used(x: np.ndarray, lens: np.ndarray | None) -> tuple[F32, np.ndarray]:
    """Quantise x[T, B, I] over the steps that count; those beyond are never read."""
    steps = int(steps_of(lens, *x.shape[:2]).max(initial=0))
    scale, codes = quantised(x[:steps])
    return scale, np.concatenate([codes, np.zeros((x.shape[0] - steps, *x.shape[1:]))])


def lower(node: Node, ctx: LowerCtx) -> None:
    """Emit the initial state and one kernel call."""
    shape = shape_of(node, tuple(ctx.type(name) if name else None for name in node.inputs))
    named = ((W, "W"), (R, "R"), (W_SCALE, "W_scale"), (W_ZERO, "W_zero_point"), (R_SCALE, "R_scale"),
             (R_ZERO, "R_zero_point"))  # fmt: skip
    packed = pack(shape, [constant(node, ctx, index, name) for index, name in named])
    constant(node, ctx, B, "B")
    weights = {
        role: ctx.const(getattr(packed, role), f"{node.name}_{role}")
        for role in ("w", "r", "w_scale", "r_scale", "zero_points")
    }
    emit_layer(node, ctx, shape, "lstm_dynamic", weights, TensorType((shape.in_k + shape.hidden,), DType.S16))


def interpret(a: Arrays, p: LstmParams) -> None:
    """Evaluate lstm_dynamic on flat arrays."""
    layer, in_k, hidden, dirs = p.layer, p.layer.in_k, p.layer.hidden, p.layer.dirs
    rows, cell = 4 * hidden, p.cell
    packed = Packed(
        a["w"].reshape(dirs, rows, in_k), a["r"].reshape(dirs, rows, hidden), a["w_scale"].reshape(dirs, rows),
        a["r_scale"].reshape(dirs, rows), a["zero_points"].reshape(dirs, 2),
    )  # fmt: skip
    peephole = a["peephole"].reshape(dirs, -1) if p.has_peephole else None
    scale, codes = _used(input_view(a, layer), a["lens"] if layer.has_lens else None)
    functions = dynamic_steps(cell, packed, a["bias"].reshape(dirs, rows), peephole, scale)
    interpret_layer(cell, a, layer, functions, codes)


WEIGHTS = ("in w:s8", "in r:s8", "in w_scale", "in r_scale", "in zero_points:s32")
KERNELS = (
    KernelDef(
        "lstm_dynamic", operands("lstm", WEIGHTS), LstmParams, interpret, needs_math=True, kind="f32",
        doc="LSTM layer over time, int8 products of dynamically quantized floats",
    ),
)  # fmt: skip
OP = OpDef(
    DYNAMIC, infer, derived, lower, attrs={**COMMON, "input_forget": Int(0)}, domain="com.microsoft",
    doc="LSTM with int8 weights, quantized while it runs",
)  # fmt: skip
