"""Reals between codes of 16 bits: the definition on every CPU, with functions whose bits are the same on each.

A last bit of a real seldom changes a code of 8 bits, but one of thousands of 16 bits. So these instructions have the
plain variant, which adds in index order. exp, tanh and erf are those of runtime_c/glow_same.h; other functions of libm
are computed in double and rounded once. Layers with float weights stay as in float models.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from glowc.program.ir import Plan

HEADER = "glow_same.h"
_OURS = re.compile(r"\b(exp|tanh|erf)f\(")
_LIBM = re.compile(r"\b(log|log1p|log2|pow|sin|cos|tan|sinh|cosh|asin|acos|atan|asinh|acosh|atanh)f\(")


@dataclass(frozen=True, slots=True, kw_only=True)
class SamePlan(Plan):
    """Of an instruction whose reals are the same on every CPU."""

    path: str = "same"


SAME = SamePlan()


def with_same_functions(text: str) -> str:
    """Return the C of a plain variant whose functions give the same bits on every CPU."""
    return _LIBM.sub(r"(float)\1(", _OURS.sub(r"glow_same_fn_\1(", text))
