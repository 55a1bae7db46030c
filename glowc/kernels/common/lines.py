"""Straight lines per channel on Helium, Advanced SIMD and Thumb-2: how (m, b, s) lie, and which layers take them.

Where the channels are the last axis (`rank` 1) a table of whole pixels is packed, long enough for vectors: in blocks of
`width` channels, of each block [m, b, s] or [first, m, b, s, m', b', s']. Else of one channel after the other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from glowc.kernels.base import Prepared
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_LONGEST = 32  # channels of a table that repeats them to fill vectors
_LEAST = 16
_VECTOR = 8
_ORDER = {3: [0, 1, 2], 7: [6, 0, 1, 2, 3, 4, 5]}
_SHIFTS = {3: [2], 7: [3, 6]}


def period(instr: Instr) -> int:
    """Return the lines of the packed table: whole pixels where the channels are the last axis."""
    channels = instr.int_("channels")
    if instr.int_("rank") != 1:
        return channels
    whole = math.lcm(channels, _VECTOR)
    return whole if _LEAST <= whole <= _LONGEST else -(-_LEAST // channels) * channels


@dataclass(frozen=True, slots=True, kw_only=True)
class LinesPlan(Plan):
    """`period`: lines of the packed table."""

    period: int


def prepare(width: int, constants: Arrays, instr: Instr) -> Prepared:
    """Return the lines in blocks of `width` channels; vectors shift to the left by a negative number."""
    lines = constants["lines"]
    columns = lines.shape[1]
    table = np.tile(lines[:, _ORDER[columns]], (period(instr) // len(lines), 1))
    if width > 1:
        table[:, _SHIFTS[columns]] *= -1
    if instr.int_("rank") == 1:
        table = np.pad(table, ((0, -len(table) % width), (0, 0)))
        table = table.reshape(-1, width, columns).transpose(0, 2, 1)
    packed = np.ascontiguousarray(table).reshape(-1, columns)
    return Prepared({"lines": packed}, LinesPlan(period=period(instr)))


def is_long(least: int, instr: Instr) -> bool:
    """Accept adjacent channels, and rows of at least `least` codes of one channel."""
    return instr.int_("rank") == 1 or instr.int_("inner") >= least
