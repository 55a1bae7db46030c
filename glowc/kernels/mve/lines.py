"""Straight lines per channel on Helium (runtime_c/glow_mve_lines.h)."""

from __future__ import annotations

from functools import partial

from glowc.kernels.base import KernelVariant
from glowc.kernels.common.lines import is_long, prepare

LINES = KernelVariant(
    "mve", rank=20, in_place=True, header="glow_mve_lines.h", accepts=partial(is_long, 4),
    prepare=partial(prepare, 4), packs=frozenset({"lines"}),
)  # fmt: skip

VARIANTS = {"lines_s8": (LINES,)}
