"""Weights of few bits on the DSP extension (runtime_c/dsp/glow_dsp_unpack.h)."""

from __future__ import annotations

from glowc.kernels.base import KernelVariant
from glowc.kernels.common.narrow import unpacking

VARIANTS = unpacking(KernelVariant("dsp", rank=10), 1, "glow_dsp_unpack.h")
