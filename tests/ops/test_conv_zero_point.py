"""Kernel cases of layers whose weights have a zero point, and of depthwise layers out of the ordinary.

Those have windows wider than the registers of a tile, or several output channels of an input channel.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.kernels.case import Case
from tests.ops.test_conv import geometry

_EDGE: dict[str, Any] = {"pads": (1, 1, 1, 1)}


def depthwise_cases(rng: np.random.Generator) -> Iterator[Case]:
    """Zero points at both ends, windows, strides, dilations, tails, rings."""
    for c, w_zp in itertools.product((3, 5, 8, 33), (-128, 127)):
        base: dict[str, Any] = {"h": 4, "w": 7, "c": c, "out_c": c, "group": c, "w_zp": w_zp}
        yield geometry(rng, **base, **_EDGE, label=f"depthwise {c}, weights from {w_zp}")
    for c in (4, 70):
        base = {"c": c, "out_c": c, "group": c, "w_zp": 11, "k": (1, 1)}
        yield geometry(rng, **base, batch=2, clamp=(-90, 80), label=f"depthwise points of {c}")
    for w_zp, (x_zp, y_zp) in itertools.product((-128, 127), ((-128, 9), (0, -128), (127, 9))):
        base = {"c": 12, "out_c": 12, "group": 12, "w_zp": w_zp, "x_zp": x_zp, "y_zp": y_zp, "extreme": True}
        yield geometry(rng, **base, **_EDGE, label=f"depthwise extreme, {w_zp}")
    for i, (k, stride) in enumerate(itertools.product(((3, 3), (5, 5), (2, 7), (8, 8)), (1, 2, 3))):
        base = {"h": 11, "w": 14, "c": 18, "out_c": 18, "group": 18, "k": k, "stride": (stride, stride)}
        if i % 2 == 0:
            yield geometry(rng, **base, pads=(2, 1, 2, 3), w_zp=-77, batch=2, label=f"depthwise window {k}")
        else:
            yield geometry(rng, **base, w_zp=100, per_channel=False, y_zp=-128, label=f"depthwise {k}, no edge")
    for dilation, down in (((2, 1), 0), ((1, 3), 1), ((2, 2), 1)):
        base = {"h": 9, "w": 13, "c": 9, "out_c": 9, "group": 9, "dilation": dilation, "descending": down}
        yield geometry(rng, **base, pads=(2, 2, 1, 3), w_zp=60, label=f"depthwise dilation {dilation}, zero point")
        yield geometry(rng, **base, w_zp=-60, rows=(1, 4), in_ring=7, out_ring=3, label="depthwise ring, zero point")


def wide_cases(rng: np.random.Generator) -> Iterator[Case]:
    """Signals: kernels of one row and many columns."""
    for (k_w, stride, w), w_zp in itertools.product(((8, 1, 31), (9, 2, 9), (11, 1, 11), (16, 2, 31)), (0, -99)):
        base: dict[str, Any] = {"h": 1, "w": w, "c": 6, "out_c": 6, "group": 6, "stride": (1, stride), "w_zp": w_zp}
        yield geometry(rng, **base, k=(1, k_w), pads=(0, k_w // 2, 0, (k_w - 1) // 2), label=f"signal {k_w}, {w}")
    yield geometry(rng, h=3, w=29, c=6, out_c=6, group=6, k=(2, 9), dilation=(1, 2), pads=(0, 9, 1, 7), label="signal")
    yield geometry(rng, h=1, w=30, c=6, out_c=6, group=6, k=(1, 9), extreme=True, batch=2, label="signal, extreme")
    yield geometry(rng, h=12, w=12, c=5, out_c=5, group=5, k=(11, 11), pads=(5, 5, 5, 5), label="large window")


def multiplied_cases(rng: np.random.Generator) -> Iterator[Case]:
    """Several output channels of every input channel."""
    for i, (c, mult) in enumerate(((4, 2), (3, 3), (8, 2), (5, 4), (17, 2), (2, 19))):
        base: dict[str, Any] = {"c": c, "out_c": mult * c, "group": c, "stride": (1 + i % 2, 1 + i % 2)}
        yield geometry(rng, h=5, w=9, **base, **_EDGE, label=f"{mult} channels of {c}")
        yield geometry(rng, h=6, w=8, **base, w_zp=99, batch=2, clamp=(-90, 80), k=(2, 5), label=f"{mult} of {c}")
    base = {"c": 6, "out_c": 12, "group": 6, "h": 6, "w": 11, "pads": (2, 2, 2, 2)}
    yield geometry(rng, **base, dilation=(2, 2), extreme=True, x_zp=127, label="two channels, dilation")
    yield geometry(rng, **base, per_channel=False, y_zp=-128, x_zp=0, label="two channels, one scale")
    yield geometry(rng, **base, rows=(1, 4), in_ring=5, out_ring=3, descending=1, label="two channels, ring")
    yield geometry(rng, **base, k=(1, 9), label="two channels, signal")


def dense_cases(rng: np.random.Generator) -> Iterator[Case]:
    """Convolutions: points, rows, planes and dilation, with tails of inputs and outputs."""
    for i, (c, w_zp) in enumerate(itertools.product((3, 16, 17, 40), (-128, 127))):
        base: dict[str, Any] = {"h": 4, "w": 7, "c": c, "out_c": 9 - i % 4, "w_zp": w_zp}
        yield geometry(rng, **base, k=(1, 1), batch=2, label=f"points of {c}, weights from {w_zp}")
        if i % 2 == 0:
            yield geometry(rng, **base, k=(1, 1), stride=(2, 2), extreme=True, label=f"points of {c}, stride")
        else:
            yield geometry(rng, **base, **_EDGE, clamp=(-90, 80), label=f"windows of {c}, weights from {w_zp}")
    for c, planar in ((1, False), (3, True), (6, False)):
        base = {"h": 7, "w": 9, "c": c, "out_c": 13, "w_zp": -77, "planar": planar, "pads": (2, 1, 2, 3)}
        yield geometry(rng, **base, dilation=(2, 3), label="dilation, zero point")
        yield geometry(rng, **base, stride=(2, 1), k=(2, 5), x_zp=127, batch=2, label="window, zero point")
        if not planar:
            yield geometry(rng, **base, rows=(1, 4), in_ring=5, out_ring=3, descending=1, label="ring, zero point")
    for w, stride in itertools.product((3, 8, 15), (1, 2)):  # a single plane under three columns
        base = {"h": 5, "w": w, "c": 1, "out_c": 5, "stride": (stride, stride), "pads": (1, 0, 1, 1)}
        yield geometry(rng, **base, label="one channel")


def kernel_cases() -> Iterator[Case]:
    """All of them."""
    yield from depthwise_cases(np.random.default_rng(21))
    yield from wide_cases(np.random.default_rng(22))
    yield from multiplied_cases(np.random.default_rng(23))
    yield from dense_cases(np.random.default_rng(24))
