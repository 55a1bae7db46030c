"""push_b* on Armv7-M: windows of time steps move up by blocks of eight words (glow_thumb_move.h)."""

from __future__ import annotations

from glowc.kernels.base import KernelVariant
from glowc.kernels.common.header_numbers import header_number
from glowc.program.ir import Instr


def _accepts(instr: Instr) -> bool:
    """Accept windows that keep a block."""
    kept = instr.int_("keep") * instr.operand("window").type.dtype.bytes
    return kept >= header_number("glow_thumb_move.h", "GLOW_MOVE_BLOCK")


PUSH = KernelVariant("v7m", rank=5, header="glow_thumb_move.h", accepts=_accepts)

VARIANTS = {f"push_b{size}": (PUSH,) for size in (1, 2, 4, 8)}
