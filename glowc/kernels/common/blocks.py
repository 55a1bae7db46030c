"""What variants of fc_f32_blocks that multiply integers share: rows of 31 bits, high and low parts multiplied apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowc.kernels.base import Prepared
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_PART = 1 << 15  # magnitudes of both parts are at most this


@dataclass(frozen=True, slots=True, kw_only=True)
class BlocksPlan(Plan):
    """`bits` of a code; `zeros`: blocks have zero points of their own; `biased`: biases are added."""

    bits: int
    zeros: bool
    biased: bool

    @property
    def half(self) -> int:
        """Codes in a halfword."""
        return 16 // self.bits


def accepts(instr: Instr, bits: int) -> bool:
    """Accept blocks of a multiple of so many bits whose sums, less those of zero points, fit in 32 bits."""
    width, block = int(instr.params["bits"]), instr.int_("block")
    return block * width % bits == 0 and _PART * ((1 << width) - 1) * block < 1 << 31


def prepare(constants: Arrays, instr: Instr) -> Prepared:
    """Leave out biases of 0."""
    biased = bool(constants["bias"].any())
    plan = BlocksPlan(bits=int(instr.params["bits"]), zeros=instr.int_("zero_step") == 1, biased=biased)
    return Prepared({} if biased else {"bias": np.zeros(1, np.float32)}, plan)


def scratch_bytes(instr: Instr) -> int:
    """Bytes of a row, and of up to four sums a block."""
    return 4 * instr.int_("blocks") * (instr.int_("block") + 4)
