"""Tables for cores without SIMD: lut_s8 in the order of the codes as unsigned bytes, which need no sign extension."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from glowc.kernels.base import KernelVariant
from glowc.program.ir import Instr
from glowc.program.kernel import Arrays


def _pack(constants: Arrays, _: Instr) -> Arrays:
    return {"lut": np.roll(constants["lut"].reshape(-1), 128)}


_M3 = KernelVariant("m3", frozenset({"thumb2"}), rank=5, in_place=True, pack=_pack)
LUT = (_M3, replace(_M3, isa="m0", needs=frozenset({"thumb1"})))

VARIANTS = {
    "lut_s8": LUT,
}
