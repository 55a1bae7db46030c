"""Products of two int16 tensors on SMLALD."""

from __future__ import annotations

from glowc.kernels.common.products import product_variants

VARIANTS = product_variants(("dsp",), "dsp", 1.8)
