"""The statistics of a tensor -> the range that its codes cover: all of it, a percentile, least divergence, least error.

Sources: percentile and entropy as TensorRT and onnxruntime describe them (Migacz, "8-bit inference with TensorRT",
2017); `mse` searches both ends of the range for the least mean square error of the histogram's values.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import numpy as np

from glowc.quant.profile import Stats, histogram
from glowc.quant.scheme import QMAX, QMIN, Params, Schema, fake, params_of

Range = tuple[float, float]
PERCENTILE = 99.99
_LEVELS = 128  # of the divergence: codes on one side of 0
_OFF_GRID = 0.01  # of a step: what rounding to float32 may do
_ROOM = 4  # times as many steps as were seen have codes, where a code is the number of steps itself
_STEPS = 40  # fractions of an end that the search for the least square error tries, down to a fifth


class Calibration(StrEnum):
    """How the range of a tensor is found."""

    AUTO = "auto"
    MINMAX = "minmax"
    PERCENTILE = "percentile"
    ENTROPY = "entropy"
    MSE = "mse"


def minmax_range(stats: Stats, _: Schema) -> Range:
    """Return the whole range."""
    return stats.low, stats.high


def percentile_range(stats: Stats, _: Schema, percentile: float = PERCENTILE) -> Range:
    """Return the range that leaves out the same share of values, in all 100 - percentile, at both ends."""
    share = (1 - percentile / 100) / 2
    below = np.cumsum(stats.histogram) / stats.histogram.sum()
    first = int(np.searchsorted(below, share, side="right"))
    last = int(np.searchsorted(below, 1 - share - 1e-12))
    return float(stats.edges[first]), float(stats.edges[min(last, len(below) - 1) + 1])


def entropy_range(stats: Stats, schema: Schema) -> Range:
    """Return the symmetric cut of the range whose coarse histogram tells least less than the fine one.

    Of few values the histogram has gaps, and a cut loses nothing that it tells: cuts with a larger square error than
    that of the whole range are none.
    """
    size = max(abs(stats.low), abs(stats.high))
    if size == 0:
        return stats.low, stats.high
    bins = len(stats.histogram)
    counts = histogram(np.abs(stats.centres), (0, size), bins, stats.histogram)
    ends = range(_LEVELS, bins + 1, max(1, bins // 128))
    filled = stats.histogram > 0
    values, weights = stats.centres[filled], stats.histogram[filled]

    def cut(end: int) -> Range:
        return max(stats.low, -size * end / bins), min(stats.high, size * end / bins)

    errors = {end: _square_error(values, weights, params_of(*cut(end), schema)) for end in (*ends, bins)}
    return cut(min((end for end in errors if errors[end] <= errors[bins]), key=lambda end: _divergence(counts, end)))


def _divergence(counts: np.ndarray, end: int) -> float:
    """Return the Kullback-Leibler divergence between counts cut off at `end` and the same in `_LEVELS` steps."""
    cut = counts[:end].copy()
    cut[-1] += counts[end:].sum()
    level = np.arange(end) * _LEVELS // end
    used = counts[:end] > 0
    total = np.bincount(level, counts[:end], _LEVELS)
    filled = np.bincount(level, used, _LEVELS)
    coarse = np.where(used, (total / np.maximum(filled, 1))[level], 0.0)
    p, q = cut / max(cut.sum(), 1e-30), coarse / max(coarse.sum(), 1e-30)
    both = p > 0
    return float(np.sum(p[both] * np.log(p[both] / np.maximum(q[both], 1e-9))))


def mse_range(stats: Stats, schema: Schema) -> Range:
    """Return the range with the least mean square error: first the upper end moves, then the lower, twice."""
    filled = stats.histogram > 0
    values, weights = stats.centres[filled], stats.histogram[filled]
    low, high = min(stats.low, 0.0), max(stats.high, 0.0)
    best = (low, high)
    for _ in range(2):
        best = _least([(best[0], high * f) for f in _fractions()], values, weights, schema)
        best = _least([(low * f, best[1]) for f in _fractions()], values, weights, schema)
    return best


def _fractions() -> np.ndarray:
    return np.linspace(1, 0.2, _STEPS + 1)


def _least(ranges: list[Range], values: np.ndarray, weights: np.ndarray, schema: Schema) -> Range:
    return min(dict.fromkeys(ranges), key=lambda r: _square_error(values, weights, params_of(r[0], r[1], schema)))


def _square_error(values: np.ndarray, weights: np.ndarray, params: Params) -> float:
    return float(np.sum(weights * np.square(values - fake(values, params))))


def grid_params(values: np.ndarray) -> Params | None:
    """Return the quantisation that holds all values exactly, when they are multiples of one step: bytes, scaled.

    Few steps keep zero point 0: a pixel of 0 to 16 is the code that it was.
    """
    levels = np.unique(values.astype(np.float64))
    if not 3 <= len(levels) <= QMAX - QMIN + 1:
        return None
    counts = np.rint(levels / np.diff(levels).min())
    step = float((levels * counts).sum() / np.square(counts).sum())
    low, high = min(0.0, np.rint(levels / step).min()), max(0.0, np.rint(levels / step).max())
    if high - low > QMAX - QMIN or np.abs(levels / step - np.rint(levels / step)).max() > _OFF_GRID:
        return None
    if _ROOM * low >= QMIN and _ROOM * high <= QMAX:
        return Params(float(np.float32(step)), 0)
    spare = QMAX - QMIN - (high - low)
    zero = QMIN if low == 0 else QMAX if high == 0 else QMIN - low + spare // 2
    return Params(float(np.float32(step)), int(zero))


RANGES: dict[Calibration, Callable[[Stats, Schema], Range]] = {
    Calibration.MINMAX: minmax_range,
    Calibration.PERCENTILE: percentile_range,
    Calibration.ENTROPY: entropy_range,
    Calibration.MSE: mse_range,
}


def range_of(stats: Stats, calibration: Calibration, schema: Schema) -> Range:
    """Return the range of a tensor by a calibration; `auto` starts from the whole range."""
    return RANGES[Calibration.MINMAX if calibration is Calibration.AUTO else calibration](stats, schema)
