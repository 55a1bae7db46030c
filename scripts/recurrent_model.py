"""A keyword model of one LSTM or GRU: made-up words of 49 steps of 40 numbers, a classifier of its last states."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

STEPS, INPUTS, HIDDEN, WORDS = 49, 40, 64, 12
GATES = {"LSTM": 4, "GRU": 3}
_ANCHORS = 4  # through which a word passes


def words(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return x[count, T, 1, I] and the word of each, from 0 to 11."""
    anchors = np.random.default_rng(7).normal(0, 1.5, (WORDS, _ANCHORS, INPUTS))
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, WORDS, count)
    at = np.linspace(0, _ANCHORS - 1, STEPS)
    first = np.floor(at).astype(int).clip(0, _ANCHORS - 2)
    part = (at - first)[:, None]
    x = np.stack([anchors[k][first] * (1 - part) + anchors[k][first + 1] * part for k in labels])
    x = x * rng.uniform(0.7, 1.2, (count, 1, 1)) + rng.normal(0, 0.5, x.shape)
    return x.astype(np.float32)[:, :, None, :], labels


def recurrent_model(op: str) -> onnx.ModelProto:
    """Return the float model x[49, 1, 40] -> probabilities[1, 12] of an LSTM or GRU.

    It needs onnxruntime to fit the classifier.
    """
    import onnxruntime

    rows = GATES[op] * HIDDEN
    rng, reach = np.random.default_rng(0), 1.5 / np.sqrt(HIDDEN)
    consts = {
        "W": rng.uniform(-reach, reach, (1, rows, INPUTS)),
        "R": rng.uniform(-reach, reach, (1, rows, HIDDEN)),
        "B": rng.uniform(-reach, reach, (1, 2 * rows)),
        "weights": np.zeros((HIDDEN, WORDS)), "bias": np.zeros(WORDS),
    }  # fmt: skip
    if op == "LSTM":
        consts["B"][0, 2 * HIDDEN : 3 * HIDDEN] += 1  # of the forget gates, as usual
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(_model(op, consts, "states").SerializeToString(), options)
    x, labels = words(240, 1)
    states = np.stack([session.run(["states"], {"x": sample})[0][0] for sample in x]).astype(np.float64)
    given = np.concatenate((states, np.ones((len(states), 1))), axis=1)
    wanted = 8.0 * (labels[:, None] == np.arange(WORDS)) - 4.0
    fitted = np.linalg.solve(given.T @ given + 0.1 * np.eye(given.shape[1]), given.T @ wanted)
    return _model(op, {**consts, "weights": fitted[:-1], "bias": fitted[-1]}, "y")


def _model(op: str, consts: dict[str, np.ndarray], output: str) -> onnx.ModelProto:
    held = [numpy_helper.from_array(a.astype(np.float32), n) for n, a in consts.items()]
    held.append(numpy_helper.from_array(np.array([1, HIDDEN], np.int64), "flat"))
    more = {"linear_before_reset": 1} if op == "GRU" else {}
    nodes = [
        helper.make_node(op, ["x", "W", "R", "B"], ["all", "last"], name=op.lower(), hidden_size=HIDDEN, **more),
        helper.make_node("Reshape", ["last", "flat"], ["states"], name="flatten"),
        helper.make_node("Gemm", ["states", "weights", "bias"], ["logits"], name="classifier"),
        helper.make_node("Softmax", ["logits"], ["y"], name="softmax"),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [STEPS, 1, INPUTS])
    y = helper.make_tensor_value_info(output, TensorProto.FLOAT, [1, HIDDEN if output == "states" else WORDS])
    graph = helper.make_graph(nodes, f"{op.lower()}_words", [x], [y], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
