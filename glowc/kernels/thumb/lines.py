"""Straight lines per channel on Thumb-2 (runtime_c/glow_m3_lines.h)."""

from __future__ import annotations

from functools import partial

from glowc.kernels.base import KernelVariant
from glowc.kernels.common.lines import is_long, prepare
from glowc.program.ir import Instr


def is_full(instr: Instr) -> bool:
    """Accept results that are limited to int8 and nothing narrower."""
    return (instr.int_("out_min"), instr.int_("out_max")) == (-128, 127) and is_long(3, instr)


LINES = KernelVariant(
    "v7m", rank=5, in_place=True, header="glow_m3_lines.h", accepts=is_full,
    prepare=partial(prepare, 1), packs=frozenset({"lines"}),
)  # fmt: skip

VARIANTS = {"lines_s8": (LINES,)}
