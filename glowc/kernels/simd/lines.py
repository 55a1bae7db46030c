"""Straight lines per channel on Advanced SIMD (runtime_c/simd/glow_neon_lines.h)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from glowc.kernels.base import KernelVariant
from glowc.kernels.common.lines import is_long, prepare

_CODES = 8  # of a channel that are worth a vector

_A64 = KernelVariant(
    "a64", rank=30, in_place=True, header="glow_neon_lines.h",
    accepts=partial(is_long, _CODES), prepare=partial(prepare, 4), packs=frozenset({"lines"}),
)  # fmt: skip
LINES = (_A64, replace(_A64, isa="a32"))

VARIANTS = {"lines_s8": LINES}
