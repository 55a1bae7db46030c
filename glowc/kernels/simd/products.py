"""Products of two int16 tensors on Advanced SIMD."""

from __future__ import annotations

from glowc.kernels.common.products import product_variants

VARIANTS = product_variants(("a64", "a32"), "neon", 0.6)
