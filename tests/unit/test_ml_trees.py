"""Forests of ai.onnx.ml: random ones against onnxruntime, and files that are damaged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import glowc
from glowc.errors import GlowcError
from glowc.frontend.importer import import_onnx
from tests.conftest import require_module, require_tool

ML = "ai.onnx.ml"
MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def model(op: str, attrs: dict[str, Any], features: int, outputs: dict[str, int], version: int = 3) -> onnx.ModelProto:
    """Return a model of one node; `outputs` are names with their element types."""
    node = helper.make_node(op, ["x"], list(outputs), name="forest", domain=ML, **attrs)
    x = helper.make_tensor_value_info("x", FLOAT, [None, features])
    outs = [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()]
    imports = [helper.make_opsetid("", 18), helper.make_opsetid(ML, version)]
    return helper.make_model(helper.make_graph([node], "g", [x], outs), opset_imports=imports, ir_version=9)


def tree(rng: np.random.Generator, depth: int, features: int, modes: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """Return nodes (mode, feature, value, true, false, missing) in preorder."""
    nodes: list[tuple[Any, ...]] = []

    def grow(left: int) -> int:
        at = len(nodes)
        nodes.append(("LEAF", 0, 0.0, 0, 0, 0))
        if left and rng.random() < 0.8:
            yes, no = grow(left - 1), grow(left - 1)
            mode = str(rng.choice(modes))
            nodes[at] = (
                mode,
                int(rng.integers(features)),
                float(rng.integers(-6, 7) / 2),
                yes,
                no,
                int(rng.integers(2)),
            )
        return at

    grow(depth)
    return nodes


def forest_attrs(rng: np.random.Generator, what: str, features: int, targets: int) -> dict[str, Any]:
    """Return attributes nodes_* and `what`_* of random trees; every leaf names each target."""
    modes = MODES if rng.integers(2) else (str(rng.choice(MODES)),)
    trees = [tree(rng, int(rng.integers(6)), features, modes) for _ in range(int(rng.integers(1, 7)))]
    rows = [(t, i, *node) for t, nodes in enumerate(trees) for i, node in enumerate(nodes)]
    keys = ("treeids", "nodeids", "modes", "featureids", "values", "truenodeids", "falsenodeids")
    attrs = {f"nodes_{key}": list(column) for key, column in zip(keys, zip(*rows, strict=True), strict=False)}
    if rng.integers(2):
        attrs["nodes_missing_value_tracks_true"] = [row[-1] for row in rows]
    leaves = [(row[0], row[1], k) for row in rows if row[2] == "LEAF" for k in range(targets)]
    for i, key in enumerate(("treeids", "nodeids", "ids")):
        attrs[f"{what}_{key}"] = [leaf[i] for leaf in leaves]
    attrs[f"{what}_weights"] = [float(w) for w in rng.normal(size=len(leaves)).astype(np.float32)]
    if rng.integers(2):
        attrs["base_values"] = [float(v) for v in rng.normal(size=targets).astype(np.float32)]
    attrs["post_transform"] = str(rng.choice(["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"]))
    return attrs


def agree(proto: onnx.ModelProto, rows: np.ndarray) -> None:
    """Compare with onnxruntime: labels exactly, sums of floats byte for byte, transformed ones to 1e-6."""
    ort = require_module("onnxruntime")
    require_tool("gcc")
    quiet = ort.SessionOptions()
    quiet.log_severity_level = 4
    theirs, ours = ort.InferenceSession(proto.SerializeToString(), quiet), glowc.InferenceSession(proto)
    exact = not any(a.name == "post_transform" and a.s not in (b"", b"NONE") for a in proto.graph.node[0].attribute)
    for row in rows:
        for want, got in zip(*(s.run(None, {"x": row[None]}) for s in (theirs, ours)), strict=True):
            if exact or want.dtype != np.float32:
                assert want.tobytes() == got.tobytes(), (row, want, got)
            else:
                np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)


def rows_of(rng: np.random.Generator, features: int) -> np.ndarray:
    """Return rows on and between thresholds, some with NaN."""
    x = (rng.integers(-8, 8, (25, features)) / 2).astype(np.float32)
    x[::4, rng.integers(features)] = np.nan
    return x


@pytest.mark.parametrize("seed", range(8))
def test_random_regressors_give_onnxruntimes_bytes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    features, targets = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    how = ("SUM", "AVERAGE", "MIN", "MAX")[seed % 4]
    attrs = forest_attrs(rng, "target", features, targets) | {"n_targets": targets, "aggregate_function": how}
    agree(model("TreeEnsembleRegressor", attrs, features, {"y": FLOAT}), rows_of(rng, features))


@pytest.mark.parametrize("seed", range(8))
def test_random_classifiers_give_onnxruntimes_labels(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    features, classes = int(rng.integers(1, 6)), int(rng.integers(3, 5))
    attrs = forest_attrs(rng, "class", features, classes)
    attrs["classlabels_int64s"] = [int(v) for v in rng.permutation(40)[:classes]]
    outputs = {"label": INT64, "scores": FLOAT}
    agree(model("TreeEnsembleClassifier", attrs, features, outputs), rows_of(rng, features))


@pytest.mark.parametrize("worth", [1.0, -1.0])
@pytest.mark.parametrize("base", [0, 1])
@pytest.mark.parametrize("how", ["NONE", "LOGISTIC"])
def test_two_classes_by_one_score(worth: float, base: int, how: str) -> None:
    rng = np.random.default_rng(7)
    attrs = forest_attrs(rng, "class", 3, 1) | {"classlabels_int64s": [4, 9], "post_transform": how}
    attrs["class_weights"] = [abs(w) * worth for w in attrs["class_weights"]]
    attrs["base_values"] = [0.25] * base
    if not base:
        del attrs["base_values"]
    agree(model("TreeEnsembleClassifier", attrs, 3, {"label": INT64, "scores": FLOAT}), rows_of(rng, 3))


def ensemble(modes: list[int], **other: Any) -> onnx.ModelProto:
    """Return a TreeEnsemble of version 5: one tree of three splits and four leaves."""
    attrs: dict[str, Any] = {
        "n_targets": 2, "tree_roots": [0], "nodes_featureids": [0, 1, 0], "nodes_truenodeids": [1, 0, 2],
        "nodes_trueleafs": [0, 1, 1], "nodes_falsenodeids": [2, 1, 3], "nodes_falseleafs": [0, 1, 1],
        "leaf_targetids": [0, 1, 0, 1], "leaf_weights": numpy_helper.from_array(np.arange(1, 5, dtype=np.float32)),
        "nodes_splits": numpy_helper.from_array(np.array([0.5, 1.5, -1.0], np.float32)),
        "nodes_modes": numpy_helper.from_array(np.array(modes, np.uint8)),
    }  # fmt: skip
    if 6 in modes:
        sets = np.array([1, 2, np.nan, 3, np.nan], np.float32)
        attrs["membership_values"] = numpy_helper.from_array(sets)
    return model("TreeEnsemble", attrs | other, 2, {"y": FLOAT}, 5)


@pytest.mark.parametrize("modes", [[0, 1, 2], [3, 4, 5], [6, 0, 6]])
def test_version_5_and_members_of_sets(modes: list[int]) -> None:
    rng = np.random.default_rng(sum(modes))
    x = rows_of(rng, 2)
    agree(ensemble(modes), np.floor(np.abs(x)) if 6 in modes else x)


def damaged() -> Iterator[tuple[onnx.ModelProto, str]]:
    """Yield models that are none, with words of the message."""
    good = {
        "nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_featureids": [0, 0, 0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"], "nodes_values": [0.0, 0.0, 0.0], "nodes_truenodeids": [1, 0, 0],
        "nodes_falsenodeids": [2, 0, 0], "target_treeids": [0, 0], "target_nodeids": [1, 2], "target_ids": [0, 0],
        "target_weights": [1.0, 2.0], "n_targets": 1,
    }  # fmt: skip
    for change, words in (
        ({"nodes_truenodeids": [0, 0, 0]}, "go in a circle"),
        ({"nodes_falsenodeids": [7, 0, 0]}, "has the child 7, which its tree lacks"),
        ({"nodes_modes": ["BRANCH_ODD", "LEAF", "LEAF"]}, "mode 'BRANCH_ODD' of node"),
        ({"aggregate_function": "MEDIAN"}, "aggregate_function 'MEDIAN'"),
        ({"post_transform": "ODD"}, "post_transform 'ODD'"),
        ({"nodes_featureids": [5, 0, 0]}, "reads feature 5 of 2"),
        ({"target_ids": [0, 3]}, "a target that is none of 1"),
        ({"nodes_values": [0.0]}, "nodes_values has 1 entries, not 3"),
        ({"target_nodeids": [1, 8]}, "names node 8 of tree 0"),
        ({"base_values": [1.0, 2.0, 3.0]}, "3 base values for 1 targets"),
        ({"n_targets": 0}, "none of 0"),
        ({"nodes_treeids": [], "nodes_nodeids": []}, "0 nodes of trees"),
        ({"nodes_nodeids": [0, 1, 1]}, "do not name each node once"),
    ):
        kept = {key: value for key, value in (good | change).items() if value != []}
        yield model("TreeEnsembleRegressor", kept, 2, {"y": FLOAT}), words
    yield ensemble([0, 0, 0], nodes_truenodeids=[0, 0, 2]), "go in a circle"
    yield ensemble([0, 0, 0], nodes_truenodeids=[1, 0, 9]), "true leaf 9, which does not exist"
    yield ensemble([0, 0, 9]), "nodes_modes has 9"
    yield ensemble([0, 0, 0], tree_roots=[4]), "tree_roots has 4"
    yield ensemble([0, 0, 0], aggregate_function=9), "aggregate_function 9"


@pytest.mark.parametrize(("proto", "words"), list(damaged()), ids=[words for _, words in damaged()])
def test_damaged_forests_are_explained(proto: onnx.ModelProto, words: str) -> None:
    with pytest.raises(GlowcError) as error:
        import_onnx(proto, name="m", batch_size=1)
    shown = " ".join([error.value.message, *error.value.details])
    assert words in shown
    assert '"forest"' in shown
