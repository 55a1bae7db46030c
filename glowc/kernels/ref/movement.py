"""The plain variants of kernels that move single elements by index: what they take is not measured."""

from __future__ import annotations

from dataclasses import replace

from glowc.kernels.base import PLAIN
from glowc.kernels.features import Stated

VARIANTS = {
    "scatter": (replace(PLAIN, stated=Stated(inputs=20)),),
    **{f"gather_b{size}": (replace(PLAIN, stated=Stated(outputs=42)),) for size in (1, 2, 4, 8)},
}
