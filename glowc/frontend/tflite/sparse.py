"""Sparse constants -> the places of their elements in the dense tensor. Source: SparsityParameters of the schema.

The levels of the tree are the axes in the order of traversal, then the axes of the blocks. A dense level has all of its
indices; a sparse one has those that `array_indices` names, from `array_segments[i]` to the next for node i of the level
above.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glowc.frontend.problems import NodeError


@dataclass(frozen=True, slots=True)
class Level:
    """One level: the size of a dense one, else segments and indices."""

    size: int
    segments: np.ndarray | None = None
    indices: np.ndarray | None = None


def places(shape: Sequence[int], order: Sequence[int], blocks: Sequence[int], levels: Sequence[Level]) -> np.ndarray:
    """Return the place of each stored element in the flat dense tensor; NodeError where the tree does not fit."""
    rank = len(shape)
    if sorted(order) != list(range(rank + len(blocks))) or len(levels) != len(order) or len(set(blocks)) < len(blocks):
        raise NodeError(f"its {len(levels)} levels in the order {list(order)} do not fit the shape {list(shape)}")
    node, found = np.zeros(1, np.int64), np.zeros((len(order), 1), np.int64)
    sizes = [0] * len(order)
    for level, axis in zip(levels, order, strict=True):
        if level.size < 0 or level.size * node.size > math.prod(shape):
            raise NodeError(f"it has more elements than its shape {list(shape)}")
        node, above, index = _children(level, node)
        found = found[:, above]
        found[axis], sizes[axis] = index, level.size
    for k, axis in enumerate(blocks):
        if not 0 <= axis < rank:
            raise NodeError(f"blocks of axis {axis}")
        found[axis] = found[axis] * sizes[rank + k] + found[rank + k]
    inside = [(found[i] >= 0) & (found[i] < n) for i, n in enumerate(shape)]
    if not np.all(inside):
        raise NodeError(f"it has elements outside of its shape {list(shape)}")
    return np.asarray(np.ravel_multi_index(tuple(found[:rank]), tuple(shape)))


def _children(level: Level, node: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the nodes of a level, which of the nodes above each is of, and its index."""
    if level.segments is None or level.indices is None:
        index = np.tile(np.arange(level.size), node.size)
        return np.repeat(node, level.size) * level.size + index, np.repeat(np.arange(node.size), level.size), index
    segments = level.segments
    if segments.size < node.max(initial=0) + 2 or np.any(np.diff(segments) < 0) or segments[0] < 0:
        raise NodeError("its segments do not fit its levels")
    counts = segments[node + 1] - segments[node]
    above = np.repeat(np.arange(node.size), counts)
    first = np.cumsum(counts) - counts
    child = np.arange(above.size) - first[above] + segments[node][above]
    if child.size and child.max() >= level.indices.size:
        raise NodeError("its segments do not fit its indices")
    return child, above, level.indices[child]
