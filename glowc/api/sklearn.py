"""Estimators of scikit-learn as ONNX models, by skl2onnx (docs/START_SKLEARN.md)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from glowc.errors import InputError, MissingToolError, ModelError

_OPSET = {"": 18, "ai.onnx.ml": 3}
_KINDS = {"float32": np.float32, "int8": np.int8, "uint8": np.uint8, "int16": np.int16}


def from_sklearn(estimator: Any, *, features: str = "float32", data: np.ndarray | None = None) -> onnx.ModelProto:
    """Return a fitted estimator or pipeline as an ONNX model: a row of features in, what it predicts out.

    A classifier gives the label (int64; of labels that are texts, the number of the class in `classes_`) and the
    probabilities or scores as a tensor, where it has them. `features` is the kind of the numbers that firmware has:
    float32, int8, uint8 or int16. Integers are the features' values as they are; with `data`, samples [n, features],
    they are codes over the range of each feature: value = (code - zero point) * scale, both in the model's metadata.
    Trees then compare integers. Raises MissingToolError without skl2onnx, InputError for what is no fitted estimator or
    no such data, ModelError for one that skl2onnx cannot convert.
    """
    convert = _converter()
    if features not in _KINDS:
        raise InputError(f"features {features!r}", hint=f"one of {', '.join(_KINDS)}")
    count = getattr(estimator, "n_features_in_", None)
    if not isinstance(count, int):
        raise InputError(f"{type(estimator).__name__} is no fitted estimator", hint="call fit(X, y) first")
    if data is not None and (features == "float32" or np.ndim(data) != 2 or np.shape(data)[1] != count):
        raise InputError(f"data of shape {list(np.shape(data))} for {features} of {count} features")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model: onnx.ModelProto = convert(estimator, np.zeros((1, count), np.float32), target_opset=_OPSET)
    except Exception as error:  # converters raise what they like
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ModelError(f"skl2onnx cannot convert {type(estimator).__name__}: {first}") from error
    _without_maps(model.graph)
    if features != "float32":
        _from_integers(model, np.dtype(_KINDS[features]), data)
    return model


def _converter() -> Callable[..., onnx.ModelProto]:
    try:
        from skl2onnx import to_onnx
    except ImportError as error:
        raise MissingToolError("skl2onnx is not installed", hint="pip install 'glowc[sklearn]'") from error
    found: Callable[..., onnx.ModelProto] = to_onnx
    return found


def _without_maps(graph: onnx.GraphProto) -> None:
    """Let outputs that are lists of dictionaries be the tensors that they are made of."""
    for node in [n for n in graph.node if n.op_type == "ZipMap"]:
        graph.node.remove(node)
        for output in (o for o in graph.output if o.name == node.output[0]):
            classes = next(len(a.ints) or len(a.strings) for a in node.attribute)
            output.CopyFrom(helper.make_tensor_value_info(output.name, TensorProto.FLOAT, [None, classes]))
        _rename(graph, node.input[0], node.output[0])


def _rename(graph: onnx.GraphProto, old: str, new: str) -> None:
    for node in graph.node:
        for names in (node.input, node.output):
            for i, value in enumerate(names):
                if value == old:
                    names[i] = new


def _from_integers(model: onnx.ModelProto, kind: np.dtype[Any], data: np.ndarray | None) -> None:
    """Let the model take integers: values, or codes over the range of each column of `data`."""
    graph, port = model.graph, model.graph.input[0]
    real, wide = f"{port.name}_real", f"{port.name}_float"
    _rename(graph, port.name, real)
    nodes = [helper.make_node("Cast", [port.name], [real if data is None else wide], to=TensorProto.FLOAT)]
    if data is not None:
        scale, zero = _scales(np.asarray(data, np.float64), np.iinfo(kind))
        graph.initializer.extend(
            numpy_helper.from_array(array, f"{port.name}_{what}") for what, array in (("scale", scale), ("zero", zero))
        )
        nodes += [
            helper.make_node("Sub", [wide, f"{port.name}_zero"], [f"{wide}_0"]),
            helper.make_node("Mul", [f"{wide}_0", f"{port.name}_scale"], [real]),
        ]
        helper.set_model_props(model, {"scale": str(scale.tolist()), "zero_point": str(zero.astype(int).tolist())})
    port.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(kind)
    for i, node in enumerate(nodes):
        graph.node.insert(i, node)


def _scales(data: np.ndarray, kind: np.iinfo[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return scale and zero point of each feature, as floats; a feature that never changes has the scale 1."""
    low, high = data.min(axis=0), data.max(axis=0)
    scale = np.where(high > low, (high - low) / (int(kind.max) - int(kind.min)), 1.0).astype(np.float32)
    return scale, np.rint(int(kind.min) - low / scale).astype(np.float32)
