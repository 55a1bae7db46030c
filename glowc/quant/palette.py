"""A palette for the weights of a layer: 16 or 4 int8 codes for all channels, each with a scale of its own.

Weights in units of their channel's size are put into classes so that the squares of what is left, weighted by how large
the inputs are, sum up to the least: k-means of one dimension, exactly, on a histogram, by the recursion of Fisher ("On
Grouping for Maximum Homogeneity", 1958). Scales and classes take turns. Codes that were fitted to sample data give a
better palette in turn: the one with which the error of the sums is the least, a system of linear equations.
"""

from __future__ import annotations

import numpy as np

from glowc.quant.scheme import LARGEST_CODE
from glowc.quant.weight_types import NIBBLE, Array, Grid, WeightType

_BINS = 384
_TURNS = 6
_PRODUCTS = 4.0e9  # most multiply-accumulates of a system of equations


def first_palette(target: Array, form: Array | None, least: Array, kind: WeightType) -> tuple[Grid, Array]:
    """Return a palette for weights [group][channel][weight] and the scales [group][channel], of `least` at least.

    `form` [group][weight][weight] is the quadratic form of the sums' error; without one all weights count alike.
    """
    weight = np.ones(target.shape[::2]) if form is None else np.diagonal(form, axis1=1, axis2=2)
    weight = np.broadcast_to(weight[:, None, :], target.shape)
    sizes = np.maximum(np.sqrt(np.square(target).mean(axis=2)), np.maximum(least, 1e-30))
    levels = np.zeros(1)
    for _ in range(_TURNS):
        levels = _classes(target / sizes[..., None], weight * np.square(sizes)[..., None], 1 << kind.bits)
        levels = _with_zero(levels, 1 << kind.bits)
        near = _nearest(levels, target / sizes[..., None])
        sizes = _fitting(sizes, (weight * near * target).sum(axis=2), (weight * near * near).sum(axis=2))
    return _rounded(levels, sizes, least, kind)


def better_palette(
    target: Array, form: Array, least: Array, grid: Grid, scales: Array, codes: Array
) -> tuple[Grid, Array]:  # fmt: skip
    """Return the palette and the scales with which weights of these codes err least."""
    levels = np.asarray(grid.palette, np.float64)
    groups, channels, depth = target.shape
    step = max(1, round(groups * channels * depth * depth * len(levels) / _PRODUCTS))
    some, size = target[:, ::step], scales[:, ::step, None]
    chosen = (codes[:, ::step, None, :] == levels[:, None]) * size[..., None]  # [group][channel][level][weight]
    weighed = np.matmul(chosen, form[:, None])
    left = np.einsum("gokc,golc->kl", weighed, chosen, optimize=True)
    right = np.einsum("gokc,goc->k", weighed, some, optimize=True)
    used = np.diag(left) > 0
    ridge = 1e-6 * np.trace(left) / len(levels)  # codes that no weight has stay
    found = np.linalg.solve(left + ridge * np.eye(len(levels)), right + ridge * levels)
    levels = np.where(used & ((levels != 0) | (grid.kind.bits != NIBBLE)), found, levels)
    near = levels[np.searchsorted(np.asarray(grid.palette), codes)]
    weighed = np.matmul(near, form)
    scales = _fitting(scales, (weighed * target).sum(axis=2), (weighed * near).sum(axis=2))
    return _rounded(levels, scales, least, grid.kind)


def _fitting(scales: Array, product: Array, square: Array) -> Array:
    """Return the scales of least squares; those that were where none is positive."""
    good = (product > 0) & (square > 0)
    return np.where(good, product / np.where(good, square, 1.0), scales)


def _nearest(levels: Array, values: Array) -> Array:
    return np.asarray(levels[np.searchsorted((levels[1:] + levels[:-1]) / 2, values)])


def _with_zero(levels: Array, most: int) -> Array:
    """Return levels with 0 among them where 16 are allowed, since kernels fill up their blocks with zeros."""
    if most < 1 << NIBBLE:
        return levels
    if len(levels) == most:
        levels = np.delete(levels, np.argmin(np.abs(levels)))
    return np.union1d(levels, [0.0])


def _rounded(levels: Array, scales: Array, least: Array, kind: WeightType) -> tuple[Grid, Array]:
    """Return int8 codes, the largest at the end of its range unless scales would fall below the least."""
    most = LARGEST_CODE / max(float(np.abs(levels).max()), 1e-30)
    factor = min(most, float(np.median(scales / least)))
    codes = np.clip(np.rint(levels * factor), -LARGEST_CODE, LARGEST_CODE)
    palette = tuple(sorted({int(code) for code in codes}))
    return Grid(kind, palette), np.asarray(np.maximum(scales / factor, least))


def _classes(values: Array, weights: Array, count: int) -> Array:
    """Return the means of so many classes of values with the least weighted sum of squares, ascending."""
    edge = max(float(np.abs(values).max()), 1e-30)
    bins = np.clip(((values / edge + 1) * (_BINS / 2)).astype(np.int64), 0, _BINS - 1).reshape(-1)
    mass = np.bincount(bins, weights.reshape(-1), _BINS)
    first = np.bincount(bins, (weights * values).reshape(-1), _BINS)
    middle = (np.arange(_BINS) + 0.5) * (2 * edge / _BINS) - edge
    second = np.where(mass > 0, first * first / np.where(mass > 0, mass, 1.0), 0.0)
    used = np.flatnonzero(mass > 0)
    mass, first, second, middle = mass[used], first[used], second[used], middle[used]
    if len(used) <= count:
        return np.sort(first / mass)
    sums = [np.concatenate(([0.0], np.cumsum(part))) for part in (mass, first, second)]
    m, f, s = (part[None, 1:] - part[:-1, None] for part in sums)  # of bins i to j
    cost = np.where(m > 0, s - np.square(f) / np.where(m > 0, m, 1.0), np.inf)
    cost[np.tril_indices(len(used), -1)] = np.inf
    best, begins = cost[0], []
    for _ in range(count - 1):
        tried = best[:-1, None] + cost[1:]  # the last class begins after bin i
        begins.append(np.concatenate(([0], 1 + np.argmin(tried, axis=0)[1:])))
        best = np.concatenate(([0.0], tried.min(axis=0)[1:]))
    return _means(begins, mass, first)


def _means(begins: list[Array], mass: Array, first: Array) -> Array:
    """Return the means of the classes, which begin where the last one does, and the one before it, and so on."""
    end, found = len(mass), []
    for begin in [*begins[::-1], np.zeros(len(mass), np.int64)]:
        start = int(begin[end - 1]) if end else 0
        if start < end:
            found.append(first[start:end].sum() / mass[start:end].sum())
        end = start
    return np.sort(np.asarray(found))
