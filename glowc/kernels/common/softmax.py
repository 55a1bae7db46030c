"""Softmax of int8 codes with quotients by one step of Newton, where that is proved to give the codes of the division.

With y = 1 / b rounded and q = a y rounded, q + (a - q b) y is rounded from a number that is within 2^-46 of a / b.
Codes differ from those of the quotient only if a / b is so near the middle of two floats beside the half of a code
that it lies between the two. The exponentials a are known, and those middles m: no float b is so near to a / m.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from glowc.graph.exp_factors import exp_entries
from glowc.graph.numerics import F32
from glowc.kernels.base import Prepared
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_APART = 2.0**-45


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftmaxPlan(Plan):
    """Whether one step is enough; whether the sum is scaled by a power of two, in place of each exponential."""

    once: bool
    whole: bool


def accepts_softmax(instr: Instr) -> bool:
    """Accept an axis whose elements are adjacent."""
    return instr.int_("inner") == 1


def is_once(table: np.ndarray, steps: F32, zero: int) -> bool:
    """Say whether one step gives the codes of every quotient of scaled exponentials and a sum of them."""
    parts = (table * steps).astype(np.float64)
    halves = np.arange(0.5, 128 - zero).astype(F32)
    beside = (np.nextafter(halves, F32(end)).astype(np.float64) for end in (0, np.inf))
    middles = np.concatenate([(halves + float_) / 2 for float_ in beside])
    sums = parts[parts > 0, None] / middles
    possible = sums[sums > table[0] / 2]
    return bool(np.all(np.abs(possible.astype(F32) - possible) > _APART * possible))


def prepare_softmax(constants: Arrays, instr: Instr) -> Prepared:
    """Return the plan."""
    steps, table = F32(instr.params["steps"]), constants["table"].reshape(-1)
    entries = exp_entries(table) if table.dtype == np.uint32 else table
    once = is_once(entries, steps, instr.int_("out_zp"))
    return Prepared(plan=SoftmaxPlan(once=once, whole=math.frexp(float(steps))[0] == 0.5))
