"""Layers in forms that scripts/cost_layers.py has few of: one scale for all weights, shifts by channel, long sums."""

from __future__ import annotations

from collections.abc import Iterator

from cost_sample import LATER, PLAIN, SAME, Sample


def forms() -> Iterator[Sample]:
    """Yield all."""
    yield from (
        *_one_scale(),
        *_large_weights(),
        *_shifted(),
        *_products(),
        *_single_channels(),
        *_small(),
        *_images(),
        *_dilated(),
        *_windows(),
        *_gates(),
        *_cells(),
    )


def _one_scale() -> Iterator[Sample]:
    """Yield layers whose weights have one scale, as quantisers by tensor write."""
    for n, out_n in (
        (600, 120), (120, 120), (120, 8), (8, 120), (120, 600), (64, 10), (16, 16), (12, 12), (1, 16), (16, 2),
        (24, 1), (2, 12), (256, 64), (300, 12), (784, 10), (96, 12), (40, 32), (10, 16), (14, 20), (400, 48),
    ):  # fmt: skip
        yield Sample("fc", (n,), out_n, one=True)
    for rows, n, out_n in ((32, 48, 64), (24, 64, 128), (16, 96, 32)):
        yield Sample("fc", (rows, n), out_n, one=True)
    for h, w, c, out_c, k, stride, pads in (
        (12, 12, 32, 32, 1, 1, PLAIN), (16, 16, 16, 16, 3, 1, SAME), (10, 10, 32, 48, 3, 2, LATER),
        (20, 20, 3, 12, 3, 1, SAME), (14, 14, 8, 16, 5, 1, (2, 2, 2, 2)), (10, 10, 64, 64, 1, 1, PLAIN),
        (16, 16, 24, 48, 1, 2, PLAIN),
    ):  # fmt: skip
        yield Sample("conv", (h, w, c), out_c, (k, k), stride, pads, one=True)
    for h, w, c, stride in ((12, 12, 32, 1), (20, 20, 16, 1), (6, 6, 64, 1), (25, 5, 48, 1), (12, 12, 40, 2)):
        yield Sample("dwconv", (h, w, c), c, (3, 3), stride, SAME if stride == 1 else LATER, one=True)


def _large_weights() -> Iterator[Sample]:
    """Yield convolutions whose weights do not stay in a small cache."""
    for h, w, c, out_c, k, stride, pads in (
        (16, 16, 24, 32, 5, 2, (1, 1, 2, 2)), (12, 12, 32, 40, 5, 2, (1, 1, 2, 2)), (8, 8, 40, 32, 5, 1, (2, 2, 2, 2)),
        (8, 8, 64, 40, 3, 1, SAME), (10, 10, 96, 24, 3, 1, SAME), (14, 14, 48, 48, 3, 2, LATER),
        (8, 8, 77, 62, 3, 1, SAME), (12, 12, 45, 40, 3, 1, SAME), (6, 6, 110, 96, 3, 1, SAME),
        (16, 16, 30, 34, 5, 2, (1, 1, 2, 2)), (14, 14, 50, 43, 3, 2, LATER), (16, 16, 39, 49, 3, 1, SAME),
        (8, 8, 90, 131, 3, 1, SAME), (10, 10, 58, 60, 3, 1, SAME), (9, 7, 63, 80, 3, 1, SAME),
        (8, 8, 80, 78, 3, 1, SAME), (14, 14, 39, 40, 3, 1, SAME), (16, 16, 27, 30, 3, 1, SAME),
        (12, 12, 22, 21, 3, 1, SAME),
    ):  # fmt: skip
        yield Sample("conv", (h, w, c), out_c, (k, k), stride, pads)


def _shifted() -> Iterator[Sample]:
    """Yield depthwise layers whose sums are multiplied by an integer and shifted, between other layers."""
    for h, w, c, stride in (
        (25, 5, 48, 1), (16, 5, 32, 1), (14, 14, 24, 1), (8, 8, 40, 1), (20, 10, 16, 1), (12, 6, 48, 2), (9, 9, 64, 1),
        (16, 16, 32, 2), (30, 5, 64, 1), (7, 7, 80, 1), (18, 5, 64, 1), (10, 10, 48, 2),
    ):  # fmt: skip
        yield Sample("dwconvrs", (h, w, c), c, (3, 3), stride, SAME, planar=True)


def _products() -> Iterator[Sample]:
    """Yield products of float activations, as heads of attention have them, and long sums of floats."""
    for heads, m, k, n in (
        (4, 24, 16, 24), (4, 24, 24, 16), (2, 32, 16, 32), (2, 32, 32, 16), (8, 16, 8, 16), (8, 16, 16, 8),
        (3, 20, 12, 20), (4, 1, 16, 32), (4, 1, 32, 16), (2, 1, 24, 17), (4, 48, 16, 48), (1, 64, 32, 16),
        (4, 40, 16, 40), (6, 12, 16, 12), (2, 24, 20, 30),
    ):  # fmt: skip
        yield from (Sample(kind, (m, k, n), heads) for kind in ("matmul_f32", "matmult_f32"))
    for n, out_n in ((1568, 10), (900, 16), (1152, 12), (2048, 8), (3136, 10), (600, 24)):
        yield Sample("fc_f32", (n,), out_n)


def _single_channels() -> Iterator[Sample]:
    """Yield convolutions of images of one channel with few outputs."""
    for h, out_c, stride in ((28, 8, 2), (20, 4, 2), (24, 6, 2), (32, 4, 2), (16, 8, 2), (18, 4, 1), (30, 12, 2)):
        for pads in (LATER, PLAIN) if stride == 2 else (SAME,):
            yield Sample("conv", (h, h, 1), out_c, (3, 3), stride, pads, one=out_c == 4)


def _small() -> Iterator[Sample]:
    """Yield dense layers of few numbers, and tables that differ from layer to layer."""
    for n, out_n in (
        (1, 4), (2, 8), (4, 16), (6, 12), (10, 16), (20, 16), (14, 12), (24, 4), (8, 2), (16, 4), (10, 10), (24, 16),
        (32, 8), (48, 4), (12, 24), (16, 20),
    ):  # fmt: skip
        yield from (Sample(kind, (n,), out_n) for kind in ("fc", "fc_f32"))
    for n in (64, 300, 1024, 3000, 8192, 16384):
        yield from (Sample(kind, (n,)) for kind in ("sigmoid", "tanh"))


def _images() -> Iterator[Sample]:
    """Yield first layers of images by pixels, whose rows whole vectors fill."""
    for h, w, out_c, stride, pads in (
        (32, 32, 12, 1, SAME), (16, 16, 16, 1, SAME), (24, 32, 16, 1, SAME), (40, 48, 8, 1, SAME),
        (24, 24, 20, 1, SAME), (20, 32, 24, 1, PLAIN), (64, 48, 8, 2, LATER), (32, 64, 16, 2, LATER),
    ):  # fmt: skip
        yield from (Sample(kind, (h, w, 3), out_c, (3, 3), stride, pads) for kind in ("conv", "conv_f32"))


def _dilated() -> Iterator[Sample]:
    """Yield windows with taps apart, of images and of signals, and depthwise layers with several outputs a channel."""
    for h, w, c, out_c, k, dilation, pads in (
        (14, 14, 16, 24, (3, 3), 2, (2, 2, 2, 2)), (20, 20, 8, 16, (3, 3), 2, PLAIN), (1, 64, 24, 24, (1, 3), 2, PLAIN),
        (1, 100, 16, 32, (1, 3), 4, PLAIN), (1, 48, 40, 40, (1, 5), 2, PLAIN), (1, 128, 12, 16, (1, 7), 8, PLAIN),
        (1, 80, 32, 32, (1, 2), 8, PLAIN),
    ):  # fmt: skip
        yield from (Sample(kind, (h, w, c), out_c, k, 1, pads, dilation=dilation) for kind in ("conv", "conv_f32"))
        yield from (Sample(kind, (h, w, c), c, k, 1, pads, dilation=dilation) for kind in ("dwconv", "dwconv_f32"))
    for h, w, c, times, k, stride, pads in (
        (7, 7, 16, 2, (3, 3), 1, SAME), (14, 14, 8, 2, (3, 3), 1, SAME), (10, 10, 12, 4, (3, 3), 1, SAME),
        (49, 40, 1, 8, (10, 8), 2, (4, 3, 5, 3)), (20, 20, 3, 8, (3, 3), 2, LATER), (12, 12, 20, 2, (5, 5), 2, SAME),
        (24, 24, 4, 4, (3, 3), 1, PLAIN),
    ):  # fmt: skip
        yield from (Sample(kind, (h, w, c), times * c, k, stride, pads) for kind in ("dwconv", "dwconv_f32"))
    for steps, channels in ((5, 64), (9, 64), (13, 32), (17, 48), (21, 64), (29, 64), (7, 40), (3, 128)):
        yield Sample("dwconv", (1, steps, channels), channels, (1, steps))
    for h, w, c, k, stride, border in (
        (16, 16, 48, 5, 1, 2), (32, 32, 24, 7, 2, 3), (16, 16, 96, 5, 2, 2), (8, 8, 120, 7, 1, 3), (4, 4, 160, 5, 1, 2),
        (20, 20, 32, 5, 1, 2), (14, 14, 72, 5, 1, 0), (12, 12, 64, 7, 1, 3), (7, 7, 240, 5, 1, 2),
        (28, 28, 16, 5, 2, 2), (10, 10, 80, 4, 1, 0), (18, 18, 28, 5, 1, 2),
    ):  # fmt: skip
        yield Sample("dwconv", (h, w, c), c, (k, k), stride, (border,) * 4)


def _windows() -> Iterator[Sample]:
    """Yield windows whose rows are short, and depthwise layers whose channels do not fill vectors."""
    for h, w, c, out_c, k, stride, pads in (
        (24, 24, 8, 16, (3, 3), 1, SAME), (48, 48, 8, 8, (3, 3), 1, SAME), (32, 32, 8, 16, (3, 3), 2, LATER),
        (16, 16, 12, 20, (3, 3), 1, SAME), (32, 32, 12, 12, (3, 3), 2, LATER), (14, 14, 20, 24, (3, 3), 1, PLAIN),
        (1, 64, 32, 32, (1, 3), 1, (0, 1, 0, 1)), (32, 2, 32, 32, (3, 1), 1, (1, 0, 1, 0)),
        (16, 4, 32, 32, (3, 1), 1, (1, 0, 1, 0)), (1, 96, 24, 40, (1, 3), 1, PLAIN), (20, 20, 4, 12, (5, 5), 1, PLAIN),
        (12, 14, 8, 48, (3, 3), 1, SAME),
    ):  # fmt: skip
        yield Sample("conv", (h, w, c), out_c, k, stride, pads)
    for h, w, c in (
        (32, 32, 12), (32, 32, 6), (16, 16, 18), (16, 16, 10), (8, 8, 14), (16, 16, 24), (8, 8, 40), (24, 20, 4),
        (12, 10, 20), (10, 10, 28), (8, 8, 56), (20, 18, 36),
    ):  # fmt: skip
        yield Sample("dwconv", (h, w, c), c, (3, 3), 1, SAME)


def _gates() -> Iterator[Sample]:
    """Yield images whose channels are multiplied by a number each, as squeeze and excitation does."""
    for h, w, c in ((24, 24, 16), (12, 12, 72), (6, 6, 96), (6, 6, 240), (10, 12, 40), (3, 3, 320), (40, 32, 8)):
        yield from (Sample(kind, (h, w, c)) for kind in ("mul_gate", "mul_gate_f32"))


def _cells() -> Iterator[Sample]:
    """Yield recurrent layers of floats."""
    for seq, n, hidden in (
        (25, 32, 48),
        (10, 32, 48),
        (12, 16, 16),
        (8, 40, 24),
        (6, 20, 64),
        (16, 10, 32),
        (1, 64, 96),
    ):
        yield from (Sample("lstm_f32", (seq, n, hidden), dirs) for dirs in (1, 2))
