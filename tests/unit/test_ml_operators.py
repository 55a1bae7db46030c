"""Operators of ai.onnx.ml other than trees, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import glowc
from tests.conftest import require_module, require_tool

ROWS = np.array([[0.5, -1.5, 3.0], [0.0, 0.0, 0.0], [-2.0, np.nan, 1.0], [7.0, 2.0, -4.0]], np.float32)
WHOLE = ROWS[[0, 1, 3]]
W, B = [0.5, -1.0, 0.25, 1.5, 0.75, -0.5, -0.25, 0.5, 1.0], [0.1, -0.2, 0.3]
LABELS = {"classlabels_ints": [4, 2, 9]}
CASES: list[tuple[str, dict[str, Any], np.ndarray, int]] = [
    ("Scaler", {"offset": [1.0, 2.0, 3.0], "scale": [0.5, 0.25, 2.0]}, WHOLE, 1),
    ("Scaler", {"offset": [1.0], "scale": [0.5]}, WHOLE, 1),
    ("Normalizer", {"norm": "L1"}, WHOLE[[0, 2]], 1),
    ("Normalizer", {"norm": "L2"}, WHOLE, 1),
    ("Binarizer", {"threshold": 0.4}, WHOLE, 1),
    ("Imputer", {"imputed_value_floats": [8.0, 9.0, 7.0], "replaced_value_float": float("nan")}, ROWS, 1),
    ("Imputer", {"imputed_value_floats": [8.0], "replaced_value_float": 0.0}, WHOLE, 1),
    ("FeatureVectorizer", {"inputdimensions": [3]}, WHOLE, 1),
    ("LabelEncoder", {"keys_floats": [0.5, 7.0], "values_floats": [1.5, 2.5], "default_float": -3.0}, WHOLE, 1),
    ("LinearRegressor", {"coefficients": W, "intercepts": B, "targets": 3}, WHOLE, 1),
    ("LinearRegressor", {"coefficients": W[:3], "intercepts": B[:1]}, WHOLE, 1),
    ("LinearClassifier", {"coefficients": W, "intercepts": B, **LABELS, "post_transform": "SOFTMAX"}, WHOLE, 2),
    ("LinearClassifier", {"coefficients": W, "intercepts": B, **LABELS, "post_transform": "LOGISTIC"}, WHOLE, 2),
    ("LinearClassifier", {"coefficients": W[:3], "intercepts": B[:1], "classlabels_ints": [3, 5],
                          "post_transform": "LOGISTIC"}, WHOLE, 2),
    ("LinearClassifier", {"coefficients": W[:3], "intercepts": B[:1], "classlabels_ints": [3, 5]}, WHOLE, 2),
    ("SVMRegressor", {"coefficients": [0.5, -1.0], "support_vectors": W[:6], "n_supports": 2, "rho": [0.2],
                      "kernel_type": "SIGMOID", "kernel_params": [0.3, 0.1, 0.0]}, WHOLE, 1),
    ("SVMRegressor", {"coefficients": [0.5, -1.0], "support_vectors": W[:6], "n_supports": 2, "rho": [0.2],
                      "kernel_type": "RBF", "kernel_params": [0.3, 0.0, 0.0], "one_class": 1}, WHOLE, 1),
    ("SVMClassifier", {"coefficients": W, "rho": [0.2], "kernel_type": "LINEAR", "kernel_params": [0.0] * 3,
                       **LABELS}, WHOLE, 2),
]  # fmt: skip


@pytest.mark.parametrize(("op", "attrs", "rows", "outputs"), CASES, ids=lambda v: v if isinstance(v, str) else "")
def test_the_c_gives_what_onnxruntime_gives(op: str, attrs: dict[str, Any], rows: np.ndarray, outputs: int) -> None:
    ort = require_module("onnxruntime")
    require_tool("gcc")
    names = ["label", "y"][2 - outputs :]
    node = helper.make_node(op, ["x"], names, domain="ai.onnx.ml", **attrs)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 3])
    kinds = [TensorProto.INT64 if name == "label" else TensorProto.FLOAT for name in names]
    outs = [helper.make_tensor_value_info(name, kind, None) for name, kind in zip(names, kinds, strict=True)]
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    model = helper.make_model(helper.make_graph([node], "g", [x], outs), opset_imports=imports, ir_version=9)
    theirs, ours = ort.InferenceSession(model.SerializeToString()), glowc.InferenceSession(model)
    for row in rows:
        for want, got in zip(*(s.run(None, {"x": row[None]}) for s in (theirs, ours)), strict=True):
            assert (want.shape, want.dtype) == (got.shape, got.dtype)
            np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)
