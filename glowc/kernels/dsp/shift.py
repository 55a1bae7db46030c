"""Endings by multiplication and shift in 32 bits, where that is proved to give the code of the definition in 64 bits.

A sum is limited to 22 bits, then (sum * mul + offset) >> shift is one multiply-accumulate and one shift, the zero point
being in the offset.
"""

from __future__ import annotations

import numpy as np

from glowc.kernels.common.header_numbers import header_number
from glowc.program.ir import Instr
from glowc.program.kernel import Arrays

_WORD = 1 << 31


def _short() -> tuple[int, int]:
    """Return the least and the greatest sum that glow_short_sum leaves as it is."""
    half = 1 << header_number("glow_dsp_shift.h", "GLOW_SHORT_BITS") - 1
    return -half, half - 1


def short_offset(low: np.ndarray, high: np.ndarray, constants: Arrays, instr: Instr) -> np.ndarray | None:
    """Return the offset with the zero point in it as int32, or None; sums lie between `low` and `high`."""
    shift = instr.int_("shift")
    offset = constants["offset"].astype(object) + (instr.int_("out_zp") << shift)
    if not 0 < shift < 32:
        return None
    ends = [low.astype(object), np.clip(low, *_short()).astype(object)]
    ends += [high.astype(object), np.clip(high, *_short()).astype(object)]
    products = [end * constants["mul"].astype(object) + offset for end in ends]
    codes = [np.clip(product >> shift, instr.int_("out_min"), instr.int_("out_max")) for product in products]
    same = all(np.array_equal(codes[i], codes[i + 1]) for i in (0, 2))
    fits = all(-_WORD <= value < _WORD for i in (1, 3) for value in products[i])
    fits = fits and all(-_WORD <= value < _WORD for value in offset)
    return offset.astype(np.int32) if same and fits else None
