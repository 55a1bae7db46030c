"""LSTM and SVDF of TensorFlow Lite on VMLADAVA: four rows of weights at a time."""

from __future__ import annotations

from glowc.kernels.common.rows_of_weights import rows_variants

VARIANTS = rows_variants(("mve",), "mve", 0.4, rank=21)
