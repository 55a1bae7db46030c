"""The layers that scripts/fit_costs.py measures: shapes around those of small networks (models: cost_models.py)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

from cost_forms import forms
from cost_sample import LATER, PLAIN, SAME, Sample, conv
from cost_small_chips import small_chips


def _convolutions() -> Iterator[Sample]:
    for h, w, c, out_c, stride in (
        (10, 10, 64, 64, 1), (6, 6, 128, 128, 1), (20, 20, 8, 16, 1), (12, 12, 16, 32, 2), (3, 3, 256, 128, 1),
        (25, 5, 32, 64, 1), (7, 9, 30, 20, 1), (5, 5, 6, 10, 1), (24, 24, 16, 8, 1), (4, 4, 64, 256, 1),
        (8, 8, 12, 7, 1), (16, 16, 48, 16, 1), (16, 16, 96, 16, 1), (20, 20, 72, 8, 1), (12, 12, 40, 24, 1),
        (24, 24, 36, 8, 1), (10, 10, 112, 40, 1), (24, 16, 64, 12, 1),
    ):  # fmt: skip
        yield from conv(h, w, c, out_c, stride=stride)
    for h, w, c, out_c, stride, pads in (
        (16, 16, 16, 16, 1, SAME), (12, 12, 32, 32, 1, SAME), (16, 16, 16, 32, 2, LATER), (6, 6, 64, 64, 1, SAME),
        (10, 6, 20, 12, 1, SAME), (9, 9, 4, 8, 1, PLAIN), (14, 14, 8, 24, 1, SAME), (5, 5, 32, 16, 1, SAME),
        (8, 8, 64, 64, 1, SAME), (7, 7, 64, 48, 1, SAME), (4, 8, 96, 32, 1, SAME), (24, 24, 12, 16, 1, SAME),
        (24, 32, 16, 16, 1, SAME), (16, 16, 24, 40, 1, SAME),
    ):  # fmt: skip
        yield from conv(h, w, c, out_c, k=(3, 3), stride=stride, pads=pads)
    yield from conv(12, 12, 8, 16, k=(5, 5), pads=(2, 2, 2, 2))
    yield from conv(8, 12, 16, 16, k=(1, 3), pads=(0, 1, 0, 1))
    for h, w, c, out_c, k, stride, pads in (
        (16, 16, 3, 8, (3, 3), 1, SAME), (24, 24, 3, 16, (3, 3), 2, LATER), (12, 10, 5, 6, (3, 3), 1, SAME),
        (49, 10, 1, 64, (10, 4), 2, (4, 1, 5, 1)), (20, 20, 2, 7, (5, 5), 1, PLAIN), (14, 14, 1, 8, (3, 3), 1, SAME),
    ):  # fmt: skip
        yield from conv(h, w, c, out_c, k=k, stride=stride, pads=pads)
    for h, w, c, out_c, k, stride, pads in (
        (16, 16, 3, 16, (3, 3), 1, SAME), (32, 32, 3, 8, (3, 3), 2, LATER), (20, 20, 3, 12, (3, 3), 1, PLAIN),
        (12, 12, 3, 8, (5, 5), 1, (2, 2, 2, 2)), (24, 24, 3, 16, (3, 3), 2, LATER),
        (16, 12, 2, 8, (7, 7), 2, (3, 3, 3, 3)), (20, 16, 3, 10, (5, 5), 2, PLAIN),
    ):  # fmt: skip
        yield from conv(h, w, c, out_c, k=k, stride=stride, pads=pads, planar=True)


def _others() -> Iterator[Sample]:
    for h, w, c, k, stride, pads in (
        (24, 24, 16, 3, 1, SAME), (12, 12, 64, 3, 1, SAME), (12, 12, 64, 3, 2, LATER), (25, 5, 64, 3, 1, SAME),
        (6, 6, 128, 3, 1, SAME), (3, 3, 256, 3, 1, SAME), (20, 20, 8, 3, 2, LATER), (10, 10, 12, 5, 1, (2, 2, 2, 2)),
        (9, 9, 7, 3, 1, PLAIN), (48, 8, 8, 3, 1, SAME), (8, 8, 24, 5, 2, (1, 1, 2, 2)), (14, 14, 32, 3, 2, PLAIN),
        (6, 6, 96, 3, 2, LATER),
    ):  # fmt: skip
        yield Sample("dwconv", (h, w, c), c, (k, k), stride, pads)
        yield Sample("dwconv_f32", (h, w, c), c, (k, k), stride, pads)
    for h, w, c, out_c, k, stride, dilation, pads in (
        (14, 14, 24, 24, (5, 5), 1, 1, (2, 2, 2, 2)), (14, 14, 40, 40, (5, 5), 2, 1, (1, 1, 2, 2)),
        (10, 10, 20, 20, (7, 7), 1, 1, (3, 3, 3, 3)), (14, 14, 32, 32, (3, 3), 1, 2, (2, 2, 2, 2)),
        (1, 64, 40, 40, (1, 9), 1, 1, (0, 4, 0, 4)), (12, 12, 16, 32, (3, 3), 1, 1, SAME),
        (7, 7, 112, 112, (3, 3), 1, 1, SAME), (24, 24, 24, 24, (3, 3), 2, 1, LATER), (16, 6, 9, 27, (3, 3), 1, 1, SAME),
    ):  # fmt: skip
        yield Sample("dwconv", (h, w, c), out_c, k, stride, pads, dilation=dilation)
    for n, out_n in ((640, 128), (128, 128), (128, 8), (8, 128), (64, 12), (256, 2), (100, 30), (30, 100), (400, 50)):
        yield Sample("fc", (n,), out_n)
        yield Sample("fc", (n,), out_n, wide=True)
        yield Sample("fc_f32", (n,), out_n)
    for n, out_n in ((1, 16), (16, 1), (3, 24), (40, 2), (64, 3), (2, 50), (128, 1), (200, 3)):
        yield Sample("fc", (n,), out_n)
        yield Sample("fc_f32", (n,), out_n)
    for rows, n, out_n in (
        (32, 64, 64), (32, 64, 128), (16, 128, 32), (9, 40, 20), (25, 32, 96), (5, 100, 30), (12, 96, 48), (3, 200, 64)
    ):  # fmt: skip
        yield Sample("fc", (rows, n), out_n)
        yield Sample("fc_f32", (rows, n), out_n)
        yield Sample("dynamic_f32", (rows, n), out_n)
    for h, w, c, out_c, k, pads in (
        (6, 6, 64, 64, 1, PLAIN), (10, 10, 8, 16, 1, PLAIN), (8, 8, 16, 16, 3, SAME), (12, 12, 3, 8, 3, SAME),
        (5, 5, 32, 24, 3, PLAIN), (7, 9, 30, 20, 1, PLAIN), (12, 12, 16, 24, 3, SAME), (10, 4, 40, 32, 1, PLAIN),
        (6, 6, 32, 48, 3, SAME), (8, 8, 5, 10, 5, (2, 2, 2, 2)),
    ):  # fmt: skip
        yield Sample("conv_f32", (h, w, c), out_c, (k, k), 1, pads)
        yield Sample("convw8_f32", (h, w, c), out_c, (k, k), 1, pads)
    for h, w, c, out_c, k, stride, pads in (
        (16, 16, 3, 16, 3, 1, SAME), (32, 32, 3, 8, 3, 2, LATER), (20, 20, 3, 12, 3, 1, PLAIN),
        (12, 12, 2, 8, 5, 1, SAME), (16, 12, 3, 8, 5, 2, PLAIN), (24, 24, 3, 10, 3, 2, LATER),
        (14, 10, 4, 6, 3, 1, SAME),
    ):  # fmt: skip
        yield Sample("conv_f32", (h, w, c), out_c, (k, k), stride, pads, planar=True)
    yield from _shifted()
    yield from _sequences()
    kinds = "add sub add_any sub_any mul sigmoid softmax quantize dequantize relu_f32 add_f32 mul_f32 softmax_f32"
    for n in (30, 64, 200, 500, 1001, 2048, 4096):
        yield from (Sample(kind, (n,)) for kind in kinds.split())
    kinds = "tanh_f32 gelu_f32 sigmoid_f32 exp_f32 sqrt_f32 erf_f32"
    for n in (30, 64, 200, 500, 1001):
        yield from (Sample(kind, (n,)) for kind in kinds.split())
    for rows, n in ((32, 32), (128, 32), (8, 100), (16, 64), (50, 10), (4, 250)):
        yield from (Sample(kind, (rows, n)) for kind in ("softmax", "softmax_f32"))
    for h, w, c, k, stride in (
        (8, 8, 64, 8, 1), (6, 6, 32, 2, 2), (25, 5, 64, 5, 1), (9, 9, 12, 3, 2), (3, 3, 256, 3, 1), (12, 12, 16, 3, 1),
        (16, 16, 8, 2, 2), (10, 10, 20, 3, 2), (24, 20, 12, 2, 2), (12, 10, 16, 2, 1), (7, 7, 40, 7, 1),
    ):  # fmt: skip
        for kind in ("avg_pool", "max_pool", "avg_pool_f32", "max_pool_f32"):
            yield Sample(kind, (h, w, c), 0, (min(h, k), min(w, k)), stride)
        yield Sample("mean", (h, w, c))


def _shifted() -> Iterator[Sample]:
    """Yield layers whose sums are multiplied by an integer and shifted (RequantShift)."""
    for h, w, c, out_c, k, stride, pads in (
        (16, 16, 16, 16, 3, 1, SAME), (12, 12, 16, 32, 3, 2, SAME), (8, 8, 32, 32, 3, 1, SAME),
        (6, 6, 64, 64, 3, 1, SAME), (10, 10, 20, 12, 3, 1, PLAIN), (16, 16, 16, 32, 1, 2, PLAIN),
        (8, 8, 32, 64, 1, 2, PLAIN), (20, 5, 64, 64, 1, 1, PLAIN), (10, 10, 32, 24, 1, 1, PLAIN),
        (7, 9, 30, 20, 1, 1, PLAIN), (5, 5, 128, 32, 1, 1, PLAIN), (14, 6, 8, 16, 1, 1, PLAIN),
    ):  # fmt: skip
        yield Sample("convrs", (h, w, c), out_c, (k, k), stride, pads)
    for h, w, c, out_c, k, stride in (
        (16, 16, 3, 16, (3, 3), 1), (24, 24, 3, 8, (3, 3), 2), (20, 12, 1, 32, (5, 4), 2), (20, 20, 3, 12, (3, 3), 1),
        (49, 13, 1, 16, (10, 4), 2), (12, 12, 2, 8, (5, 5), 1),
    ):  # fmt: skip
        yield Sample("convrs", (h, w, c), out_c, k, stride, planar=True)
    for h, w, c, stride in (
        (20, 5, 64, 1), (12, 12, 32, 1), (8, 8, 24, 2), (10, 10, 12, 1), (6, 6, 96, 1), (24, 24, 16, 2),
        (16, 16, 40, 1),
    ):  # fmt: skip
        yield Sample("dwconvrs", (h, w, c), c, (3, 3), stride, SAME)
    for n, out_n in ((64, 10), (64, 12), (128, 32), (30, 100), (400, 50), (256, 8)):
        yield Sample("fcrs", (n,), out_n)
    for n in (64, 500, 1001, 4096, 8192):
        yield Sample("addrs", (n,))


def _sequences() -> Iterator[Sample]:
    """Yield what networks of sequences have: norms, products of activations, recurrences, lookups, transpositions."""
    for rows, n in ((32, 64), (16, 64), (10, 96), (4, 250), (50, 20), (25, 48)):
        yield from (Sample(kind, (rows, n)) for kind in ("layer_norm", "layer_norm_f32", "reduce_f32", "transpose_f32"))
        yield from (Sample(kind, (rows, n)) for kind in ("transpose", "flat", "flat_f32", "gather", "gather_f32"))
    for heads, m, k, n in (
        (4, 32, 16, 32), (4, 32, 32, 16), (2, 16, 24, 20), (1, 40, 40, 12), (3, 10, 8, 10), (1, 24, 64, 24),
        (2, 9, 30, 17),
    ):  # fmt: skip
        kinds = ("matmul", "matmult", "matmul_f32", "matmult_f32")
        yield from (Sample(kind, (m, k, n), heads) for kind in kinds)
    for seq, n, hidden in ((25, 32, 48), (10, 32, 48), (12, 16, 16), (8, 40, 24), (6, 20, 64), (16, 10, 32)):
        yield from (Sample("gru_f32", (seq, n, hidden), dirs) for dirs in (1, 2))
    for seq, n, hidden in (
        (8, 24, 24), (8, 24, 48), (8, 48, 64), (4, 129, 64), (4, 64, 64), (1, 32, 96), (12, 10, 16), (2, 20, 128),
        (25, 13, 32), (3, 40, 20),
    ):  # fmt: skip
        yield from (Sample(kind, (seq, n, hidden), 1) for kind in ("gru", "lstm"))


def _more() -> Iterator[Sample]:
    """Yield more windows, strides and odd channels."""
    for h, w, c, out_c, k, stride, pads in (
        (12, 12, 24, 32, (5, 5), 2, (1, 1, 2, 2)), (16, 12, 16, 24, (5, 5), 2, (1, 1, 2, 2)),
        (10, 10, 32, 40, (5, 5), 1, (2, 2, 2, 2)), (1, 30, 12, 16, (1, 5), 1, (0, 2, 0, 2)),
        (1, 64, 8, 24, (1, 5), 1, (0, 2, 0, 2)), (1, 49, 10, 32, (1, 5), 1, (0, 2, 0, 2)),
        (24, 20, 1, 16, (8, 8), 1, (3, 3, 4, 4)), (16, 30, 1, 12, (8, 4), 1, (3, 1, 4, 2)),
        (12, 10, 16, 12, (6, 6), 1, (2, 2, 3, 3)), (12, 10, 12, 16, (4, 4), 1, (1, 1, 2, 2)),
        (14, 14, 4, 16, (3, 3), 2, LATER), (28, 28, 1, 4, (3, 3), 2, LATER), (20, 20, 1, 8, (5, 5), 1, (2, 2, 2, 2)),
        (16, 16, 32, 32, (3, 3), 1, SAME), (10, 10, 64, 64, (3, 3), 1, SAME), (24, 24, 16, 16, (3, 3), 1, SAME),
        (16, 16, 32, 64, (3, 3), 2, LATER), (20, 20, 16, 32, (3, 3), 2, LATER), (8, 8, 48, 40, (3, 3), 1, SAME),
        (6, 6, 57, 30, (1, 1), 1, PLAIN), (6, 6, 30, 19, (1, 1), 1, PLAIN), (3, 3, 25, 31, (1, 1), 1, PLAIN),
        (12, 12, 64, 60, (1, 1), 1, PLAIN), (12, 12, 16, 32, (1, 1), 1, PLAIN), (20, 5, 64, 64, (1, 1), 1, PLAIN),
        (6, 6, 60, 106, (1, 1), 1, PLAIN), (24, 24, 8, 16, (1, 1), 1, PLAIN), (24, 24, 16, 32, (1, 1), 1, PLAIN),
        (16, 16, 32, 64, (1, 1), 2, PLAIN), (20, 20, 16, 32, (1, 1), 2, PLAIN), (12, 12, 24, 40, (1, 1), 2, PLAIN),
    ):  # fmt: skip
        yield from (Sample(kind, (h, w, c), out_c, k, stride, pads) for kind in ("conv", "conv_f32"))
    for h, w, c, out_c, size, stride, pads in (
        (28, 28, 3, 16, 3, 1, SAME), (48, 48, 3, 8, 3, 2, LATER), (24, 24, 3, 16, 5, 2, (1, 1, 2, 2)),
        (20, 20, 3, 32, 5, 2, (1, 1, 2, 2)), (32, 24, 3, 16, 3, 1, SAME), (14, 14, 1, 16, 3, 1, SAME),
        (20, 16, 3, 20, 5, 1, (2, 2, 2, 2)),
    ):  # fmt: skip
        kinds = ("conv", "conv_f32")
        yield from (Sample(kind, (h, w, c), out_c, (size, size), stride, pads, planar=True) for kind in kinds)
    for h, w, c, stride in (
        (6, 6, 106, 1), (6, 6, 57, 1), (6, 6, 30, 1), (3, 3, 31, 1), (12, 12, 60, 2), (24, 24, 32, 1), (24, 24, 32, 2),
        (48, 48, 16, 2), (20, 5, 64, 1), (14, 14, 4, 1), (6, 6, 25, 2), (16, 16, 48, 1), (32, 32, 8, 1),
        (10, 14, 20, 1),
        (5, 5, 128, 1), (20, 20, 16, 2),
    ):  # fmt: skip
        pads = SAME if stride == 1 else LATER
        yield from (Sample(kind, (h, w, c), c, (3, 3), stride, pads) for kind in ("dwconv", "dwconv_f32"))
    for h, w, c, size, stride in (
        (14, 14, 16, 3, 3), (28, 28, 8, 2, 2), (20, 5, 64, 20, 1), (6, 6, 48, 6, 1), (4, 4, 128, 4, 1),
        (10, 10, 20, 10, 1), (25, 5, 48, 25, 1), (3, 3, 22, 3, 1), (12, 6, 32, 12, 1), (28, 28, 16, 2, 2),
        (20, 12, 24, 2, 2), (15, 15, 32, 3, 2),
    ):  # fmt: skip
        for kind in ("avg_pool", "max_pool", "avg_pool_f32", "max_pool_f32"):
            yield Sample(kind, (h, w, c), 0, (min(h, size), min(w, size)), stride)


def _networks() -> Iterator[Sample]:
    """Yield layers of well-known small networks: MobileNets, ResNet-8, DS-CNN, LeNets, encoders of text."""
    for h, w, c, out_c, size, stride, pads in (
        (48, 48, 8, 16, 1, 1, PLAIN), (24, 24, 32, 32, 1, 1, PLAIN), (12, 12, 32, 64, 1, 1, PLAIN),
        (12, 12, 64, 64, 1, 1, PLAIN), (6, 6, 64, 128, 1, 1, PLAIN), (3, 3, 128, 256, 1, 1, PLAIN),
        (3, 3, 256, 256, 1, 1, PLAIN), (14, 14, 24, 48, 1, 1, PLAIN), (32, 32, 16, 32, 1, 2, PLAIN),
        (16, 16, 32, 64, 1, 2, PLAIN), (32, 32, 16, 16, 3, 1, SAME), (24, 24, 16, 24, 3, 1, SAME),
        (32, 32, 16, 32, 3, 2, LATER), (16, 16, 24, 48, 3, 2, LATER), (5, 5, 20, 12, 3, 1, PLAIN),
        (14, 14, 8, 16, 5, 1, (2, 2, 2, 2)), (28, 28, 1, 8, 5, 1, (2, 2, 2, 2)), (14, 14, 1, 20, 5, 2, PLAIN),
        (16, 16, 32, 32, 5, 2, (1, 1, 2, 2)),
    ):  # fmt: skip
        yield from conv(h, w, c, out_c, k=(size, size), stride=stride, pads=pads)
        yield Sample("conv_f32", (h, w, c), out_c, (size, size), stride, pads)
    for h, w, c, out_c, k, pads in (
        (6, 6, 19, 15, (1, 1), PLAIN), (6, 6, 15, 25, (1, 1), PLAIN), (3, 3, 31, 22, (1, 1), PLAIN),
        (6, 6, 106, 57, (1, 1), PLAIN), (3, 3, 22, 40, (1, 1), PLAIN), (7, 7, 37, 18, (1, 1), PLAIN),
        (49, 40, 1, 16, (8, 8), (3, 3, 4, 4)), (24, 20, 16, 12, (6, 6), (2, 2, 3, 3)),
        (1, 96, 16, 32, (1, 3), (0, 1, 0, 1)), (1, 40, 40, 48, (1, 3), (0, 1, 0, 1)),
    ):  # fmt: skip
        yield Sample("conv", (h, w, c), out_c, k, 1, pads)
    for h, w, c, out_c, k, stride in (
        (25, 5, 64, 64, (1, 1), 1), (49, 10, 1, 64, (10, 4), 2), (20, 20, 3, 24, (3, 3), 2),
        (12, 12, 48, 24, (1, 1), 1),
        (10, 10, 16, 40, (3, 3), 1),
    ):  # fmt: skip
        pads = (4, 1, 5, 1) if k == (10, 4) else SAME if k == (3, 3) and stride == 1 else PLAIN
        yield Sample("convw8_f32", (h, w, c), out_c, k, stride, pads)
    for h, w, c, size, stride in (
        (32, 32, 3, 16, 1), (96, 96, 3, 8, 2), (28, 28, 3, 16, 1), (64, 64, 3, 16, 2), (40, 40, 1, 8, 1),
    ):  # fmt: skip
        pads = SAME if stride == 1 else LATER
        yield from (Sample(kind, (h, w, c), size, (3, 3), stride, pads, planar=True) for kind in ("conv", "conv_f32"))
    for h, w, c, out_c, stride in (
        (48, 48, 8, 8, 1), (6, 6, 15, 15, 1), (6, 6, 19, 19, 1), (3, 3, 31, 31, 1), (7, 7, 16, 32, 1),
        (12, 12, 24, 24, 2),
        (7, 7, 37, 37, 1), (14, 14, 48, 48, 2), (9, 5, 64, 64, 1), (12, 12, 61, 61, 2),
    ):  # fmt: skip
        pads = SAME if stride == 1 else LATER
        yield from (Sample(kind, (h, w, c), out_c, (3, 3), stride, pads) for kind in ("dwconv", "dwconv_f32"))
    for h, w, c in ((20, 5, 64), (10, 10, 32), (25, 5, 48)):
        yield Sample("dwconvrs", (h, w, c), c, (3, 3), 1, SAME)
    for n, out_n in (
        (128, 640), (64, 10), (784, 10), (480, 32), (32, 16), (16, 10), (128, 4), (16, 16), (12, 12), (12, 1),
        (256, 40), (96, 12),
    ):  # fmt: skip
        yield from (Sample(kind, (n,), out_n) for kind in ("fc", "fc_f32"))
    yield from (Sample("fc", (n,), out_n, wide=True) for n, out_n in ((784, 10), (64, 10), (32, 16), (256, 40)))
    for rows, n, out_n in (
        (32, 64, 256),
        (32, 256, 64),
        (16, 48, 48),
        (1, 64, 4),
        (1, 64, 64),
        (1, 128, 30),
        (1, 40, 12),
    ):
        yield from (Sample(kind, (rows, n), out_n) for kind in ("fc", "fc_f32", "dynamic_f32"))
    for n in (10, 16, 1000, 8192, 16384):
        kinds = ("add", "sub", "add_any", "sub_any", "add_f32", "relu_f32", "mul_f32")
        yield from (Sample(kind, (n,)) for kind in kinds)
    for n in (2, 4, 10, 12):
        yield from (Sample(kind, (n,)) for kind in ("softmax", "softmax_f32", "tanh_f32", "quantize", "dequantize"))
    for n in (3072, 2352, 8192):
        yield from (Sample(kind, (n,)) for kind in ("quantize", "dequantize", "gelu_f32", "sigmoid"))
    yield from (Sample(kind, (64, 32)) for kind in ("softmax", "softmax_f32", "layer_norm", "layer_norm_f32"))
    for h, w, c, size, stride in (
        (28, 28, 8, 2, 2), (49, 40, 16, 2, 2), (8, 8, 64, 8, 1), (12, 10, 16, 2, 2), (24, 20, 16, 2, 2),
        (14, 14, 16, 2, 2),
    ):  # fmt: skip
        for kind in ("avg_pool", "max_pool", "avg_pool_f32", "max_pool_f32"):
            yield Sample(kind, (h, w, c), 0, (size, size), stride)
    for rows, n in ((64, 128), (40, 24), (100, 9), (8, 300), (12, 64), (28, 28), (50, 40), (96, 16), (20, 100)):
        yield from (Sample(kind, (rows, n)) for kind in ("padded", "padded_f32"))
    for rows, n in ((64, 64), (49, 32), (25, 96), (16, 256)):
        yield from (Sample(kind, (rows, n)) for kind in ("reduce_f32", "flat", "flat_f32"))


def _all_codes() -> Iterator[Sample]:
    """Yield layers with weights of all codes of uint8, whose zero point is that of int8, or near it."""
    for at, (h, w, c, out_c, k, stride, pads) in enumerate((
        (16, 16, 16, 24, 3, 1, SAME), (20, 20, 16, 16, 3, 1, SAME), (30, 30, 16, 16, 3, 1, SAME),
        (24, 24, 16, 24, 3, 2, LATER), (8, 8, 32, 40, 3, 1, SAME), (12, 12, 24, 32, 3, 2, LATER),
        (10, 10, 64, 48, 3, 1, SAME), (28, 28, 16, 32, 3, 2, LATER), (8, 8, 48, 64, 3, 1, SAME),
        (18, 14, 32, 32, 3, 1, PLAIN), (12, 12, 32, 48, 3, 2, LATER), (10, 10, 64, 64, 3, 1, SAME),
        (12, 12, 32, 48, 1, 1, PLAIN), (6, 6, 64, 96, 1, 1, PLAIN), (24, 24, 16, 24, 1, 2, PLAIN),
        (7, 9, 30, 20, 1, 1, PLAIN), (12, 12, 32, 64, 1, 2, PLAIN), (20, 20, 16, 32, 1, 2, PLAIN),
        (20, 20, 3, 16, 3, 1, SAME), (14, 14, 5, 12, 3, 1, SAME), (24, 24, 4, 16, 3, 2, LATER),
    )):  # fmt: skip
        yield from (Sample("conv", (h, w, c), out_c, (k, k), stride, pads, zero=zero) for zero in (128, 125)[at % 2 :])
    for h, c, out_c, k, stride, pads in (
        (24, 3, 16, 3, 1, SAME), (30, 3, 24, 3, 1, SAME), (28, 1, 8, 5, 2, PLAIN), (36, 3, 16, 3, 2, LATER),
    ):  # fmt: skip
        yield from (Sample("conv", (h, h, c), out_c, (k, k), stride, pads, planar=True, zero=z) for z in (128, 125))
    for n, out_n in ((64, 10), (128, 32), (300, 12), (800, 16), (40, 6)):
        yield from (Sample("fc", (n,), out_n, zero=zero) for zero in (128, 125))


def _loud() -> Iterator[Sample]:
    """Yield layers whose sums need saturation on the way to codes."""
    for h, w, c, out_c, k, stride, pads in (
        (12, 14, 12, 16, 4, 1, (1, 1, 2, 2)), (14, 10, 12, 24, 4, 1, (1, 1, 2, 2)), (10, 10, 5, 12, 3, 1, SAME),
        (20, 20, 3, 16, 3, 1, SAME), (16, 12, 1, 8, 5, 1, (2, 2, 2, 2)), (24, 20, 3, 12, 3, 2, LATER),
        (12, 12, 16, 24, 3, 1, SAME), (9, 9, 40, 32, 3, 1, SAME), (16, 16, 24, 32, 3, 2, LATER),
        (10, 10, 32, 48, 1, 1, PLAIN), (6, 6, 64, 40, 1, 1, PLAIN), (7, 9, 30, 20, 1, 1, PLAIN),
    ):  # fmt: skip
        yield Sample("conv_loud", (h, w, c), out_c, (k, k), stride, pads)


def _stems() -> Iterator[Sample]:
    """Yield first layers of networks: images of few channels, windows cut by each side."""
    for h, w, c, out_c, k, stride, pads in (
        (30, 30, 3, 16, 3, 1, SAME), (24, 28, 3, 12, 3, 1, SAME), (26, 26, 3, 20, 3, 1, SAME),
        (36, 36, 3, 16, 3, 1, SAME), (64, 64, 3, 8, 3, 2, LATER), (30, 26, 1, 16, 5, 1, (2, 2, 2, 2)),
    ):  # fmt: skip
        for kind in ("conv", "conv_f32", "convrs"):
            yield Sample(kind, (h, w, c), out_c, (k, k), stride, pads, planar=True)
        yield Sample("conv", (h, w, c), out_c, (k, k), stride, pads, planar=True, wide=True)
    for h, w, c, out_c, k, stride, pads in (
        (64, 64, 3, 8, (3, 3), 2, LATER), (80, 72, 3, 12, (3, 3), 2, LATER), (40, 32, 1, 12, (7, 7), 1, (3, 3, 3, 3)),
        (20, 16, 12, 16, (6, 6), 1, (2, 2, 3, 3)), (36, 36, 8, 12, (1, 1), 1, PLAIN),
        (3, 3, 192, 160, (1, 1), 1, PLAIN), (28, 20, 16, 20, (1, 1), 1, PLAIN), (30, 30, 16, 16, (3, 3), 1, SAME),
        (10, 10, 48, 64, (3, 3), 1, SAME), (12, 12, 32, 64, (3, 3), 2, LATER), (14, 14, 1, 4, (3, 3), 2, LATER),
        (26, 26, 1, 4, (3, 3), 2, LATER),
        (30, 30, 3, 16, (3, 3), 1, SAME), (24, 20, 3, 12, (3, 3), 1, SAME), (36, 28, 3, 24, (3, 3), 1, SAME),
        (40, 40, 3, 8, (3, 3), 1, SAME), (20, 20, 3, 16, (5, 5), 1, (2, 2, 2, 2)),
        (14, 14, 4, 8, (3, 3), 1, SAME), (8, 8, 24, 48, (5, 5), 2, (1, 1, 2, 2)),
        (10, 10, 40, 48, (5, 5), 2, (1, 1, 2, 2)),
    ):  # fmt: skip
        yield from (Sample(kind, (h, w, c), out_c, k, stride, pads) for kind in ("conv", "conv_f32"))
    for h, w, out_c, k, stride in ((40, 12, 32, (8, 4), 2), (46, 14, 48, (10, 4), 2), (30, 10, 64, (6, 3), 2)):
        yield Sample("convrs", (h, w, 1), out_c, k, stride, planar=True)
    for h, w, c in ((14, 12, 4), (20, 20, 4), (12, 16, 6), (28, 28, 4), (10, 10, 8)):
        yield from (Sample("dwconv", (h, w, c), c, (3, 3), stride, pads) for stride, pads in ((1, SAME), (2, LATER)))


def _small_things() -> Iterator[Sample]:
    """Yield layers of a few numbers, products of activations, pools and sums."""
    for n, out_n in (
        (1, 8), (1, 12), (1, 24), (8, 1), (24, 1), (32, 1), (4, 4), (8, 8), (16, 8), (12, 16), (16, 12), (20, 20),
        (8, 24), (1600, 10), (2400, 12), (500, 10), (900, 6), (1000, 24),
    ):  # fmt: skip
        yield from (Sample(kind, (n,), out_n) for kind in ("fc", "fc_f32"))
    yield from (Sample("fc", (n,), out_n, wide=True) for n, out_n in ((1600, 10), (2400, 12), (500, 10), (1000, 24)))
    for heads, m, k, n in (
        (4, 24, 16, 24), (4, 24, 24, 16), (2, 32, 16, 32), (2, 32, 32, 16), (8, 16, 8, 16), (8, 16, 16, 8),
        (3, 20, 12, 20), (4, 1, 16, 32), (4, 1, 32, 16), (1, 1, 64, 40), (2, 1, 24, 17), (8, 1, 8, 20), (4, 48, 16, 48),
        (1, 64, 32, 16),
    ):  # fmt: skip
        kinds = ("matmul", "matmult", "matmul_even", "matmult_even")
        yield from (Sample(kind, (m, k, n), heads) for kind in kinds)
    for rows, n in ((40, 64), (20, 64), (32, 48), (64, 32), (12, 128), (1, 64)):
        yield from (Sample(kind, (rows, n)) for kind in ("layer_norm", "layer_norm_f32", "softmax_f32", "softmax"))
    for n in (384, 768, 1536, 2500, 6000):
        yield from (Sample(kind, (n,)) for kind in ("add", "add_any", "sub", "sigmoid"))
    for h, w, c, size, stride in (
        (24, 18, 12, 2, 2), (16, 20, 12, 2, 2), (20, 20, 16, 2, 2), (12, 12, 20, 2, 2), (24, 5, 48, 24, 1),
        (8, 8, 48, 8, 1), (7, 7, 64, 7, 1), (14, 14, 24, 3, 2),
    ):  # fmt: skip
        yield from (Sample(kind, (h, w, c), 0, (size, min(size, w)), stride) for kind in ("avg_pool", "avg_pool_any"))


_SIXTEEN = ("conv", "dwconv", "fc", "add", "mul", "avg_pool", "max_pool", "mean", "softmax")
WIDTHS = ("widen", "narrow")  # codes of 8 bits to codes of 16, and back
_LENGTHS = (10, 12, 30, 64, 200, 500, 1001, 2048, 4096, 8192)
_MOST_TAPS = 1200  # of a sum that stays in 32 bits with codes of 16


def _sixteens(samples: Sequence[Sample]) -> Iterator[Sample]:
    """Yield the layers of codes that have kernels for 16 bits, every second shape."""
    for kind in _SIXTEEN:
        found = [
            s for s in samples
            if s.kind == kind and not s.wide and not s.planar and s.dilation == 1 and len(s.hwc) != 2
            and (kind != "conv" or s.hwc[2] * s.k[0] * s.k[1] <= _MOST_TAPS)
        ]  # fmt: skip
        yield from (replace(sample, sixteen=True) for sample in found[::2])


def _samples() -> Iterator[Sample]:
    eights = (*_convolutions(), *_others(), *_more(), *_networks())
    yield from eights
    yield from _sixteens(eights)
    yield from (Sample(kind, (n,)) for n in _LENGTHS for kind in WIDTHS)
    yield from (Sample(kind, (n,), sixteen=True) for n in _LENGTHS for kind in ("sigmoid", "tanh"))
    yield from (*_all_codes(), *_loud(), *_stems(), *_small_things())


def _few_codes() -> Iterator[Sample]:
    """Yield softmax of so few codes that their exponentials are products, and of short rows."""
    for rows, n in (
        (2, 24),
        (3, 40),
        (5, 13),
        (12, 12),
        (20, 9),
        (24, 40),
        (6, 150),
        (1, 100),
        (1, 400),
        (4, 16),
        (48, 20),
    ):
        yield Sample("softmax", (rows, n))


def _few_rows() -> Iterator[Sample]:
    """Yield dense layers of fewer rows than tiles of pixels have, or a few more."""
    for rows, n, out_n in (
        (2, 128, 64), (3, 96, 40), (5, 64, 96), (6, 200, 24), (7, 48, 30), (9, 256, 64), (10, 72, 32), (11, 400, 16),
        (13, 32, 128), (15, 144, 12), (2, 640, 10), (3, 33, 100), (7, 300, 8), (2, 16, 200), (9, 100, 20),
    ):  # fmt: skip
        yield Sample("fc", (rows, n), out_n)


SIXTEEN_STEMS: tuple[Sample, ...] = tuple(
    Sample("conv", (h, w, c), out_c, k, stride, pads, sixteen=True)
    for h, w, c, out_c, k, stride, pads in (
        (16, 16, 3, 8, (3, 3), 1, SAME), (24, 20, 3, 16, (5, 5), 2, (2, 2, 2, 2)), (9, 8, 5, 12, (2, 2), 1, PLAIN),
        (12, 30, 1, 24, (3, 5), 1, (1, 2, 1, 2)), (8, 9, 4, 16, (5, 5), 1, (2, 2, 2, 2)),
        (1, 80, 4, 32, (1, 9), 1, (0, 4, 0, 4)), (18, 10, 2, 4, (7, 3), 1, (3, 1, 3, 1)),
        (10, 22, 6, 40, (3, 3), 1, SAME), (30, 6, 3, 33, (3, 3), 2, SAME), (14, 14, 1, 3, (7, 7), 2, PLAIN),
        (20, 13, 3, 10, (4, 1), 2, PLAIN), (1, 50, 2, 20, (1, 15), 1, PLAIN),
    )
)  # fmt: skip
"""Images of few channels in 16 bits; those of TensorFlow Lite are measured, too."""

SAMPLES: tuple[Sample, ...] = (
    *_samples(), *small_chips(), *forms(), *_few_codes(), *_few_rows(), *SIXTEEN_STEMS,
)  # fmt: skip
"""All layers that are measured."""


class _Sized(Protocol):
    @property
    def bytes(self) -> int: ...


_S = TypeVar("_S", bound=_Sized)


def groups(samples: Sequence[Sample], room_bytes: int, most: int) -> list[list[Sample]]:
    """Return the samples cut into models: of one layout and size of codes, at most `most`, activations that fit."""
    found: list[list[Sample]] = []
    for planar, sixteen in ((False, False), (True, False), (False, True)):
        found += cut([s for s in samples if s.planar == planar and s.sixteen == sixteen], room_bytes, most)
    return found


def cut(samples: Sequence[_S], room_bytes: int, most: int) -> list[list[_S]]:
    """Return the samples, in their order, cut into models of at most `most` whose activations fit."""
    found: list[list[_S]] = [[]]
    for sample in (s for s in samples if s.bytes <= room_bytes):
        if len(found[-1]) == most or sum(s.bytes for s in found[-1]) + sample.bytes > room_bytes:
            found.append([])
        found[-1].append(sample)
    return [part for part in found if part]
