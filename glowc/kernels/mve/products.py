"""Products of two int16 tensors on VMLALDAVA."""

from __future__ import annotations

from glowc.kernels.common.products import product_variants

VARIANTS = product_variants(("mve",), "mve", 0.5, rank=21)
