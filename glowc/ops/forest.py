"""Decision trees as arrays: what frontends make of a file, what passes simplify, what the lowering lays out.

A split sends x[feature] <= threshold to its first child and the rest to its second; `low` says where NaN goes to the
first. A reference r >= 0 is split r, r < 0 is leaf ~r. Leaf l has the entries start[l] .. start[l + 1] - 1, each a
weight for a target. Splits may be shared: a tree is a graph without circles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from glowc.ops.base import OpError

Ref = int
Entries = tuple[tuple[int, float], ...]
"""Targets of a leaf with their weights."""


@dataclass(frozen=True, slots=True)
class Split:
    """One split; `threshold` is compared in the kind of the features."""

    feature: int
    threshold: float
    low: bool
    first: Ref
    second: Ref


@dataclass(frozen=True, slots=True)
class Forest:
    """Trees by their roots; leaves are shared by all of them."""

    roots: tuple[Ref, ...]
    splits: tuple[Split, ...]
    leaves: tuple[Entries, ...]

    @staticmethod
    def of(arrays: Sequence[np.ndarray]) -> Forest:
        """Return the forest of root[t], feature[n], threshold[n], low[n], child[n, 2], start[l + 1], target, weight.

        Raises OpError for arrays that do not fit each other.
        """
        root, feature, threshold, low, child, start, target, weight = arrays
        n, steps = feature.size, np.diff(start)
        fits = threshold.shape == low.shape == (n,) and child.shape == (n, 2) and start.size > 1
        if not fits or (steps < 0).any() or start[0] != 0 or start[-1] != target.size or target.size != weight.size:
            raise OpError("the arrays of its trees do not fit each other")
        columns = zip(feature.tolist(), threshold.tolist(), low.astype(bool).tolist(), *child.T.tolist(), strict=True)
        entries = list(zip(target.tolist(), weight.tolist(), strict=True))
        leaves = tuple(tuple(entries[a:b]) for a, b in zip(start[:-1].tolist(), start[1:].tolist(), strict=True))
        return Forest(tuple(root.tolist()), tuple(Split(*row) for row in columns), leaves)

    def arrays(self, kind: np.dtype[np.generic], weight: np.dtype[np.generic]) -> tuple[np.ndarray, ...]:
        """Return what `of` takes, thresholds and weights in these kinds."""
        counts = [len(leaf) for leaf in self.leaves]
        entries = [entry for leaf in self.leaves for entry in leaf]
        return (
            np.array(self.roots, np.int32),
            np.array([s.feature for s in self.splits], np.int32),
            np.array([s.threshold for s in self.splits], kind),
            np.array([s.low for s in self.splits], np.uint8),
            np.array([(s.first, s.second) for s in self.splits], np.int32).reshape(-1, 2),
            np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int32),
            np.array([target for target, _ in entries], np.int32),
            np.array([value for _, value in entries], weight),
        )

    def check(self, features: int, targets: int) -> None:
        """Raise OpError for references, features and targets that do not exist, and for circles."""
        refs = (*self.roots, *(r for s in self.splits for r in (s.first, s.second)))
        if not refs or not all(-len(self.leaves) <= r < len(self.splits) for r in refs):
            raise OpError("a child is neither a split nor a leaf of its trees")
        if any(not 0 <= s.feature < features for s in self.splits):
            worst = max(self.splits, key=lambda s: (s.feature < 0, s.feature)).feature
            raise OpError(f"a split reads feature {worst} of {features}")
        if any(not 0 <= target < targets for leaf in self.leaves for target, _ in leaf):
            raise OpError(f"a leaf has a target that is none of {targets}")
        for root in self.roots:
            for _ in self.upwards(root):
                pass

    def upwards(self, root: Ref) -> Iterator[Ref]:
        """Yield the splits below a reference once each, children before parents. Raises OpError for a circle."""
        done: dict[Ref, bool] = {}
        stack = [root]
        while stack:
            at = stack[-1]
            if at < 0 or done.get(at):
                stack.pop()
                continue
            below = [r for r in (self.splits[at].second, self.splits[at].first) if r >= 0 and not done.get(r)]
            if not below:
                done[stack.pop()] = True
                yield at
            elif any(r in done for r in below):
                raise OpError(f"the splits of tree {self.roots.index(root)} go in a circle")
            else:
                done[at] = False
                stack += below

    def simplified(self) -> Forest:
        """Return a forest of the same answers: each split decides something, equal ones and equal leaves are one."""
        numbers: dict[Entries, int] = {}
        leaf_of = [~numbers.setdefault(leaf, len(numbers)) for leaf in self.leaves]
        splits: list[Split] = []
        roots = []
        for root in self.roots:
            new: dict[Ref, Ref] = {}
            known: dict[Split, Ref] = {}
            for at in self.upwards(root):
                split = self.splits[at]
                first, second = (new[r] if r >= 0 else leaf_of[~r] for r in (split.first, split.second))
                never = split.threshold != split.threshold and not split.low
                split = replace(split, first=first, second=second)
                if never or first == second:
                    new[at] = second
                elif split in known:
                    new[at] = known[split]
                else:
                    new[at] = known[split] = len(splits)
                    splits.append(split)
            roots.append(new[root] if root >= 0 else leaf_of[~root])
        return Forest(tuple(roots), tuple(splits), tuple(numbers))._reached()

    def _reached(self) -> Forest:
        """Return the forest without splits and leaves that no root leads to."""
        place = {at: i for i, at in enumerate(dict.fromkeys(at for root in self.roots for at in self.upwards(root)))}
        kept = [self.splits[at] for at in place]
        refs = (*self.roots, *(r for split in kept for r in (split.first, split.second)))
        place |= {r: ~i for i, r in enumerate(dict.fromkeys(r for r in refs if r < 0))}
        return Forest(
            tuple(place[root] for root in self.roots),
            tuple(replace(split, first=place[split.first], second=place[split.second]) for split in kept),
            tuple(self.leaves[~r] for r in place if r < 0),
        )

    def with_thresholds(self, code_of: Callable[[int, float], int], least: int, most: int) -> Forest:
        """Return the forest on codes: `code_of(feature, t)` is the greatest code whose value is at most t.

        It is below `least` where none is, and at least `most` where all are.
        """

        def turned(split: Split) -> Split:
            code = code_of(split.feature, split.threshold)
            if code < least or code >= most:
                kept = split.second if code < least else split.first
                return replace(split, threshold=least, low=False, first=kept, second=kept)
            return replace(split, threshold=code, low=False)

        return replace(self, splits=tuple(map(turned, self.splits))).simplified()
