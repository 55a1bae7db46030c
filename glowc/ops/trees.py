"""Trees: forests of decision trees. y[b, k] = the sum, the least or the greatest of the leaves' weights for target k.

x[B, F] of floats, or of integers that thresholds of the same kind are compared with, to y[B, K]: float64 for float64,
float32 otherwise, one tree after another. A NaN goes where its split says (glowc/ops/forest.py).
Tables: a split has a feature, a threshold and two steps, each in the smallest kind that fits. A step > 0 leads to a
later split, another one to leaf -step, counted from the first leaf of the tree where that makes the tables smaller.
`trees_value`: each leaf has a value for the one target; `trees_vote`: a target and a value; `trees_rows`: entries
start[leaf] .. of targets and numbers of values. Source: ONNX ai.onnx.ml TreeEnsemble-5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from glowc.graph.attrs import Int, Str
from glowc.graph.graph import Node
from glowc.graph.types import DType, TensorType
from glowc.ops.base import LowerCtx, MaybeTypes, OpDef, OpError, Types
from glowc.ops.derived import derived
from glowc.ops.forest import Entries, Forest, Ref, Split
from glowc.ops.strided import present
from glowc.program.kernel import Arrays, KernelDef
from glowc.program.params import Params, Printed

INTEGERS = (DType.S8, DType.U8, DType.S16, DType.U16, DType.S32)
JOINS: Mapping[str, str] = {"sum": "+", "min": "<", "max": ">"}
NAN_SECOND, NAN_FIRST, NAN_EITHER = 0, 1, 2


@dataclass(frozen=True, slots=True)
class TreeParams(Params):
    """Of `trees_*`: sizes; where NaN goes (NAN_EITHER: `feature` holds 2 * feature + 1 for the first child); `based`:
    roots come with the first leaf of their tree; `join`: + < >.
    """

    batch: int
    features: int
    targets: int
    trees: int
    nan: Printed
    based: Printed
    join: str


@dataclass(frozen=True, slots=True)
class Walk:
    """The tables that lead to a leaf, and what the leaves are in their order."""

    root: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    child: np.ndarray
    leaves: tuple[Entries, ...]
    based: bool

    @property
    def tables(self) -> dict[str, np.ndarray]:
        """The operands."""
        return {"root": self.root, "feature": self.feature, "threshold": self.threshold, "child": self.child}


def infer(node: Node, in_types: MaybeTypes) -> Types:
    """A row of targets for each of the input."""
    types = present(in_types)
    x = types[0]
    kinds = (DType.F32, DType.F64, *INTEGERS)
    if len(types) != 9 or x.rank != 2 or x.dtype not in kinds or types[3].dtype is not x.dtype:
        raise OpError(f"trees on {x}: needs [batch, features] of f32, f64 or integers, thresholds of the same kind")
    if node.int_("targets") < 1:
        raise OpError(f"{node.int_('targets')} targets")
    return (TensorType((x.shape[0], node.int_("targets")), DType.F64 if x.dtype is DType.F64 else DType.F32),)


def smallest(values: np.ndarray, *, signed: bool) -> np.ndarray:
    """Return whole numbers in the smallest kind of C that holds them all."""
    kinds = (np.int8, np.int16, np.int32) if signed else (np.uint8, np.uint16, np.int32)
    return values.astype(next(k for k in kinds if np.array_equal(values.astype(k), values)))


def forest_of(node: Node, ctx: LowerCtx) -> Forest:
    """Return the forest of a node's constants. Raises OpError where they are computed, or are no forest."""
    arrays = [ctx.const_value(name) for name in node.inputs[1:]]
    if any(array is None for array in arrays):
        raise OpError("its trees are computed at run time")
    forest = Forest.of([array for array in arrays if array is not None])
    forest.check(ctx.type(node.inputs[0]).shape[1], node.int_("targets"))
    return forest.simplified()


def _sizes(forest: Forest, root: Ref) -> dict[Ref, int]:
    """Return how many splits are below each split of a tree, itself included; shared ones count each time."""
    found: dict[Ref, int] = {}
    for at in forest.upwards(root):
        split = forest.splits[at]
        found[at] = 1 + found.get(split.first, 0) + found.get(split.second, 0)
    return found


def _downwards(forest: Forest, root: Ref) -> list[Ref]:
    """Return the splits of a tree, parents before children, the smaller of two subtrees first: steps are short."""
    sizes = _sizes(forest, root)
    order, done, stack = [], set[Ref](), [root]
    while stack:
        at = stack[-1]
        split = forest.splits[at]
        children = sorted((r for r in (split.first, split.second) if r >= 0), key=sizes.__getitem__, reverse=True)
        below = next((r for r in children if r not in done), None)
        if below is None:
            done.add(at)
            order.append(stack.pop())
        else:
            stack.append(below)
    return order[::-1]


def _whole(forest: Forest) -> Forest:
    """Return the forest with a split, of two equal children, in front of each tree that is only a leaf."""
    splits, roots = list(forest.splits), []
    for root in forest.roots:
        roots.append(root if root >= 0 else len(splits))
        if root < 0:
            splits.append(_nothing(root))
    return replace(forest, roots=tuple(roots), splits=tuple(splits))


def _nothing(leaf: Ref) -> Split:
    return Split(0, 0, False, leaf, leaf)


def walk_of(forest: Forest, kind: DType, nan: int, *, based: bool) -> Walk:
    """Lay the splits of a forest out; with `based`, each tree has its own leaves."""
    forest = _whole(forest)
    leaves: list[Entries] = [] if based else list(forest.leaves)
    root, first = list[int](), list[int]()
    rows: list[tuple[Split, list[int]]] = []
    for top in forest.roots:
        order = _downwards(forest, top)
        place = {at: i for i, at in enumerate(order)}
        own: dict[int, int] = {}
        root.append(len(rows))
        first.append(len(leaves) if based else 0)
        for i, at in enumerate(order):
            split = forest.splits[at]
            ends = [~ref for ref in (split.first, split.second) if ref < 0]
            number = {leaf: own.setdefault(leaf, len(own)) if based else leaf for leaf in ends}
            rows.append((split, [place[r] - i if r >= 0 else -number[~r] for r in (split.first, split.second)]))
        if based:
            leaves += [forest.leaves[leaf] for leaf in own]
    return Walk(
        smallest(np.array([root, first] if based else [root]).T, signed=False),
        smallest(np.array([2 * s.feature + s.low if nan == NAN_EITHER else s.feature for s, _ in rows]), signed=False),
        np.array([s.threshold for s, _ in rows], kind.numpy),
        smallest(np.array([steps for _, steps in rows]), signed=True),
        tuple(leaves), based,
    )  # fmt: skip


def leaf_tables(
    leaves: tuple[Entries, ...], targets: int, kind: np.dtype[np.generic], join: str
) -> dict[str, np.ndarray]:
    """Return the operands that say what leaves are worth: those of the kernel that needs fewest."""
    entries = [entry for leaf in leaves for entry in leaf]
    nothing = [(0, 0.0)] if join == "sum" else []
    if all(len(leaf or nothing) == 1 for leaf in leaves):
        single = [(leaf or nothing)[0] for leaf in leaves]
        value = np.array([v for _, v in single], kind)
        target = smallest(np.array([k for k, _ in single]), signed=False)
        return {"value": value} if targets == 1 else {"target": target, "value": value}
    start = np.concatenate([[0], np.cumsum([len(leaf) for leaf in leaves])])
    value, index = np.unique(np.array([v for _, v in entries], kind), return_inverse=True)
    return {
        "start": smallest(start, signed=False), "target": smallest(np.array([k for k, _ in entries]), signed=False),
        "index": smallest(index, signed=False), "value": value,
    }  # fmt: skip


def _without_zeros(forest: Forest, join: str) -> Forest:
    """Return the forest without entries that add nothing to a sum."""
    if join != "sum":
        return forest
    leaves = tuple(tuple(entry for entry in leaf if entry[1] != 0) for leaf in forest.leaves)
    return replace(forest, leaves=leaves).simplified()


def _with_all(forest: Forest, targets: int, join: str) -> Forest:
    """Return the forest with a tree first whose leaves name all targets, where the least or greatest is asked for."""
    if join == "sum":
        return forest
    for i, root in enumerate(forest.roots):
        ends = [forest.splits[at] for at in forest.upwards(root)]
        below = [~r for split in ends for r in (split.first, split.second) if r < 0] or [~root]
        if all({k for k, _ in forest.leaves[leaf]} == set(range(targets)) for leaf in below):
            return replace(forest, roots=(root, *forest.roots[:i], *forest.roots[i + 1 :]))
    raise OpError(f"no tree has a weight for each target in all its leaves, of which the {join} is asked for")


def nan_of(forest: Forest, kind: DType) -> int:
    """Return where NaN goes."""
    ways = {split.low for split in forest.splits} if kind in (DType.F32, DType.F64) else set[bool]()
    return NAN_EITHER if len(ways) > 1 else NAN_FIRST if True in ways else NAN_SECOND


def comparisons(forest: Forest) -> int:
    """Return how many splits a row meets, where each is as likely to go one way as the other."""
    total = 0.0
    for root in forest.roots:
        mean: dict[Ref, float] = {}
        for at in forest.upwards(root):
            split = forest.splits[at]
            mean[at] = 1 + (mean.get(split.first, 0.0) + mean.get(split.second, 0.0)) / 2
        total += mean.get(root, 0.0)
    return round(total)


def lower(node: Node, ctx: LowerCtx) -> None:
    """One `trees_*`, by the smaller tables."""
    x, y, join = ctx.read(node.inputs[0]), ctx.write(node.outputs[0]), node.str_("join")
    targets, kind = node.int_("targets"), y.type.dtype.numpy
    forest = _with_all(_without_zeros(forest_of(node, ctx), join), targets, join)
    nan = nan_of(forest, x.type.dtype)
    found = []
    for based in (False, True):
        walk = walk_of(forest, x.type.dtype, nan, based=based)
        found.append((walk, {**walk.tables, **leaf_tables(walk.leaves, targets, kind, join)}))
    walk, tables = min(found, key=lambda f: sum(array.nbytes for array in f[1].values()))
    batch, features = x.type.shape
    params = TreeParams(batch, features, targets, len(forest.roots), nan, int(walk.based), JOINS[join])
    operands = {role: ctx.const(array, f"{node.name}_{role}") for role, array in tables.items()}
    ctx.emit(_KERNEL_OF[tuple(tables)[len(walk.tables) :]], {"in": x, **operands, "out": y}, params,
             macs=x.type.shape[0] * comparisons(forest))  # fmt: skip


def _leaf_of(a: Arrays, p: TreeParams, x: np.ndarray, tree: int) -> np.ndarray:
    """Return the leaf of a tree that each row of x[B, F] ends at."""
    top = a["root"].reshape(p.trees, 1 + p.based)[tree].astype(np.int64)
    child, threshold = a["child"].reshape(-1, 2), a["threshold"]
    at, row = np.full(p.batch, top[0]), np.arange(p.batch)
    leaf, going = np.zeros(p.batch, np.int64), np.ones(p.batch, bool)
    while going.any():
        feature = a["feature"][at].astype(np.int64)
        low = feature & 1 if p.nan == NAN_EITHER else np.full(p.batch, p.nan)
        v = x[row, feature >> 1 if p.nan == NAN_EITHER else feature]
        second = np.where(low == 1, v > threshold[at], ~(v <= threshold[at]))
        step = child[at, second.astype(np.int64)].astype(np.int64)
        leaf = np.where(going & (step <= 0), top[-1] * p.based - step, leaf)
        going &= step > 0
        at = at + np.where(going, step, 0)
    return leaf


def _entries(a: Arrays, leaf: int) -> list[tuple[int, np.generic]]:
    """Return the targets of a leaf with their values."""
    if "start" in a:
        some = range(int(a["start"][leaf]), int(a["start"][leaf + 1]))
        return [(int(a["target"][i]), a["value"][a["index"][i]]) for i in some]
    return [(int(a["target"][leaf]) if "target" in a else 0, a["value"][leaf])]


def interpret(a: Arrays, p: TreeParams) -> None:
    """Evaluate trees_*."""
    x, y = a["in"].reshape(p.batch, p.features), a["out"].reshape(p.batch, p.targets)
    y[:] = 0
    for tree in range(p.trees):
        for row, leaf in enumerate(_leaf_of(a, p, x, tree).tolist()):
            for target, value in _entries(a, leaf):
                if p.join == "+":
                    y[row, target] += value
                elif tree == 0 or (value < y[row, target] if p.join == "<" else value > y[row, target]):
                    y[row, target] = value


_TABLES = ("in root:u8|u16|s32", "in feature:u8|u16|s32", "in threshold:f32|f64|s8|u8|s16|u16|s32",
           "in child:s8|s16|s32")  # fmt: skip
_PLACES = "u8|u16|s32"
_LEAVES: Mapping[str, tuple[str, ...]] = {
    "trees_value": ("in value:f32|f64",),
    "trees_vote": (f"in target:{_PLACES}", "in value:f32|f64"),
    "trees_rows": (f"in start:{_PLACES}", f"in target:{_PLACES}", f"in index:{_PLACES}", "in value:f32|f64"),
}
_KERNEL_OF = {tuple(text.split()[1].split(":")[0] for text in roles): name for name, roles in _LEAVES.items()}

KERNELS = tuple(
    KernelDef(name, ("in in:f32|f64|s8|u8|s16|u16|s32", *_TABLES, *leaves, "out out:f32|f64"), TreeParams, interpret,
              template="trees", doc="a forest of decision trees")
    for name, leaves in _LEAVES.items()
)  # fmt: skip

OP = OpDef("Trees", infer, derived, lower, {"targets": Int(), "join": Str("sum", words=tuple(JOINS))},
           doc="a forest of decision trees (internal)")  # fmt: skip
