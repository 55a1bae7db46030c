"""Functions of single floats without libm: those of runtime_c/glow_elementary.h, and the layers made of them."""

from __future__ import annotations

from glowc.graph.types import DType
from glowc.program.ir import Instr

FUNCTIONS = frozenset(
    {"elu", "erf", "exp", "gelu", "gelu_tanh", "quick_gelu", "selu", "sigmoid", "swish", "tanh"}
)  # fmt: skip
"""By the names of glowc.ops.unary_table."""


def accepts_function(instr: Instr) -> bool:
    """Accept a function of float32 that the header has."""
    return instr.params["op"] in FUNCTIONS and instr.operand("out").type.dtype is DType.F32


def accepts_softmax(instr: Instr) -> bool:
    """Accept an axis of two elements or more that are adjacent."""
    return instr.int_("inner") == 1 and instr.int_("n") > 1
