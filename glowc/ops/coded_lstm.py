"""CodedLSTM: an LSTM on int8 codes with int8 weights, gates and cells of 16 bits (coded_recurrent.py).

Gates (input, output, forget, cell) are sat16(rne(sum over x + sum over h)) in units of 2^-12;
i, o, f = sigmoid(gate) and g = tanh(gate) by table;
c = sat16((f c + ((i g + 2^3) >> 4) + 2^14) >> 15) in units of 2^-11, as TensorFlow Lite's cells have them;
h = clamp(rne(float32(o tanh(sat16(2 c))) * (2^-30 / sy)) + zy), which is also the result.
onnxruntime has no such kernel and computes in float: tests/ops/test_coded_recurrent.py measures the difference.
"""

from __future__ import annotations

import numpy as np

from glowc.graph.fixed_softmax16 import looked_up
from glowc.graph.graph import Node
from glowc.graph.types import TensorType
from glowc.ops.base import Call, LowerCtx, MaybeTypes, OpDef, Types
from glowc.ops.coded_recurrent import (
    ATTRS,
    GATES,
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

INPUT, OUTPUT, FORGET, CELL = range(GATES["lstm"])
_PRODUCT = 2.0**-30


def infer(_: Node, in_types: MaybeTypes) -> Types:
    """One row of cells for each of the input and each direction."""
    return infer_layer(in_types, "lstm")


def _params(node: Node, x: TensorType, y: TensorType) -> CodedLayer:
    return layer_params(node, x, y, "lstm", _PRODUCT)


def step_codes(p: CodedLayer, a: Arrays, x: np.ndarray, h: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return the codes of a step x[B, I] after the state h[B, H], having advanced the cells c[B, H] in place."""
    sums = scaled_sums(a, "weights", x) + scaled_sums(a, "recurrent", h)
    gates = rounded16(sums).reshape(-1, GATES["lstm"], p.hidden)
    sigmoid, tanh = a["table"]
    i, o, f = (looked_up(gates[:, k], sigmoid) for k in (INPUT, OUTPUT, FORGET))
    fresh = (i * looked_up(gates[:, CELL], tanh) + 8) >> 4
    c[...] = sat16((f * c + fresh + (1 << 14)) >> 15)
    return state_codes(p, o * looked_up(sat16(2 * c), tanh))


def _run(p: CodedLayer, a: Arrays) -> np.ndarray:
    return run_layer(p, a, lambda part, x, h, c: step_codes(p, part, x, h, c))


def reference(call: Call) -> tuple[np.ndarray, ...]:
    """Evaluate all steps."""
    x = present(call.in_types[:1])[0]
    return (_run(_params(call.node, x, call.out_types[0]), arrays_of(call)),)


def lower(node: Node, ctx: LowerCtx) -> None:
    """Emit one `lstm_s8`."""
    emit_layer(node, ctx, "lstm_s8", lambda x, y: _params(node, x, y))


def _interpret(a: Arrays, p: CodedLayer) -> None:
    a["out"].reshape(-1)[:] = _run(p, a).reshape(-1)


KERNELS = (
    KernelDef(
        "lstm_s8", OPERANDS, CodedLayer, _interpret, kind="s8", template=TEMPLATE,
        doc="LSTM of int8 codes and weights with gates and cells of 16 bits",
    ),
)  # fmt: skip

OP = OpDef("CodedLSTM", infer, reference, lower, attrs=ATTRS, doc="LSTM of codes with int8 weights (internal)")
