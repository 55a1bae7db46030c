"""Functions of floats without libm, and reals between codes of 16 bits.

runtime_c/glow_elementary.h has functions of single floats, and instruction sets the layers made of them.

Reals between codes of 16 bits are the definition on every CPU, with functions whose bits are the same on each: a last
bit of a real seldom changes a code of 8 bits, but one of thousands of 16 bits. So these instructions have the plain
variant, which adds in index order, or one with `same_bits`. exp, tanh and erf are those of runtime_c/glow_same.h; other
functions of libm are computed in double and rounded once. Layers with float weights stay as in float models.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from glowc.graph.types import DType
from glowc.program.ir import Instr, Plan

FUNCTIONS = frozenset(
    {"elu", "erf", "exp", "gelu", "gelu_tanh", "quick_gelu", "selu", "sigmoid", "swish", "tanh"}
)  # fmt: skip
"""By the names of glowc.ops.unary_table."""
SAME_FUNCTIONS = frozenset({"erf", "exp", "gelu", "quick_gelu", "sigmoid", "swish", "tanh"})
"""Those that runtime_c/glow_elementary.h computes by the operations of glowc.ops.unary_table, in the same order."""
SAME_HEADER = "glow_same.h"
_OURS = re.compile(r"\b(exp|tanh|erf)f\(")
_LIBM = re.compile(r"\b(log|log1p|log2|pow|sin|cos|tan|sinh|cosh|asin|acos|atan|asinh|acosh|atanh)f\(")


def accepts_function(instr: Instr) -> bool:
    """Accept a function of float32 that the header has."""
    return instr.params["op"] in FUNCTIONS and instr.operand("out").type.dtype is DType.F32


def accepts_same_function(instr: Instr) -> bool:
    """Accept a function of float32 that vectors compute by the operations of the plain variant."""
    return accepts_function(instr) and instr.params["op"] in SAME_FUNCTIONS


def accepts_softmax(instr: Instr) -> bool:
    """Accept an axis of two elements or more that are adjacent."""
    return instr.int_("inner") == 1 and instr.int_("n") > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SamePlan(Plan):
    """Of an instruction whose reals are the same on every CPU."""

    path: str = "same"


SAME = SamePlan()


def with_same_functions(text: str) -> str:
    """Return the C of a plain variant whose functions give the same bits on every CPU."""
    return _LIBM.sub(r"(float)\1(", _OURS.sub(r"glow_same_fn_\1(", text))
