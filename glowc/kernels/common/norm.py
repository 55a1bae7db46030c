"""Rows of codes that are normalised: in how many bits their spread is computed."""

from __future__ import annotations

from dataclasses import dataclass

from glowc.kernels.base import Prepared
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_WIDEST = 255  # of a code of 8 bits less its zero point


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadPlan(Plan):
    """`word`: the C type that holds n times the sum of squares of a row, and the square of its sum."""

    word: str


def prepare_spread(_: Arrays, instr: Instr) -> Prepared:
    """Return the plan of layer_norm_s8: 32 bits hold the spread of up to 257 codes."""
    is_short = (instr.int_("n") * _WIDEST) ** 2 < 1 << 32
    return Prepared(plan=SpreadPlan(word="uint32_t" if is_short else "int64_t"))
