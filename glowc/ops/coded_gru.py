"""CodedGRU: a GRU on int8 codes with int8 weights, gates and states of 16 bits (coded_recurrent.py).

Gates (update, reset, new): z, r = sigmoid(sat16(rne(sum over x + sum over h))). With `linear_before_reset`
u = sat16(rne(sum over x)) and m = sat16(rne(sum over h)) of the new gate have units of 2^-11 and
n = tanh(sat16(2 (u + ((r m + 2^14) >> 15)))); without it n = tanh(sat16(rne(sum over x + sum over k))), k being the
codes of (r h + 2^14) >> 15. The state h = n + ((z (h - n) + 2^14) >> 15) has units of 2^-15; its codes, which the next
step multiplies and which are also the result, are clamp(rne(float32(h) * (2^-15 / sy)) + zy).
onnxruntime has no such kernel and computes in float: tests/ops/test_coded_recurrent.py measures the difference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowc.graph.attrs import Int
from glowc.graph.fixed_softmax16 import looked_up
from glowc.graph.graph import Node
from glowc.graph.types import TensorType
from glowc.ops.base import Call, LowerCtx, MaybeTypes, OpDef, Types
from glowc.ops.coded_recurrent import (
    ATTRS,
    OPERANDS,
    TEMPLATE,
    CodedLayer,
    arrays_of,
    emit_layer,
    infer_layer,
    layer_params,
    rounded16,
    run_layer,
    sat16,
    scaled_sums,
    state_codes,
)
from glowc.ops.strided import present
from glowc.program.kernel import Arrays, KernelDef
from glowc.program.params import Params, Printed

NEW_UNIT = 2.0**-11
_STATE_UNIT = 2.0**-15
_HALF = 1 << 14


@dataclass(frozen=True, slots=True)
class CodedGru(Params):
    """Of `gru_s8`."""

    layer: CodedLayer
    linear_before_reset: Printed


def infer(_: Node, in_types: MaybeTypes) -> Types:
    """One row of cells for each of the input and each direction."""
    return infer_layer(in_types, "gru")


def _params(node: Node, x: TensorType, y: TensorType) -> CodedGru:
    return CodedGru(layer_params(node, x, y, "gru", _STATE_UNIT), node.int_("linear_before_reset"))


def step_codes(p: CodedGru, a: Arrays, x: np.ndarray, h: np.ndarray, state: np.ndarray) -> np.ndarray:
    """Return the codes of a step x[B, I] after those of h[B, H], having advanced the state[B, H] in place."""
    hidden, (sigmoid, tanh) = p.layer.hidden, a["table"]
    own, past = scaled_sums(a, "weights", x), scaled_sums(a, "recurrent", h)
    gates = rounded16(own[:, : 2 * hidden] + past[:, : 2 * hidden])
    z, r = looked_up(gates[:, :hidden], sigmoid), looked_up(gates[:, hidden:], sigmoid)
    if p.linear_before_reset:
        past_new = rounded16(past[:, 2 * hidden :])
        new = sat16(2 * (rounded16(own[:, 2 * hidden :]) + ((r * past_new + _HALF) >> 15)))
    else:
        kept = state_codes(p.layer, (r * state + _HALF) >> 15)
        new = rounded16((own + scaled_sums(a, "recurrent", kept))[:, 2 * hidden :])
    n = looked_up(new, tanh)
    state[...] = n + ((z * (state - n) + _HALF) >> 15)
    return state_codes(p.layer, state)


def _run(p: CodedGru, a: Arrays) -> np.ndarray:
    return run_layer(p.layer, a, lambda part, x, h, state: step_codes(p, part, x, h, state))


def reference(call: Call) -> tuple[np.ndarray, ...]:
    """Evaluate all steps."""
    x = present(call.in_types[:1])[0]
    return (_run(_params(call.node, x, call.out_types[0]), arrays_of(call)),)


def lower(node: Node, ctx: LowerCtx) -> None:
    """Emit one `gru_s8`."""
    emit_layer(node, ctx, "gru_s8", lambda x, y: _params(node, x, y))


def _interpret(a: Arrays, p: CodedGru) -> None:
    a["out"].reshape(-1)[:] = _run(p, a).reshape(-1)


KERNELS = (
    KernelDef(
        "gru_s8", OPERANDS, CodedGru, _interpret, kind="s8", template=TEMPLATE,
        doc="GRU of int8 codes and weights with gates and states of 16 bits",
    ),
)  # fmt: skip

OP = OpDef(
    "CodedGRU", infer, reference, lower, attrs={**ATTRS, "linear_before_reset": Int(0)},
    doc="GRU of codes with int8 weights (internal)",
)  # fmt: skip
