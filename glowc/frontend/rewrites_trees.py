"""Forests of ai.onnx.ml: TreeEnsembleClassifier, TreeEnsembleRegressor, TreeEnsemble -> Trees and what it ends in.

The first node of a tree is its root. Every mode becomes splits x <= t: below t is the next smaller number; equality is
two of them, membership a chain of equalities. Sums and label rules are onnxruntime's
(core/providers/cpu/ml/tree_ensemble_aggregator.h).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from glowc.frontend.builder import Builder
from glowc.frontend.chain import Chain, Rewrites
from glowc.frontend.ml_scores import (
    ML,
    TRANSFORMS,
    above,
    best,
    check_transform,
    floats_of,
    label,
    labels_of,
    rows_of,
    transformed,
    two_classes,
)
from glowc.frontend.onnx_model import OnnxNode
from glowc.frontend.problems import NodeError
from glowc.graph.types import DType
from glowc.ops.forest import Entries, Forest, Ref, Split

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
_JOINS = {"AVERAGE": "sum", "SUM": "sum", "MIN": "min", "MAX": "max"}
_LARGEST = 1 << 20  # splits of a forest


@dataclass(slots=True)
class _Growing:
    """A forest under construction; thresholds are numbers of `kind`."""

    kind: type[np.generic]
    splits: list[Split] = field(default_factory=list)

    def add(self, feature: int, threshold: Any, low: bool, first: Ref, second: Ref) -> Ref:
        self.splits.append(Split(feature, float(threshold), low, first, second))
        return len(self.splits) - 1

    def below(self, value: Any) -> Any:
        """Return the next smaller number: x < value means x <= that; never, where there is none."""
        limit = np.asarray(value, self.kind)
        return np.nan if limit == -np.inf else np.nextafter(limit, np.asarray(-np.inf, self.kind))

    def equal(self, feature: int, value: Any, missing: bool, yes: Ref, no: Ref) -> Ref:
        """Return a split by equality; NaN is equal where `missing` says so."""
        return self.add(feature, value, missing, self.add(feature, self.below(value), False, no, yes), no)

    def branch(self, mode: str, feature: int, values: Sequence[Any], missing: bool, yes: Ref, no: Ref) -> Ref:
        """Return the splits of a node that goes to `yes` where its condition holds, or x is missing."""
        value = values[0]
        if mode == "BRANCH_LEQ":
            return self.add(feature, value, missing, yes, no)
        if mode == "BRANCH_LT":
            return self.add(feature, self.below(value), missing, yes, no)
        if mode == "BRANCH_GT":
            return self.add(feature, value, not missing, no, yes)
        if mode == "BRANCH_GTE":
            return self.add(feature, self.below(value), not missing, no, yes)
        if mode == "BRANCH_NEQ":
            return self.equal(feature, value, False, no, yes)
        for member in values:
            no = self.equal(feature, member, missing, yes, no)
        return no


@dataclass(frozen=True, slots=True)
class _Nodes:
    """Nodes as a file has them: children are numbers of nodes, or ~leaf."""

    feature: Sequence[int]
    mode: Sequence[str]
    values: Sequence[Sequence[Any]]
    missing: Sequence[int]
    yes: Sequence[Ref]
    no: Sequence[Ref]

    def forest(self, roots: Sequence[Ref], leaves: Sequence[Entries], kind: type[np.generic]) -> Forest:
        """Return the forest; children are made before their parents."""
        shape = Forest(
            tuple(roots),
            tuple(Split(f, 0.0, False, a, b) for f, a, b in zip(self.feature, self.yes, self.no, strict=True)),
            tuple(leaves),
        )
        growing, new = _Growing(kind), dict[Ref, Ref]()
        for root in roots:
            for at in shape.upwards(root):
                if at not in new:
                    yes, no = (new[r] if r >= 0 else r for r in (self.yes[at], self.no[at]))
                    mode, missing = self.mode[at], bool(self.missing[at])
                    new[at] = growing.branch(mode, self.feature[at], self.values[at], missing, yes, no)
        return Forest(tuple(new[r] if r >= 0 else r for r in roots), tuple(growing.splits), shape.leaves)


def _list(node: OnnxNode, key: str, count: int | None = None) -> list[Any]:
    """Return a list attribute, in the length that it must have. Raises NodeError."""
    value = node.attrs.get(f"{key}_as_tensor", node.attrs.get(key, ()))
    found = np.asarray(value).reshape(-1).tolist()
    if count is not None and len(found) != count:
        raise NodeError(f"{key} has {len(found)} entries, not {count}")
    return found


def _old_forest(node: OnnxNode, what: str, kind: type[np.generic]) -> Forest:
    """Return the forest of attributes nodes_* and `what`_*, class or target."""
    trees, ids = _list(node, "nodes_treeids"), _list(node, "nodes_nodeids")
    n = len(trees)
    if not 0 < n <= _LARGEST:
        raise NodeError(f"{n} nodes of trees")
    keys = list(zip(trees, ids, strict=False))
    modes = _list(node, "nodes_modes", n)
    place = {key: i for i, key in enumerate(keys)}
    if len(ids) != n or len(place) != n:
        raise NodeError("nodes_treeids and nodes_nodeids do not name each node once")
    unknown = sorted({m for m in modes if m != "LEAF" and m not in MODES[:6]})
    if unknown:
        raise NodeError(
            f"mode {unknown[0]!r} of node {keys[modes.index(unknown[0])]}: none of {', '.join(MODES[:6])}, LEAF"
        )
    leaves = _old_leaves(node, what, place)
    leaf_ref = {i: ~number for number, i in enumerate(i for i in range(n) if modes[i] == "LEAF")}

    def child(i: int, ids_of: list[int]) -> Ref:
        at = place.get((trees[i], ids_of[i]), -1)
        if at < 0:
            raise NodeError(f"node {ids[i]} of tree {trees[i]} has the child {ids_of[i]}, which its tree lacks")
        return leaf_ref.get(at, at)

    yes, no = (_list(node, f"nodes_{way}nodeids", n) for way in ("true", "false"))
    ends = [i in leaf_ref for i in range(n)]
    nodes = _Nodes(
        _list(node, "nodes_featureids", n), modes, [(v,) for v in _list(node, "nodes_values", n)],
        _list(node, "nodes_missing_value_tracks_true") or [0] * n,
        [-1 if ends[i] else child(i, yes) for i in range(n)], [-1 if ends[i] else child(i, no) for i in range(n)],
    )  # fmt: skip
    first: dict[int, int] = {}
    for i, tree in enumerate(trees):
        first.setdefault(tree, i)
    roots = [leaf_ref.get(i, i) for i in first.values()]
    return nodes.forest(roots, [tuple(leaves.get(i, ())) for i in leaf_ref], kind)


def _old_leaves(node: OnnxNode, what: str, place: dict[tuple[int, int], int]) -> dict[int, list[tuple[int, float]]]:
    """Return the entries of leaves by the number of their node."""
    trees = _list(node, f"{what}_treeids")
    ids, targets, weights = (_list(node, f"{what}_{key}", len(trees)) for key in ("nodeids", "ids", "weights"))
    found: dict[int, list[tuple[int, float]]] = {}
    for tree, i, target, weight in zip(trees, ids, targets, weights, strict=True):
        at = place.get((tree, i))
        if at is None:
            raise NodeError(f"{what}_nodeids names node {i} of tree {tree}, which does not exist")
        found.setdefault(at, []).append((target, weight))
    return found


def _new_forest(node: OnnxNode, kind: type[np.generic]) -> Forest:
    """Return the forest of TreeEnsemble-5."""
    features = _list(node, "nodes_featureids")
    n = len(features)
    modes, splits = _list(node, "nodes_modes", n), _list(node, "nodes_splits", n)
    targets = _list(node, "leaf_targetids")
    weights, roots = _list(node, "leaf_weights", len(targets)), _list(node, "tree_roots")
    if not (n and targets and roots and n <= _LARGEST):
        raise NodeError(f"{len(roots)} trees of {n} nodes and {len(targets)} leaves")
    if any(not 0 <= m < len(MODES) for m in modes):
        raise NodeError(f"nodes_modes has {next(m for m in modes if not 0 <= m < len(MODES))}: modes are 0 to 6")

    def children(way: str) -> list[Ref]:
        refs, leafs = _list(node, f"nodes_{way}nodeids", n), _list(node, f"nodes_{way}leafs", n)
        for i, (ref, is_leaf) in enumerate(zip(refs, leafs, strict=True)):
            if not 0 <= ref < (len(targets) if is_leaf else n):
                raise NodeError(f"node {i} has the {way} {'leaf' if is_leaf else 'child'} {ref}, which does not exist")
        return [~ref if is_leaf else ref for ref, is_leaf in zip(refs, leafs, strict=True)]

    if any(not 0 <= r < n for r in roots):
        raise NodeError(f"tree_roots has {next(r for r in roots if not 0 <= r < n)}, which is no node")
    names = [MODES[m] for m in modes]
    nodes = _Nodes(
        features, names, _members(node, names, splits),
        _list(node, "nodes_missing_value_tracks_true") or [0] * n, children("true"), children("false"),
    )  # fmt: skip
    return nodes.forest(roots, [((t, w),) for t, w in zip(targets, weights, strict=True)], kind)


def _members(node: OnnxNode, modes: Sequence[str], splits: Sequence[float]) -> list[tuple[float, ...]]:
    """Return the values that each node compares with: its split, or its part of membership_values."""
    sets: list[tuple[float, ...]] = [()]
    for value in _list(node, "membership_values"):
        if value != value:
            sets.append(())
        else:
            sets[-1] = (*sets[-1], value)
    given = iter([s for s in sets if s])
    found = [next(given, ()) if mode == MODES[6] else (split,) for mode, split in zip(modes, splits, strict=True)]
    if not all(found):
        raise NodeError("membership_values has too few sets, of which each ends with NaN")
    return found


def _scores(parts: Chain, forest: Forest, targets: int, how: str) -> str:
    """Add the trees and return what their leaves come to, [N, targets]; AVERAGE is divided."""
    x, kind = _table(parts)
    features = parts.b.type(parts.node.inputs[0]).shape[-1]
    forest.check(features, targets)
    names = [parts.const(array) for array in forest.simplified().arrays(np.dtype(kind), np.dtype(kind))]
    y = parts.add("Trees", x, *names, targets=targets, join=_JOINS[how])
    return parts.add("Div", y, parts.const(np.asarray(len(forest.roots), kind))) if how == "AVERAGE" else y


def _kind(node: OnnxNode, b: Builder) -> type[np.generic]:
    return np.float64 if b.type(node.inputs[0]).dtype is DType.F64 else np.float32


def _table(parts: Chain) -> tuple[str, type[np.generic]]:
    kind = _kind(parts.node, parts.b)
    return rows_of(parts, parts.node.inputs[0], kind), kind


def _based(parts: Chain, scores: str, base: np.ndarray, targets: int) -> str:
    """Add the base values: one, or one for each target."""
    if not base.size:
        return scores
    if base.size not in (1, targets):
        raise NodeError(f"{base.size} base values for {targets} targets")
    kind = _kind(parts.node, parts.b)
    return parts.add("Add", scores, parts.const(base.astype(kind).reshape(1, -1)))


def _single(parts: Chain, scores: str) -> str:
    """Return scores as float32, whatever they were computed in."""
    return parts.add("Cast", scores, to=1) if _kind(parts.node, parts.b) is np.float64 else scores


def _aggregate(node: OnnxNode) -> str:
    how = node.str_("aggregate_function", "SUM")
    if how not in _JOINS:
        raise NodeError(f"aggregate_function {how!r}: none of {', '.join(_AGGREGATES)}")
    return how


def regressor(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """TreeEnsembleRegressor: scores and base values, transformed."""
    parts, targets = Chain(node, b), node.int_("n_targets", 1)
    scores = _scores(parts, _old_forest(node, "target", _kind(node, b)), targets, _aggregate(node))
    scores = _single(parts, _based(parts, scores, floats_of(node, "base_values"), targets))
    transformed(parts, scores, _transform(node, targets), parts.out)
    return parts.nodes


def _transform(node: OnnxNode, targets: int) -> str:
    how = node.str_("post_transform", "NONE")
    check_transform(how)
    return how if targets > 1 or how == "PROBIT" else "NONE"


def ensemble(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """TreeEnsemble-5; its results have the kind of its inputs."""
    parts, targets = Chain(node, b), node.int_("n_targets", 1)
    how, end = node.int_("aggregate_function", 1), node.int_("post_transform", 0)
    if not 0 <= how < len(_AGGREGATES) or not 0 <= end < len(TRANSFORMS):
        raise NodeError(f"aggregate_function {how}, post_transform {end}")
    scores = _scores(parts, _new_forest(node, _kind(node, b)), targets, _AGGREGATES[how])
    transformed(parts, scores, TRANSFORMS[end], parts.out)
    return parts.nodes


def classifier(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """TreeEnsembleClassifier: the label, and the scores of all classes."""
    parts, labels = Chain(node, b), labels_of(node)
    forest, base, count = _old_forest(node, "class", _kind(node, b)), floats_of(node, "base_values"), labels.size
    ids = {target for leaf in forest.leaves for target, _ in leaf}
    if count < 2:
        raise NodeError(f"{count} class labels")
    if count == 2:
        _two(parts, forest, base, labels)
        return parts.nodes
    scores = _scores(parts, forest, count, "SUM")
    scores = _single(parts, _based(parts, scores, base, count))
    missing = [k for k in range(count) if k not in ids and not base.size]
    shown = scores
    if missing:
        never = np.zeros((1, count), np.float32)
        never[0, missing] = -np.inf
        shown = parts.add("Add", scores, parts.const(never))
    label(parts, best(parts, shown), labels)
    transformed(parts, scores, node.str_("post_transform", "NONE"), node.outputs[1])
    return parts.nodes


def _two(parts: Chain, forest: Forest, base: np.ndarray, labels: np.ndarray) -> None:
    """Add label and scores of two classes, by what onnxruntime does with one score or two, and base values."""
    node, kind = parts.node, _kind(parts.node, parts.b)
    weights = [entry for leaf in forest.leaves for entry in leaf]
    ids, how = {target for target, _ in weights}, node.str_("post_transform", "NONE")
    second, alone, positive = 1 in ids, len(ids) == 1, all(w >= 0 for _, w in weights)
    columns = _columns(parts, forest, ids)
    values = [parts.const(v.astype(kind).reshape(1, 1)) for v in base]
    if base.size == 2 and second:
        columns[1] = parts.add("Add", values[1], columns[0] or parts.const(np.zeros((1, 1), kind)))
        columns[0] = parts.add("Neg", columns[1])
    elif base.size:
        columns[: base.size] = [parts.add("Add", c, v) if c else v for c, v in zip(columns, values, strict=False)]
    score = columns[1] if second else columns[0]
    if (second and base.size < 2) or not second:  # a class that no leaf has a score of shows 0
        columns = [c if k in ids else "" for k, c in enumerate(columns)]
    index = above(parts, score, 0.5 if alone and positive else 0.0, kind)
    label(parts, index, labels if alone else np.asarray([0, 1], np.int64))
    rows = parts.b.type(node.inputs[0]).shape[0] if parts.b.type(node.inputs[0]).rank > 1 else 1
    full = [_single(parts, _filled(parts, c, rows, kind)) for c in columns]
    if second or base.size == 2:
        transformed(parts, parts.add("Concat", *full, axis=1), how, node.outputs[1])
    else:
        two_classes(parts, full[0], how, node.outputs[1], shares=alone and positive)


def _columns(parts: Chain, forest: Forest, ids: set[int]) -> list[str]:
    """Return the scores of both classes, [N, 1] each; "" where no leaf has one."""
    if len(ids) > 1:
        scores = _scores(parts, forest, 2, "SUM")
        return [parts.add("Slice", scores, parts.ints(i), parts.ints(i + 1), parts.ints(1)) for i in range(2)]
    if not ids <= {0, 1}:
        raise NodeError(f"class_ids has {min(ids)} of 2 classes")
    leaves = tuple(tuple((0, w) for _, w in leaf) for leaf in forest.leaves)
    score = _scores(parts, replace(forest, leaves=leaves), 1, "SUM")
    return ["", score] if ids == {1} else [score, ""]


def _filled(parts: Chain, column: str, rows: int, kind: type[np.generic]) -> str:
    """Return a column of [rows, 1]; of zeros where there is none, of one value where it is a constant."""
    if column and column not in parts.b.consts:
        return column
    value = parts.b.consts[column] if column else np.zeros((1, 1), kind)
    return parts.const(np.repeat(value, rows, axis=0))


REWRITES: Rewrites = {
    (ML, "TreeEnsembleClassifier"): classifier,
    (ML, "TreeEnsembleRegressor"): regressor,
    (ML, "TreeEnsemble"): ensemble,
}
