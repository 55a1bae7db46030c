"""What classical models end in: transformed scores, and the label of the best one.

Source: ai.onnx.ml of ONNX, and onnxruntime's core/providers/cpu/ml/ml_common.h where ONNX leaves it open. A label that
is a text becomes the number of its class, int64.
"""

from __future__ import annotations

import numpy as np

from glowc.frontend.chain import Chain
from glowc.frontend.onnx_model import OnnxNode
from glowc.frontend.problems import NodeError

ML = "ai.onnx.ml"
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


def floats_of(node: OnnxNode, key: str) -> np.ndarray:
    """Return an attribute that is a list of floats, or the tensor `key`_as_tensor, as a vector; empty when absent."""
    tensor = node.attrs.get(f"{key}_as_tensor")
    return np.asarray(node.attrs.get(key, ()), np.float32).reshape(-1) if tensor is None else tensor.reshape(-1)


def rows_of(parts: Chain, x: str, kind: type[np.generic] = np.float32) -> str:
    """Return an input as [rows, features] of a kind."""
    type_ = parts.b.type(x)
    if type_.rank == 1:
        x = parts.shaped(x, (1, type_.shape[0]))
    elif type_.rank != 2:
        raise NodeError(f"{type_} is no table of features")
    wanted = {np.float32: 1, np.float64: 11}[kind]
    return x if type_.dtype.numpy == kind else parts.add("Cast", x, to=wanted)


def labels_of(node: OnnxNode) -> np.ndarray:
    """Return the labels of the classes, int64; the numbers of texts."""
    names = node.attrs.get("classlabels_strings") or ()
    values = node.attrs.get("classlabels_ints", node.attrs.get("classlabels_int64s")) or ()
    return np.arange(len(names), dtype=np.int64) if names else np.asarray(values, np.int64).reshape(-1)


def label(parts: Chain, index: str, labels: np.ndarray) -> None:
    """Add the first output of the node: the label of each row's class."""
    out = parts.node.outputs[0]
    if not out:
        return
    if names := parts.node.attrs.get("classlabels_strings"):
        parts.b.texts[out] = tuple(names)
    if np.array_equal(labels, np.arange(labels.size)):
        parts.add("Identity", index, out=out)
    else:
        parts.add("Gather", parts.const(labels), index, out=out, axis=0)


def best(parts: Chain, scores: str) -> str:
    """Return the number of each row's greatest score, the first of equal ones."""
    return parts.add("ArgMax", scores, axis=1, keepdims=0)


def above(parts: Chain, score: str, limit: float, kind: type[np.generic] = np.float32) -> str:
    """Return int64: 1 for rows of score[N, 1] above a limit."""
    flags = parts.add("Cast", parts.add("Greater", score, parts.const(np.asarray(limit, kind))), to=7)
    return parts.shaped(flags, (-1,))


def check_transform(how: str) -> None:
    """Raise NodeError for what is no transform."""
    if how not in TRANSFORMS:
        raise NodeError(f"post_transform {how!r}: none of {', '.join(TRANSFORMS)}")


def transformed(parts: Chain, scores: str, how: str, out: str = "") -> str:
    """Add the transform of scores[N, K]; the result is `out` or a new value."""
    if how == "NONE":
        return parts.add("Identity", scores, out=out)
    if how == "LOGISTIC":
        return parts.add("Sigmoid", scores, out=out)
    if how == "SOFTMAX":
        return parts.add("Softmax", scores, out=out, axis=-1)
    if how == "SOFTMAX_ZERO":
        return _softmax_zero(parts, scores, out)
    check_transform(how)
    return _probit(parts, scores, out)


def _softmax_zero(parts: Chain, s: str, out: str) -> str:
    """Softmax of what is not 0; the rest keeps, times exp(-max), what it was."""
    most = parts.add("ReduceMax", s, axes=(-1,), keepdims=1)
    counts = parts.add("Greater", parts.add("Abs", s), parts.floats(1e-7))
    e = parts.add("Exp", parts.add("Sub", s, most))
    total = parts.add("ReduceSum", parts.add("Where", counts, e, parts.floats(0)), parts.ints(-1), keepdims=1)
    small = parts.add("Mul", s, parts.add("Exp", parts.add("Neg", most)))
    return parts.add("Div", parts.add("Where", counts, e, small), total, out=out)


def _probit(parts: Chain, s: str, out: str) -> str:
    """sqrt(2) times the inverse error function of 2 s - 1, by Winitzki's formula."""
    x = parts.add("Sub", parts.add("Mul", s, parts.floats(2)), parts.floats(1))
    one = parts.floats(1)
    log = parts.add("Log", parts.add("Mul", parts.add("Sub", one, x), parts.add("Add", one, x)))
    v = parts.add("Add", parts.add("Mul", log, parts.floats(0.5)), parts.floats(2 / (3.14159 * 0.147)))
    square = parts.add("Sub", parts.add("Mul", v, v), parts.add("Mul", log, parts.floats(1 / 0.147)))
    root = parts.add("Sqrt", parts.add("Sub", parts.add("Sqrt", square), v))
    sign = parts.add("Where", parts.add("Less", x, parts.floats(0)), parts.floats(-(2**0.5)), parts.floats(2**0.5))
    return parts.add("Mul", sign, root, out=out)


def two_classes(parts: Chain, score: str, how: str, out: str, *, shares: bool) -> None:
    """Add the scores of both classes of one score[N, 1], as onnxruntime makes them.

    LOGISTIC of -s and s where asked for; otherwise 1 - s and s of `shares`, else -s and s.
    """
    if how == "PROBIT":
        raise NodeError("post_transform PROBIT of a single score gives no second one")
    check_transform(how)
    first = parts.add("Sub", parts.floats(1), score) if shares and how != "LOGISTIC" else parts.add("Neg", score)
    both = parts.add("Concat", first, score, axis=1)
    transformed(parts, both, how if how == "LOGISTIC" else "NONE", out)
