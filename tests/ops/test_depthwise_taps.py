"""Depthwise convolution beyond test_conv: zero points of weights, several outputs a channel, wide kernel rows."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from glowc.graph.types import DType
from tests.kernels.case import Case
from tests.ops.test_conv import geometry

KERNELS = "simd"


def kernel_cases() -> Iterator[Case]:
    """Zero points at both ends, widths of a kernel row, strides with dilations, rings, several outputs a channel."""
    rng = np.random.default_rng(16)
    edge: dict[str, Any] = {"pads": (1, 2, 2, 1)}
    ring: dict[str, Any] = {"rows": (1, 4), "in_ring": 6, "out_ring": 3}
    for c, w_zp, x_zp in itertools.product((2, 8, 27), (-128, -7, 127), (-128, 127)):
        base: dict[str, Any] = {"c": c, "out_c": c, "group": c, "w_zp": w_zp, "x_zp": x_zp, "extreme": True}
        yield geometry(rng, h=5, w=10, **base, **edge, batch=2, y_zp=-128, label=f"depthwise, weights from {w_zp}")
    for k_w, stride in itertools.product((1, 2, 4, 5, 6, 7, 8, 9, 11, 16, 17, 20), (1, 2)):
        wide: dict[str, Any] = {"c": 9, "out_c": 9, "group": 9, "k": (1, k_w), "stride": (1, stride), "w_zp": 4}
        yield geometry(rng, h=1, w=19, **wide, pads=(0, k_w // 2, 0, k_w // 2), label=f"depthwise row of {k_w}")
        yield geometry(rng, h=2, w=30, **wide, clamp=(-60, 90), label=f"depthwise row of {k_w}, no edge")
    for stride, dilation in itertools.product((1, 2, 3), (1, 2, 3)):
        spread: dict[str, Any] = {"c": 12, "out_c": 12, "group": 12, "w_zp": -5, "stride": (stride, stride)}
        spread["dilation"] = (dilation, dilation)
        yield geometry(rng, h=9, w=16, **spread, pads=(2, 2, 2, 2), label=f"depthwise {stride} x {dilation}")
        yield geometry(rng, h=9, w=9, **spread, k=(2, 3), **edge, **ring, descending=1, label="depthwise, ring")
    for c, many in ((2, 2), (3, 7), (3, 2), (8, 3), (9, 8), (16, 2), (20, 4)):
        several: dict[str, Any] = {"c": c, "out_c": c * many, "group": c}
        yield geometry(rng, h=4, w=6, **several, **edge, label=f"{many} outputs a channel")
        yield geometry(rng, h=4, w=3, **several, **edge, w_zp=127, extreme=True, label=f"{many} outputs, extreme")
        yield geometry(rng, h=4, w=5, **several, **edge, w_dtype=DType.S16, batch=2, label=f"{many} outputs, 16 bits")
    for c, k in itertools.product((3, 8, 21), ((3, 3), (1, 9), (1, 18))):
        pads = (k[0] // 2, k[1] // 2, k[0] // 2, k[1] // 2)
        yield geometry(
            rng, h=4, w=11, c=c, out_c=c, group=c, k=k, pads=pads, w_dtype=DType.S16, y_zp=-128, label="depthwise w16"
        )
