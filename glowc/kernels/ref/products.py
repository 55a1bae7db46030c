"""The plain variant of products of two int16 tensors: its sums have 64 bits."""

from __future__ import annotations

from dataclasses import replace

from glowc.kernels.base import PLAIN

VARIANTS = {"matmul_s16": (replace(PLAIN, header="glow_products.h"),)}
