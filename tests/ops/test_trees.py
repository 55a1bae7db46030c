"""Trees: forests against their splits followed one by one; what no forest is; kernel cases of trees_*."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from glowc.graph.types import DType, dtype_of
from glowc.ops.base import OpError
from glowc.ops.forest import Entries, Forest, Ref, Split
from glowc.ops.trees import JOINS, NAN_EITHER, TreeParams, leaf_tables, nan_of, walk_of
from glowc.program.params import as_mapping
from tests.kernels.case import Case, make_case
from tests.ops.one_node import check

FEATURES = 5


def forest(
    rng: np.random.Generator, trees: int, depth: int, targets: int, *, kind: str = "value", low: str = "no"
) -> Forest:
    """Return random trees; `kind` of leaves: value, vote (of equal worth) or rows; `low`: no, yes, or some."""
    splits: list[Split] = []
    leaves: list[Entries] = []

    def leaf() -> Entries:
        worth = 0.25 if kind == "vote" else float(np.float32(rng.normal()))
        if kind != "rows":
            return ((int(rng.integers(targets)), worth),)
        return tuple((k, float(np.float32(rng.normal()))) for k in range(targets))

    def grown(left: int) -> Ref:
        if left == 0 or rng.random() < 0.2:
            leaves.append(leaf())
            return ~(len(leaves) - 1)
        first, second = grown(left - 1), grown(left - 1)
        goes = {"no": False, "yes": True, "some": bool(rng.integers(2))}[low]
        splits.append(Split(int(rng.integers(FEATURES)), float(rng.integers(-9, 9)), goes, first, second))
        return len(splits) - 1

    return Forest(tuple(grown(depth) for _ in range(trees)), tuple(splits), tuple(leaves))


def followed(trees: Forest, x: np.ndarray, targets: int, join: str) -> np.ndarray:
    """Return what one row comes to, split by split."""
    found: list[np.float32 | None] = [None] * targets
    for root in trees.roots:
        ref = root
        while ref >= 0:
            split = trees.splits[ref]
            v = float(x[split.feature])
            ref = split.first if v <= split.threshold or (v != v and split.low) else split.second
        for target, worth in trees.leaves[~ref]:
            before, value = found[target], np.float32(worth)
            together = {"sum": np.add, "min": np.minimum, "max": np.maximum}[join]
            found[target] = value if before is None else together(before, value)
    return np.array([0 if v is None else v for v in found], np.float32)


@pytest.mark.parametrize("kind", ["value", "vote", "rows"])
@pytest.mark.parametrize("low", ["no", "yes", "some"])
@pytest.mark.parametrize("join", list(JOINS))
def test_rows_go_where_their_splits_say(kind: str, low: str, join: str) -> None:
    rng = np.random.default_rng(len(kind + low + join))
    targets = 1 if kind == "value" else 3
    if join != "sum" and kind == "vote":
        return  # a least vote needs every target in some tree
    trees = forest(rng, 7, 5, targets, kind=kind, low=low)
    x = rng.integers(-10, 10, (12, FEATURES)).astype(np.float32)
    x[3:6, 2] = np.nan
    arrays = trees.arrays(np.dtype(np.float32), np.dtype(np.float32))
    (y,) = check("Trees", [x, *arrays], {"targets": targets, "join": join}, consts=range(1, 9))
    assert np.array_equal(y, np.stack([followed(trees, row, targets, join) for row in x]))


def test_integers_are_compared_as_such() -> None:
    rng = np.random.default_rng(3)
    trees = forest(rng, 4, 6, 2, kind="rows")
    x = rng.integers(-10, 10, (8, FEATURES)).astype(np.int8)
    arrays = trees.arrays(np.dtype(np.int8), np.dtype(np.float32))
    (y,) = check("Trees", [x, *arrays], {"targets": 2}, consts=range(1, 9))
    assert np.array_equal(y, np.stack([followed(trees, row, 2, "sum") for row in x]))


def test_what_decides_nothing_is_left_out() -> None:
    leaves = (((0, 1.0),), ((0, 1.0),), ((0, 2.0),))
    same = Split(0, 3.0, False, ~0, ~1)
    trees = Forest((2, 3), (same, same, Split(1, 0.0, False, 0, 1), Split(2, 5.0, False, 0, ~2)), leaves).simplified()
    assert trees.roots == (~0, 0)
    assert trees.splits == (Split(2, 5.0, False, ~0, ~1),)
    assert trees.leaves == (((0, 1.0),), ((0, 2.0),))


def test_thresholds_that_no_code_meets_are_left_out() -> None:
    leaves = (((0, 1.0),), ((0, 2.0),), ((0, 3.0),))
    trees = Forest((1,), (Split(0, 200.0, False, ~0, ~1), Split(0, 7.5, True, 0, ~2)), leaves)
    codes = trees.with_thresholds(lambda _, t: int(np.floor(t)), -128, 127)
    assert codes.splits == (Split(0, 7, False, ~0, ~1),)


@pytest.mark.parametrize(
    ("trees", "words"),
    [
        (Forest((0,), (Split(0, 0.0, False, 0, ~0),), (((0, 1.0),),)), "go in a circle"),
        (Forest((0,), (Split(0, 0.0, False, 4, ~0),), (((0, 1.0),),)), "neither a split nor a leaf"),
        (Forest((0,), (Split(9, 0.0, False, ~0, ~0),), (((0, 1.0),),)), "reads feature 9 of 5"),
        (Forest((~0,), (), (((3, 1.0),),)), "a target that is none of 2"),
    ],
)
def test_what_is_no_forest_is_refused(trees: Forest, words: str) -> None:
    with pytest.raises(OpError, match=words):
        trees.check(FEATURES, 2)


def case(trees: Forest, x: np.ndarray, targets: int, join: str, *, based: bool) -> Case:
    """Return a case of the kernel that the leaves ask for."""
    kind, y = dtype_of(x), DType.F64 if x.dtype == np.float64 else DType.F32
    nan = nan_of(trees, kind)
    walk = walk_of(trees, kind, nan, based=based)
    leaves = leaf_tables(walk.leaves, targets, y.numpy, join)
    name = "trees_rows" if "start" in leaves else "trees_vote" if "target" in leaves else "trees_value"
    params = TreeParams(*x.shape, targets, len(trees.roots), nan, int(based), JOINS[join])
    operands = {"in": x, **walk.tables, **leaves}
    return make_case(name, operands, as_mapping(params), out={"out": ((len(x), targets), y)})


def kernel_cases() -> Iterator[Case]:
    """Kinds of features and leaves, NaN both ways, trees of a leaf, one tree and many, votes of one word and two."""
    rng = np.random.default_rng(5)
    for dtype in (np.float32, np.float64, np.int8, np.uint8, np.int16, np.int32):
        least = 0 if dtype == np.uint8 else -10
        for kind, targets in (("value", 1), ("vote", 3), ("rows", 2)):
            x = rng.integers(least, 20, (5, FEATURES)).astype(dtype)
            trees = forest(rng, 6, 5, targets, kind=kind).with_thresholds(lambda _, t: int(t), least, 100)
            yield case(trees, x, targets, "sum", based=bool(rng.integers(2)))
    for low in ("yes", "some"):
        x = rng.integers(-10, 10, (7, FEATURES)).astype(np.float32)
        x[1:3, :3] = np.nan
        trees = forest(rng, 6, 5, 1, low=low)
        assert low == "yes" or nan_of(trees, DType.F32) == NAN_EITHER
        yield case(trees, x, 1, "sum", based=True)
    codes = rng.integers(-10, 10, (4, FEATURES)).astype(np.int8)
    for join in ("min", "max"):
        yield case(forest(rng, 5, 4, 2, kind="rows"), codes, 2, join, based=False)
        yield case(forest(rng, 5, 4, 1), codes, 1, join, based=True)
    for count, targets in ((1, 2), (20, 10), (40, 20), (3, 1)):
        yield case(forest(rng, count, 6, targets, kind="vote"), codes, targets, "sum", based=False)
    yield case(forest(rng, 3, 0, 2, kind="vote"), codes, 2, "sum", based=False)
    yield case(forest(rng, 60, 8, 1), codes, 1, "sum", based=True)
