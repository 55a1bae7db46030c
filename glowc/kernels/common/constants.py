"""Constants that variants share: what stands for biases and scales that lie in the stream of the weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowc.graph.types import DType
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

EMPTY: Arrays = {"bias": np.zeros(1, np.int32), "scale": np.zeros(1, np.float32)}

WEIGHTED = frozenset({"weights", "bias", "scale"})
"""The constants of a layer on codes."""
SHIFTED = frozenset({"weights", "mul", "offset"})
"""The constants of a layer that ends in a multiplication and a shift."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerPlan(Plan):
    """Of a layer on codes: the names of the operands that its biases and scales are, or what stands for them.

    A layer that ends in a shift has two others in their place (glowc/kernels/common/float_shift.py).
    """

    biases: str = "bias"
    scales: str = "scale"


def padded(count: int, grain: int) -> int:
    """Return `count` rounded up to a multiple of `grain`."""
    return -(-count // grain) * grain


def accepts_codes(instr: Instr) -> bool:
    """Accept int8 inputs, weights and outputs."""
    return all(instr.operand(role).type.dtype is DType.S8 for role in ("in", "weights", "out"))
