"""CodedLSTM: an LSTM on int8 codes with int8 weights, gates and cells of 16 bits (coded_recurrent.py).

Gates (input, output, forget, cell) are sat16(rne(sum over x + sum over h)) in units of 2^-12;
i, o, f = sigmoid(gate) and g = tanh(gate) by table;
c = sat16((f c + ((i g + 2^3) >> 4) + 2^14) >> 15) in units of 2^-11, as TensorFlow Lite's cells have them;
h = clamp(rne(float32(o tanh(sat16(2 c))) * (2^-30 / sy)) + zy), which is also the result.

CodedGRU: a GRU on int8 codes with int8 weights, gates and states of 16 bits (coded_recurrent.py).

Gates (update, reset, new): z, r = sigmoid(sat16(rne(sum over x + sum over h))). With `linear_before_reset`
u = sat16(rne(sum over x)) and m = sat16(rne(sum over h)) of the new gate have units of 2^-11 and
n = tanh(sat16(2 (u + ((r m + 2^14) >> 15)))); without it n = tanh(sat16(rne(sum over x + sum over k))), k being the
codes of (r h + 2^14) >> 15. The state h = n + ((z (h - n) + 2^14) >> 15) has units of 2^-15; its codes, which the next
step multiplies and which are also the result, are clamp(rne(float32(h) * (2^-15 / sy)) + zy).
onnxruntime has no such kernel and computes in float: tests/ops/test_coded_recurrent.py measures the difference.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from glowc.graph.attrs import Int
from glowc.graph.fixed_softmax import looked_up
from glowc.graph.graph import Node
from glowc.graph.types import TensorType
from glowc.ops.coded_recurrent import (
    ATTRS,
    GATES,
    Cell,
    CodedLayer,
    coded_op,
    layer_params,
    rounded16,
    sat16,
    scaled_sums,
    state_codes,
)
from glowc.program.kernel import Arrays
from glowc.program.params import Printed

INPUT, OUTPUT, FORGET, CELL = range(GATES["lstm"])
_PRODUCT = 2.0**-30
NEW_UNIT = 2.0**-11
_STATE_UNIT = 2.0**-15
CELL_UNITS = {"lstm": 2.0**-11, "gru": _STATE_UNIT}
"""Of cells of an LSTM, of states of a GRU."""
_HALF = 1 << 14


def _lstm_params(node: Node, x: TensorType, y: TensorType) -> CodedLayer:
    return layer_params(node, x, y, "lstm", _PRODUCT)


def lstm_codes(p: CodedLayer, a: Arrays, x: np.ndarray, h: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return the codes of a step x[B, I] after the state h[B, H], having advanced the cells c[B, H] in place."""
    sums = scaled_sums(a, "weights", x) + scaled_sums(a, "recurrent", h)
    gates = rounded16(sums).reshape(-1, GATES["lstm"], p.hidden)
    sigmoid, tanh = a["table"]
    i, o, f = (looked_up(gates[:, k], sigmoid) for k in (INPUT, OUTPUT, FORGET))
    fresh = (i * looked_up(gates[:, CELL], tanh) + 8) >> 4
    c[...] = sat16((f * c + fresh + (1 << 14)) >> 15)
    return state_codes(p, o * looked_up(sat16(2 * c), tanh))


_LSTM, _LSTM_KERNELS = coded_op(
    "CodedLSTM",
    Cell(
        "lstm", CodedLayer, _lstm_params, lstm_codes, "LSTM of int8 codes and weights with gates and cells of 16 bits"
    ),
    ATTRS,
)


@dataclass(frozen=True, slots=True)
class CodedGru(CodedLayer):
    """Of `gru_s8`."""

    linear_before_reset: Printed


def _gru_params(node: Node, x: TensorType, y: TensorType) -> CodedGru:
    layer = layer_params(node, x, y, "gru", _STATE_UNIT)
    return CodedGru(**asdict(layer), linear_before_reset=node.int_("linear_before_reset"))


def gru_codes(p: CodedGru, a: Arrays, x: np.ndarray, h: np.ndarray, state: np.ndarray) -> np.ndarray:
    """Return the codes of a step x[B, I] after those of h[B, H], having advanced the state[B, H] in place."""
    hidden, (sigmoid, tanh) = p.hidden, a["table"]
    own, past = scaled_sums(a, "weights", x), scaled_sums(a, "recurrent", h)
    gates = rounded16(own[:, : 2 * hidden] + past[:, : 2 * hidden])
    z, r = looked_up(gates[:, :hidden], sigmoid), looked_up(gates[:, hidden:], sigmoid)
    if p.linear_before_reset:
        past_new = rounded16(past[:, 2 * hidden :])
        new = sat16(2 * (rounded16(own[:, 2 * hidden :]) + ((r * past_new + _HALF) >> 15)))
    else:
        kept = state_codes(p, (r * state + _HALF) >> 15)
        new = rounded16((own + scaled_sums(a, "recurrent", kept))[:, 2 * hidden :])
    n = looked_up(new, tanh)
    state[...] = n + ((z * (state - n) + _HALF) >> 15)
    return state_codes(p, state)


_GRU, _GRU_KERNELS = coded_op(
    "CodedGRU",
    Cell("gru", CodedGru, _gru_params, gru_codes, "GRU of int8 codes and weights with gates and states of 16 bits"),
    {**ATTRS, "linear_before_reset": Int(0)},
)

KERNELS = (*_LSTM_KERNELS, *_GRU_KERNELS)
OPS = (_LSTM, _GRU)
