"""Tables for cores without SIMD: lut_s8 in the order of the codes as unsigned bytes, which need no sign extension."""

from __future__ import annotations

import numpy as np

from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.thumb.forms import both
from glowc.program.ir import Instr
from glowc.program.kernel import Arrays


def prepare(constants: Arrays, _: Instr) -> Prepared:
    """Return the table in the order of the codes as unsigned bytes."""
    return Prepared({"lut": np.roll(constants["lut"].reshape(-1), 128)})


LUT = both(KernelVariant("v7m", rank=5, in_place=True, prepare=prepare, packs=frozenset({"lut"})))

VARIANTS = {
    "lut_s8": LUT,
}
