"""LSTM, GRU and RNN of ONNX: all activations, clip, peepholes, both directions, sequence lengths, both layouts.

One kernel call per layer, with loops over directions and time in C: code size does not depend on the length. The
state lies in Y_h (and Y_c), or in a temporary where the model does not ask for them: it is set to the initial
state first, and the kernel advances it. Weights, sequence_lens and the initial state may be constants or computed
at run time. A sequence of length 0 ends with the state 0, as onnxruntime has it.
With attr `stateful` (pass stateful) the state is kept in the arena between inferences instead.
Float: sums run over bias, input, state in index order, and sigmoid is 1 / (1 + exp(-x)) by libm; onnxruntime sums in
another order and approximates exp and tanh: 1e-5 of the largest output over 100 steps, growing with the length where
the recurrence does not contract. Source: ONNX LSTM-22, GRU-22, RNN-22.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from glowc.graph.attrs import Attr, Float, FloatList, Int, Str, StrList
from glowc.graph.graph import Node
from glowc.graph.types import TensorType
from glowc.ops.base import LowerCtx, MaybeTypes, OpDef, OpError, Ref, Types
from glowc.ops.copy import emit_fill
from glowc.ops.derived import derived
from glowc.ops.recurrent_cell import Cell, fold_bias
from glowc.ops.recurrent_kernels import cell_params, scratch_elements
from glowc.ops.recurrent_spec import C0, DIRECTIONS, GATES, H0, LENS, B, P, R, Shape, W, X, cell_of, kind_of, shape_of
from glowc.ops.strided import emit_copy, whole


def infer(node: Node, in_types: MaybeTypes) -> Types:
    """Y, Y_h and, of LSTM, Y_c; also those that the node leaves out."""
    shape, x = shape_of(node, in_types), in_types[X]
    assert x is not None
    cell_of(node)
    state = TensorType(shape.state, x.dtype)
    return (TensorType(shape.y, x.dtype), state, *((state,) if kind_of(node) == "lstm" else ()))


def folded_bias(cell: Cell, shape: Shape, b: np.ndarray | None, dtype: np.dtype[np.generic]) -> np.ndarray:
    """Return the biases as the kernels take them; zeros when there are none."""
    given = np.zeros((shape.dirs, 2 * GATES[cell.kind] * shape.hidden), dtype) if b is None else b
    return fold_bias(cell.kind, given, cell.linear_before_reset)


def lower(node: Node, ctx: LowerCtx) -> None:
    """Emit the initial state and one kernel call."""
    shape = shape_of(node, tuple(ctx.type(name) if name else None for name in node.inputs))
    cell, dtype = cell_of(node), ctx.type(node.inputs[X]).dtype
    if dtype.bits not in (32, 64):
        raise OpError(f"no kernel for {dtype.value}")
    weights = {"w": ctx.read(node.inputs[W]), "r": ctx.read(node.inputs[R])}
    scratch = TensorType((scratch_elements(cell, shape.hidden),), dtype)
    emit_layer(node, ctx, shape, f"{cell.kind}_{dtype.value}", weights, scratch)


def emit_layer(
    node: Node, ctx: LowerCtx, shape: Shape, kernel: str, weights: Mapping[str, Ref], scratch: TensorType
) -> None:
    """Emit a kernel that has, besides `weights`, the operands of the float ones, and what comes before and after."""
    cell, x, stateful = cell_of(node), ctx.read(node.inputs[X]), node.int_("stateful") != 0
    dtype = x.type.dtype
    raw_bias = given(node, B) and ctx.const_value(node.inputs[B]) is None
    bias = None if raw_bias else folded_bias(cell, shape, constant(node, ctx, B, "B"), dtype.numpy)
    has_peephole = cell.kind == "lstm" and given(node, P)
    operands = {
        "in": x, **weights,
        "bias": ctx.read(node.inputs[B]) if bias is None else ctx.const(bias, f"{node.name}_bias"),
        **emit_states(node, ctx, shape, stateful), **_optional_operands(node, ctx),
        "scratch": ctx.temp(scratch, f"{node.name}_scratch"),
    }  # fmt: skip
    if cell.kind == "lstm":
        none = np.zeros(1, dtype.numpy)
        operands["peephole"] = ctx.read(node.inputs[P]) if has_peephole else ctx.const(none, f"{node.name}_peephole")
    params = cell_params(
        cell, shape, dtype, has_lens=given(node, LENS), has_y=_has_y(node, ctx), clears=not stateful,
        has_peephole=has_peephole, raw_bias=raw_bias,
    )  # fmt: skip
    ctx.emit(kernel, operands, params, macs=macs(shape, GATES[cell.kind]))
    emit_kept(node, ctx, operands, stateful)


def macs(shape: Shape, gates: int) -> int:
    """Multiply-accumulates of the products."""
    return shape.seq * shape.batch * shape.dirs * gates * shape.hidden * (shape.in_k + shape.hidden)


def _has_y(node: Node, ctx: LowerCtx) -> bool:
    """True when somebody reads the output of all steps."""
    return bool(node.outputs[0]) and ctx.is_used(node.outputs[0])


def given(node: Node, index: int) -> bool:
    """True when the node has that optional input."""
    return index < len(node.inputs) and bool(node.inputs[index])


def constant(node: Node, ctx: LowerCtx, index: int, name: str) -> np.ndarray | None:
    """Return a constant input, None when it is left out; OpError when it is computed at run time."""
    if not given(node, index):
        return None
    value = ctx.const_value(node.inputs[index])
    if value is None:
        raise OpError(f'{name} "{node.inputs[index]}" is computed at run time; weights of {node.op} must be constant')
    return value


def _optional_operands(node: Node, ctx: LowerCtx) -> dict[str, Ref]:
    """Return lens and y; one element stands for each that the node leaves out."""
    x = ctx.type(node.inputs[X])
    lens = ctx.read(node.inputs[LENS]) if given(node, LENS) else ctx.const(np.zeros(1, np.int32), f"{node.name}_none")
    y = ctx.write(node.outputs[0]) if _has_y(node, ctx) else ctx.temp(TensorType((1,), x.dtype), f"{node.name}_y")
    return {"lens": lens, "y": y}


def _roles(node: Node) -> tuple[tuple[str, int], ...]:
    """Return role and initial input of each state; the output of a state has the number of its role plus 1."""
    return (("h", H0), ("c", C0)) if kind_of(node) == "lstm" else (("h", H0),)


def emit_states(node: Node, ctx: LowerCtx, shape: Shape, stateful: bool) -> dict[str, Ref]:
    """Return the state operands, having emitted what sets them to the initial state."""
    x, result = ctx.type(node.inputs[X]), {}
    type_ = TensorType(shape.state, x.dtype)
    for number, (role, index) in enumerate(_roles(node)):
        if stateful:
            initial = constant(node, ctx, index, f"initial_{role}")
            start = np.zeros(type_.shape, x.dtype.numpy) if initial is None else initial
            result[role] = ctx.state(f"{node.name}_{role}", type_, start)
            continue
        out = node.outputs[number + 1] if number + 1 < len(node.outputs) else ""
        result[role] = ctx.write(out) if out else ctx.temp(type_, f"{node.name}_{role}")
        array = ctx.const_value(node.inputs[index]) if given(node, index) else np.zeros(1)
        if array is not None and not np.any(array):
            emit_fill(ctx, result[role], np.zeros((), x.dtype.numpy))
        else:
            emit_copy(ctx, ctx.read(node.inputs[index]), result[role], whole(type_.shape))
    return result


def emit_kept(node: Node, ctx: LowerCtx, operands: dict[str, Ref], stateful: bool) -> None:
    """Copy kept states to the outputs that the model has for them."""
    for number, (role, _) in enumerate(_roles(node)):
        out = node.outputs[number + 1] if number + 1 < len(node.outputs) else ""
        if stateful and out:
            emit_copy(ctx, operands[role], ctx.write(out), whole(ctx.type(out).shape))


COMMON: Mapping[str, Attr] = {
    "activations": StrList(()), "activation_alpha": FloatList(()), "activation_beta": FloatList(()),
    "clip": Float(math.inf), "direction": Str("forward", words=DIRECTIONS), "hidden_size": Int(optional=True),
    "batch_first": Int(0), "stateful": Int(0),
}  # fmt: skip
OPS = (
    OpDef("LSTM", infer, derived, lower, max_version=22,
          attrs={**COMMON, "input_forget": Int(0), "cell_clip": Float(math.inf)},
          doc="long short-term memory over time"),
    OpDef("GRU", infer, derived, lower, attrs={**COMMON, "linear_before_reset": Int(0)}, max_version=22,
          doc="gated recurrent unit over time"),
    OpDef("RNN", infer, derived, lower, attrs=COMMON, max_version=22, doc="simple recurrence over time"),
)  # fmt: skip
