"""Straight lines in integers through given codes: what pass fuse-channel-lines puts in the place of float arithmetic.

A line is (m, b, s) with y = (m * x + b) >> s for all 256 codes x. It gives y exactly when y * 2^s <= m * x + b
< (y + 1) * 2^s; where y is clamped, one side is free. For a given m the range of b is max(low - m * x) .. min(high -
m * x): its width is concave in m, so that a ternary search over integers finds the best m of every channel.
"""

from __future__ import annotations

import numpy as np

CODES = np.arange(-128, 128, dtype=np.int64)
SHIFTS = (23, 21, 18, 15, 12, 8, 4)
_ROUGH = 15
_FREE = np.int64(1) << 17  # codes beyond a clamp: far enough for slopes up to 500
_INT32 = np.int64(2**31 - 1)


def lines_through(table: np.ndarray, low: int, high: int) -> np.ndarray | None:
    """Return int32[channels, 3 or 7] (see `glowc.ops.channel_lines`) for int64 codes table[channels, 256].

    `low` and `high` are the clamp; None when two lines do not suffice.
    """
    lines, found = _fit(table, low, high, np.ones(table.shape, np.bool_))
    if found.all():
        return lines.astype(np.int32)
    both = np.concatenate([lines, lines, np.zeros((len(lines), 1), np.int64)], axis=1)
    bent = table[~found]
    first = _longest(bent, low, high)
    early = np.arange(-128, 128) < first[:, None]
    before, fits = _fit(bent, low, high, early)
    behind, rest = _fit(bent, low, high, ~early)
    both[~found] = np.concatenate([before, behind, first[:, None]], axis=1)
    return both.astype(np.int32) if (fits & rest).all() else None


def _longest(table: np.ndarray, low: int, high: int) -> np.ndarray:
    """Return per channel the code behind the longest beginning that one line goes through, of any size."""
    begin, end = np.full(len(table), -127), np.full(len(table), 128)
    while np.any(begin < end):
        middle = (begin + end + 1) // 2
        bounds = _bounds(table, low, high, np.arange(-128, 128) < middle[:, None], _ROUGH)
        found = _best(*bounds, 256 << _ROUGH)[2] >= 0
        begin, end = np.where(found, middle, begin), np.where(found, end, middle - 1)
    return begin


def _fit(table: np.ndarray, low: int, high: int, used: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a line per channel through the codes `used`, with the finest shift that fits int32; and which exist."""
    lines, found = np.zeros((len(table), 3), np.int64), np.zeros(len(table), np.bool_)
    for shift in SHIFTS:
        left = np.flatnonzero(~found)
        codes, mine = table[left], used[left]
        m, b, width = _best(*_bounds(codes, low, high, mine, shift), 256 << shift)
        largest = np.maximum(np.abs(m * -128 + b), np.abs(m * 127 + b))
        good = (width >= 0) & (np.maximum(largest, np.abs(b)) <= _INT32) & (np.abs(m) <= _INT32 // 128)
        lines[left[good]] = np.stack([m, b, np.full(len(m), shift)], axis=1)[good]
        found[left[good]] = True
        if found.all():
            break
    return lines, found


def _bounds(table: np.ndarray, low: int, high: int, used: np.ndarray, shift: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and largest m * x + b that give each code."""
    floor = np.where(used & (table > low), table, -_FREE) << shift
    return floor, (np.where(used & (table < high), table + 1, _FREE) << shift) - 1


def _best(floor: np.ndarray, ceiling: np.ndarray, reach: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return m with the widest range of b, the middle of that range, and its width (negative: there is none)."""
    left, right = np.full(len(floor), -reach, np.int64), np.full(len(floor), reach, np.int64)

    def width(m: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        lowest = (floor - m[:, None] * CODES).max(axis=1)
        highest = (ceiling - m[:, None] * CODES).min(axis=1)
        return lowest, highest

    while np.any(left < right):
        middle = (left + right) >> 1
        here, there = width(middle), width(middle + 1)
        rises = there[1] - there[0] > here[1] - here[0]
        left, right = np.where(rises, np.minimum(middle + 1, right), left), np.where(rises, right, middle)
    lowest, highest = width(left)
    return left, (lowest + highest) >> 1, highest - lowest
