"""Support vectors of ai.onnx.ml: SVMRegressor and SVMClassifier as products with the vectors.

Kernels of x and vector v: LINEAR x.v, POLY (gamma x.v + coef0)^degree, RBF exp(-gamma |x - v|^2), SIGMOID
tanh(gamma x.v + coef0). |x - v|^2 is |x|^2 + |v|^2 - 2 x.v of x and v less the mean of all vectors:
no tensor of all differences is needed.
Source: ai.onnx.ml of ONNX; onnxruntime's core/providers/cpu/ml/svmclassifier.cc.
"""

from __future__ import annotations

import numpy as np

from glowc.frontend.builder import Builder
from glowc.frontend.chain import Chain, Rewrites
from glowc.frontend.ml_scores import ML, above, best, floats_of, label, labels_of, rows_of, transformed, two_classes
from glowc.frontend.onnx_model import OnnxNode
from glowc.frontend.problems import NodeError


def _kernel(parts: Chain, x: str, vectors: np.ndarray, how: str) -> str:
    """Return the kernel of x[N, F] with vectors[V, F], [N, V]."""
    node = parts.node
    gamma, coef0, degree = (*floats_of(node, "kernel_params").tolist(), 0.0, 0.0, 3.0)[:3]
    if how == "RBF":
        mean = vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
        near = vectors.astype(np.float64) - mean
        x = parts.add("Sub", x, parts.const(mean))
        bias = parts.floats(-gamma * np.square(near).sum(axis=1))
        inner = parts.add("Gemm", x, parts.floats(2 * gamma * near), bias, transB=1)
        square = parts.add("ReduceSumSquare", x, axes=(1,), keepdims=1)
        return parts.add("Exp", parts.add("Sub", inner, parts.add("Mul", square, parts.floats(gamma))))
    product = parts.add("MatMul", x, parts.const(np.ascontiguousarray(vectors.T)))
    if how == "LINEAR":
        return product
    inner = parts.add("Add", parts.add("Mul", product, parts.floats(gamma)), parts.floats(coef0))
    if how == "SIGMOID":
        return parts.add("Tanh", inner)
    if how == "POLY":
        return parts.add("Pow", inner, parts.floats(degree))
    raise NodeError(f"kernel_type {how!r}: none of LINEAR, POLY, RBF, SIGMOID")


def _vectors(node: OnnxNode, count: int, features: int) -> np.ndarray:
    vectors = floats_of(node, "support_vectors").astype(np.float32)
    if vectors.size != count * features:
        raise NodeError(f"{vectors.size} numbers of {count} support vectors of {features} features")
    return vectors.reshape(count, features)


def regressor(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """The sum of coefficients times kernels, and rho; 1 or -1 by its sign for one class."""
    parts, features = Chain(node, b), b.type(node.inputs[0]).shape[-1]
    x, count = rows_of(parts, node.inputs[0]), node.int_("n_supports", 0)
    coefficients, rho = floats_of(node, "coefficients").astype(np.float32), floats_of(node, "rho").astype(np.float32)
    if coefficients.size != (count or features) or rho.size != 1:
        raise NodeError(f"{coefficients.size} coefficients and {rho.size} rho for {count} support vectors")
    how = node.str_("kernel_type", "LINEAR")
    terms = _kernel(parts, x, _vectors(node, count, features), how) if count else x
    weights = parts.const(coefficients.reshape(-1, 1))
    if node.int_("one_class", 0):
        score = parts.add("Gemm", terms, weights, parts.const(rho))
        inside = parts.add("Greater", score, parts.floats(0))
        parts.add("Where", inside, parts.floats(1), parts.floats(-1), out=parts.out)
        return parts.nodes
    parts.add("Gemm", terms, weights, parts.const(rho), out=parts.out)
    return parts.nodes


def classifier(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """Votes of the pairs of classes, or one row of coefficients for each class where there are no vectors."""
    parts, labels = Chain(node, b), labels_of(node)
    counts, x = node.ints("vectors_per_class") or (), rows_of(parts, node.inputs[0])
    how = node.str_("post_transform", "NONE")
    if not sum(counts):
        _linear(parts, x, labels, how)
        return parts.nodes
    if len(counts) != labels.size or labels.size < 2:
        raise NodeError(f"{labels.size} class labels, vectors of {len(counts)} classes")
    if floats_of(node, "prob_a").size:
        hint = "fit with probability=False; CalibratedClassifierCV has probabilities by other means"
        raise NodeError("probabilities, which take an iteration without a known end, are not supported", hint)
    pairs = _pairs(parts, x, counts)
    if labels.size == 2:
        _two(parts, pairs, labels, how)
    else:
        label(parts, _voted(parts, pairs, labels.size), labels)
        transformed(parts, pairs, how, node.outputs[1])
    return parts.nodes


def _linear(parts: Chain, x: str, labels: np.ndarray, how: str) -> None:
    node, features = parts.node, parts.b.type(parts.node.inputs[0]).shape[-1]
    weights, rho = floats_of(node, "coefficients").astype(np.float32), floats_of(node, "rho").astype(np.float32)
    if not rho.size or weights.size != labels.size * features:
        raise NodeError(f"{weights.size} coefficients for {labels.size} classes of {features} features")
    scores = parts.add("Gemm", x, parts.const(weights.reshape(-1, features)), parts.const(rho[:1]), transB=1)
    label(parts, best(parts, scores), labels)
    transformed(parts, scores, how, node.outputs[1])


def _pairs(parts: Chain, x: str, counts: tuple[int, ...]) -> str:
    """Return the decision of each pair of classes, [N, pairs]: a product of the kernels with a sparse matrix."""
    node, total, classes = parts.node, sum(counts), len(counts)
    features = parts.b.type(node.inputs[0]).shape[-1]
    coefficients, rho = floats_of(node, "coefficients").astype(np.float32), floats_of(node, "rho").astype(np.float32)
    number = classes * (classes - 1) // 2
    if min(counts) < 0 or coefficients.size < (classes - 1) * total or rho.size < number:
        raise NodeError(f"{coefficients.size} coefficients and {rho.size} rho for {classes} classes, {total} vectors")
    rows = coefficients[: (classes - 1) * total].reshape(classes - 1, total)
    ends = np.cumsum([0, *counts])
    matrix = np.zeros((total, number), np.float32)
    for column, (i, j) in enumerate(_of_two(classes)):
        for one, row in ((i, j - 1), (j, i)):
            part = slice(ends[one], ends[one + 1])
            matrix[part, column] = rows[row, part]
    kernels = _kernel(parts, x, _vectors(node, total, features), node.str_("kernel_type", "LINEAR"))
    return parts.add("Gemm", kernels, parts.const(matrix), parts.const(rho[:number]))


def _of_two(classes: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(classes) for j in range(i + 1, classes)]


def _voted(parts: Chain, pairs: str, classes: int) -> str:
    """Return the class with most votes, the first of equal ones."""
    votes = np.zeros((len(_of_two(classes)), classes), np.float32)
    lost = np.zeros(classes, np.float32)
    for row, (i, j) in enumerate(_of_two(classes)):
        votes[row, i], votes[row, j] = 1, -1
        lost[j] += 1
    won = parts.add("Cast", parts.add("Greater", pairs, parts.floats(0)), to=1)
    return best(parts, parts.add("Gemm", won, parts.const(votes), parts.const(lost)))


def _two(parts: Chain, pairs: str, labels: np.ndarray, how: str) -> None:
    """The label by votes; both scores of the one decision."""
    node = parts.node
    first = above(parts, pairs, 0.0)
    index = parts.add("Sub", parts.ints(1), first)
    label(parts, index, labels)
    two_classes(parts, pairs, how, node.outputs[1], shares=how != "NONE")


REWRITES: Rewrites = {(ML, "SVMRegressor"): regressor, (ML, "SVMClassifier"): classifier}
