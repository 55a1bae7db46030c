"""LSTM and SVDF of TensorFlow Lite on Advanced SIMD: four rows of weights at a time."""

from __future__ import annotations

from glowc.kernels.common.rows_of_weights import rows_variants

VARIANTS = rows_variants(("a64", "a32"), "neon", 0.6)
