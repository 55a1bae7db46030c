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

INPUT, OUTPUT, FORGET, CELL = range(GATES["lstm"])
_PRODUCT = 2.0**-30


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


OP, _KERNEL = coded_op(
    "CodedLSTM",
    Cell("lstm", CodedLayer, _params, step_codes, "LSTM of int8 codes and weights with gates and cells of 16 bits"),
    ATTRS,
)
KERNELS = (_KERNEL,)
