"""Straight lines per channel on Helium (runtime_c/glow_mve_lines.h)."""

from __future__ import annotations

from functools import partial

from glowc.kernels.base import KernelVariant
from glowc.kernels.common.lines import is_long, pack, plan

LINES = KernelVariant(
    "mve", frozenset({"mve"}), rank=20, in_place=True, header="glow_mve_lines.h", accepts=partial(is_long, 4),
    pack=partial(pack, 4), plan=plan,
)  # fmt: skip

VARIANTS = {"lines_s8": (LINES,)}
