"""Classical models of ai.onnx.ml but trees and support vectors, as ONNX's own operators.

Scaler, Normalizer, Binarizer, Imputer, ArrayFeatureExtractor, FeatureVectorizer, LabelEncoder, LinearClassifier,
LinearRegressor, ZipMap (a view: the scores as a tensor). Where a result would be a text it is the number of that text
among the texts that the node names. Source: ai.onnx.ml of ONNX; onnxruntime's core/providers/cpu/ml where it is open.
"""

from __future__ import annotations

import numpy as np

from glowc.frontend.builder import Builder
from glowc.frontend.chain import Chain, Rewrites
from glowc.frontend.ml_scores import (
    ML,
    above,
    best,
    floats_of,
    label,
    labels_of,
    rows_of,
    transformed,
    two_classes,
)
from glowc.frontend.onnx_model import OnnxNode
from glowc.frontend.problems import NodeError

_NORMS = {"MAX": "ReduceMax", "L1": "ReduceL1", "L2": "ReduceL2"}


def _float(parts: Chain) -> str:
    """Return the input as float32."""
    x = parts.node.inputs[0]
    return x if parts.b.type(x).dtype.numpy == np.float32 else parts.add("Cast", x, to=1)


def scaler(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """(x - offset) * scale, one of each or one for each feature."""
    parts = Chain(node, b)
    offset, scale = (floats_of(node, key).astype(np.float32) for key in ("offset", "scale"))
    last = b.type(node.inputs[0]).shape[-1:]
    if not scale.size or any(v.shape not in ((1,), last) for v in (offset, scale)):
        raise NodeError(f"{offset.size} offsets and {scale.size} scales for {b.type(node.inputs[0])}")
    parts.add("Mul", parts.add("Sub", _float(parts), parts.const(offset)), parts.const(scale), out=parts.out)
    return parts.nodes


def normalizer(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """Rows divided by their norm; a row whose norm is 0 stays as it is."""
    parts, how = Chain(node, b), node.str_("norm", "MAX")
    if how not in _NORMS:
        raise NodeError(f"norm {how!r}: none of {', '.join(_NORMS)}")
    x = _float(parts)
    norm = parts.add(_NORMS[how], x, axes=(-1,), keepdims=1)
    zero = parts.add("Equal", norm, parts.floats(0))
    parts.add("Div", x, parts.add("Where", zero, parts.floats(1), norm), out=parts.out)
    return parts.nodes


def binarizer(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """1 above the threshold, else 0."""
    parts, x = Chain(node, b), node.inputs[0]
    kind = b.type(x).dtype.numpy
    limit = parts.const(np.asarray(node.float_("threshold", 0.0), kind))
    flags = parts.add("Greater", x, limit)
    parts.add("Where", flags, parts.const(np.ones((), kind)), parts.const(np.zeros((), kind)), out=parts.out)
    return parts.nodes


def imputer(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """Values of features in place of what is missing: NaN, or a number."""
    parts, x = Chain(node, b), node.inputs[0]
    kind = b.type(x).dtype.numpy
    whole = kind.kind == "i"
    given = np.asarray(node.attrs.get("imputed_value_int64s" if whole else "imputed_value_floats") or (), kind)
    replaced = node.int_("replaced_value_int64", 0) if whole else node.float_("replaced_value_float", 0.0)
    if given.shape not in ((1,), b.type(x).shape[-1:]):
        raise NodeError(f"{given.size} imputed values for {b.type(x)}")
    missing = (
        parts.add("IsNaN", x)
        if replaced != replaced
        else parts.add("Equal", x, parts.const(np.asarray(replaced, kind)))
    )
    parts.add("Where", missing, parts.const(given), x, out=parts.out)
    return parts.nodes


def array_feature_extractor(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """Elements of the last axis at the places of the second input; of texts, their places."""
    parts, (x, places) = Chain(node, b), node.inputs[:2]
    flat = parts.shaped(places, (-1,))
    if x in b.exotic:
        texts = b.exotic[x]
        if texts.ndim > 1 and texts.size != texts.shape[-1]:
            raise NodeError("texts in several rows")
        b.texts[parts.out] = tuple(map(str, texts.reshape(-1)))
        parts.add("Reshape", flat, parts.ints(1, -1), out=parts.out)
        return parts.nodes
    rank = b.type(x).rank
    if rank == 1:
        x = parts.shaped(x, (1, -1))
    parts.add("Gather", x, flat, out=parts.out, axis=max(rank - 1, 1))
    return parts.nodes


def feature_vectorizer(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """Inputs next to each other, as floats; each cut or filled with zeros to its dimension."""
    parts, sizes = Chain(node, b), node.ints("inputdimensions") or ()
    if len(sizes) != len(node.inputs):
        raise NodeError(f"inputdimensions has {len(sizes)} entries for {len(node.inputs)} inputs")
    columns: list[str] = []
    for name, size in zip(node.inputs, sizes, strict=True):
        x, have = rows_of(parts, name), b.type(name).shape[-1]
        if have > size:
            x = parts.add("Slice", x, parts.ints(0), parts.ints(size), parts.ints(1))
        elif have < size:
            x = parts.add("Pad", x, parts.ints(0, 0, 0, size - have))
        columns.append(x)
    parts.add("Concat", *columns, out=parts.out, axis=1)
    return parts.nodes


_KINDS = {"int64s": np.int64, "floats": np.float32, "strings": np.object_}


def _table(node: OnnxNode, what: str) -> np.ndarray:
    """Return keys or values of a LabelEncoder."""
    for kind, dtype in _KINDS.items():
        if node.attrs.get(f"{what}_{kind}"):
            return np.asarray(node.attrs[f"{what}_{kind}"], dtype)
    tensor = node.attrs.get(f"{what}_tensor")
    if tensor is None:
        raise NodeError(f"no {what}_*: tables of version 1 map texts")
    return np.asarray(tensor).reshape(-1)


def label_encoder(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """The value of the key that x equals, else the default; of texts, their numbers, -1 for one not in the table."""
    parts, x = Chain(node, b), node.inputs[0]
    keys, values = _table(node, "keys"), _table(node, "values")
    if keys.dtype == np.object_:
        raise NodeError("it takes texts", "give the model numbers: text is for the firmware")
    if keys.size != values.size:
        raise NodeError(f"{keys.size} keys and {values.size} values")
    other: object = _default(node, values)
    if values.dtype == np.object_:
        names = list(dict.fromkeys(values.tolist()))
        b.texts[parts.out] = tuple(map(str, names))
        values = np.asarray([names.index(v) for v in values], np.int64)
        other = names.index(other) if other in names else -1
    kind = b.type(x).dtype.numpy
    same = parts.add("Equal", parts.add("Unsqueeze", x, parts.ints(-1)), parts.const(keys.astype(kind)))
    if kind.kind == "f" and np.isnan(keys.astype(kind)).any():
        nan = parts.const(np.isnan(keys.astype(kind)))
        same = parts.add(
            "Or", same, parts.add("And", parts.add("IsNaN", parts.add("Unsqueeze", x, parts.ints(-1))), nan)
        )
    found = parts.add("ReduceMax", parts.add("Cast", same, to=6), axes=(-1,), keepdims=0)
    place = parts.add("ArgMax", parts.add("Cast", same, to=6), axis=-1, keepdims=0)
    value = parts.add("Gather", parts.const(values), place, axis=0)
    parts.add(
        "Where", parts.add("Cast", found, to=9), value, parts.const(np.asarray(other, values.dtype)), out=parts.out
    )
    return parts.nodes


def _default(node: OnnxNode, values: np.ndarray) -> object:
    """Return what an unknown key becomes."""
    tensor = node.attrs.get("default_tensor")
    if tensor is not None:
        return np.asarray(tensor).reshape(-1)[0]
    if values.dtype == np.object_:
        return node.str_("default_string", "_Unused")
    return node.int_("default_int64", -1) if values.dtype.kind == "i" else node.float_("default_float", -0.0)


def zip_map(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """The scores as they are."""
    return [node.new("Identity", node.inputs[:1], node.outputs)]


def _linear(parts: Chain, rows: int) -> str:
    """Add x coefficients^T + intercepts, [N, rows]."""
    node, b = parts.node, parts.b
    coefficients = floats_of(node, "coefficients").astype(np.float32)
    intercepts = floats_of(node, "intercepts").astype(np.float32)
    features = b.type(node.inputs[0]).shape[-1]
    if rows < 1 or coefficients.size != rows * features or intercepts.size not in (0, rows):
        raise NodeError(f"{coefficients.size} coefficients, {intercepts.size} intercepts: {rows} rows of {features}")
    bias = intercepts if intercepts.size else np.zeros(rows, np.float32)
    weights = parts.const(coefficients.reshape(rows, features))
    return parts.add("Gemm", rows_of(parts, node.inputs[0]), weights, parts.const(bias), transB=1)


def linear_regressor(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """A row of targets, transformed."""
    parts, targets = Chain(node, b), node.int_("targets", 1)
    how = node.str_("post_transform", "NONE")
    transformed(parts, _linear(parts, targets), how if targets > 1 or how == "PROBIT" else "NONE", parts.out)
    return parts.nodes


def linear_classifier(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """The label of the greatest score, and the scores, transformed."""
    parts, labels, how = Chain(node, b), labels_of(node), node.str_("post_transform", "NONE")
    rows = (
        floats_of(node, "intercepts").size or floats_of(node, "coefficients").size // b.type(node.inputs[0]).shape[-1]
    )
    scores = _linear(parts, rows)
    if rows > 1:
        if labels.size != rows:
            raise NodeError(f"{labels.size} class labels for {rows} rows of coefficients")
        label(parts, best(parts, scores), labels)
        transformed(parts, scores, how, node.outputs[1])
        return parts.nodes
    index = above(parts, scores, 0.0)
    label(parts, index, labels if labels.size == 2 else np.asarray([0, 1], np.int64))
    if labels.size == 2:
        two_classes(parts, scores, how, node.outputs[1], shares=True)
    else:
        transformed(parts, scores, "NONE", node.outputs[1])
    return parts.nodes


REWRITES: Rewrites = {
    (ML, "Scaler"): scaler, (ML, "Normalizer"): normalizer, (ML, "Binarizer"): binarizer, (ML, "Imputer"): imputer,
    (ML, "ArrayFeatureExtractor"): array_feature_extractor, (ML, "FeatureVectorizer"): feature_vectorizer,
    (ML, "LabelEncoder"): label_encoder, (ML, "ZipMap"): zip_map, (ML, "LinearRegressor"): linear_regressor,
    (ML, "LinearClassifier"): linear_classifier,
}  # fmt: skip
