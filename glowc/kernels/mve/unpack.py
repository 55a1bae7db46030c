"""Weights of few bits on Helium (runtime_c/mve/glow_mve_unpack.h)."""

from __future__ import annotations

from dataclasses import replace

from glowc.kernels.common.narrow import holds_bytes, unpacking
from glowc.kernels.mve.shared import FAST

VARIANTS = unpacking(replace(FAST, accepts=holds_bytes), 4, "glow_mve_unpack.h")
