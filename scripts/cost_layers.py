"""The layers that scripts/fit_costs.py measures: shapes around those of small networks, and their ONNX models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx
import onnx.helper as oh
from onnx import TensorProto

SAME = (1, 1, 1, 1)
LATER = (0, 0, 1, 1)  # what TensorFlow's SAME pads at stride 2
PLAIN = (0, 0, 0, 0)
CALM = "calm"  # inputs whose names begin so are small, as what comes from a norm and a dense layer
RECTIFIED = "relu"  # these are not negative, as what comes from a layer with ReLU: FPUs in software are fast at zeros
_WEIGHTED = frozenset({"conv", "convw8", "dwconv", "fc"})


@dataclass(frozen=True)
class Sample:
    """One layer. `hwc` is the input, (elements,) where the shape does not matter, (rows, columns) of a matrix, (time,
    inputs, hidden) of a GRU, (m, k, n) of a product; `wide`: weights that need 16 bits beside another one; `planar`: an
    image in NCHW; `sixteen`: codes of 16 bits between layers."""

    kind: str
    hwc: tuple[int, ...]
    out_c: int = 0
    k: tuple[int, int] = (1, 1)
    stride: int = 1
    pads: tuple[int, int, int, int] = PLAIN
    wide: bool = False
    planar: bool = False
    dilation: int = 1
    sixteen: bool = False

    @property
    def bytes(self) -> int:
        """Bytes of its activations, roughly."""
        pixels = self.hwc[0] * self.hwc[1] if len(self.hwc) == 3 else 1
        size = int(np.prod(self.hwc)) + pixels // self.stride**2 * (self.out_c or self.hwc[-1])
        return size * (4 if self.kind.endswith("f32") or self.sixteen else 2)


def conv(h: int, w: int, c: int, out_c: int, **more: object) -> Iterator[Sample]:
    """Yield a convolution, with narrow and with wide weights."""
    for wide in (False, True):
        yield Sample("conv", (h, w, c), out_c, wide=wide, **more)  # type: ignore[arg-type]


def _convolutions() -> Iterator[Sample]:
    for h, w, c, out_c, stride in (
        (10, 10, 64, 64, 1), (6, 6, 128, 128, 1), (20, 20, 8, 16, 1), (12, 12, 16, 32, 2), (3, 3, 256, 128, 1),
        (25, 5, 32, 64, 1), (7, 9, 30, 20, 1), (5, 5, 6, 10, 1), (24, 24, 16, 8, 1), (4, 4, 64, 256, 1),
        (8, 8, 12, 7, 1),
    ):  # fmt: skip
        yield from conv(h, w, c, out_c, stride=stride)
    for h, w, c, out_c, stride, pads in (
        (16, 16, 16, 16, 1, SAME), (12, 12, 32, 32, 1, SAME), (16, 16, 16, 32, 2, LATER), (6, 6, 64, 64, 1, SAME),
        (10, 6, 20, 12, 1, SAME), (9, 9, 4, 8, 1, PLAIN), (14, 14, 8, 24, 1, SAME), (5, 5, 32, 16, 1, SAME),
        (8, 8, 64, 64, 1, SAME), (7, 7, 64, 48, 1, SAME), (4, 8, 96, 32, 1, SAME), (24, 24, 12, 16, 1, SAME),
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
    for rows, n in ((64, 64), (49, 32), (25, 96), (16, 256)):
        yield from (Sample(kind, (rows, n)) for kind in ("reduce_f32", "flat", "flat_f32"))


SAMPLES: tuple[Sample, ...] = (*_convolutions(), *_others(), *_more(), *_networks())


_SIXTEEN = ("conv", "dwconv", "fc", "add", "mul", "avg_pool", "max_pool", "mean", "softmax")
_WIDTHS = ("widen", "narrow")  # codes of 8 bits to codes of 16, and back
_LENGTHS = (10, 12, 30, 64, 200, 500, 1001, 2048, 4096, 8192)
_MOST_TAPS = 1200  # of a sum that stays in 32 bits with codes of 16


def _sixteens() -> Iterator[Sample]:
    """Yield the layers of codes that have kernels for 16 bits, every second shape."""
    for kind in _SIXTEEN:
        found = [
            s for s in SAMPLES
            if s.kind == kind and not s.wide and not s.planar and s.dilation == 1 and len(s.hwc) != 2
            and (kind != "conv" or s.hwc[2] * s.k[0] * s.k[1] <= _MOST_TAPS)
        ]  # fmt: skip
        yield from (replace(sample, sixteen=True) for sample in found[::2])


SAMPLES = (*SAMPLES, *_sixteens(), *(Sample(k, (n,)) for n in _LENGTHS for k in _WIDTHS))


class _Builder:
    """Collects the nodes, constants and edges of one model; every layer stands for itself."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)
        self.nodes: list[onnx.NodeProto] = []
        self.consts: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []

    def const(self, name: str, value: np.ndarray) -> str:
        self.consts.append(onnx.numpy_helper.from_array(value, name))
        return name

    def node(self, op: str, inputs: Sequence[str], output: str, **attrs: object) -> str:
        self.nodes.append(oh.make_node(op, list(inputs), [output], name=f"n_{output}", **attrs))
        return output

    def dequantized(self, name: str, scale: float | np.ndarray, zero: int | np.ndarray, dtype: type) -> str:
        """Add a DequantizeLinear after the value `name`."""
        zeros = np.asarray(zero, dtype)
        s, z = self.const(f"{name}_s", np.asarray(scale, np.float32)), self.const(f"{name}_z", zeros)
        return self.node("DequantizeLinear", (name, s, z), f"{name}_f", **({"axis": 0} if zeros.ndim else {}))

    def input(self, name: str, shape: Sequence[int], dtype: int) -> str:
        self.inputs.append(oh.make_tensor_value_info(name, dtype, list(shape)))
        return name

    def output(self, name: str, dtype: int) -> None:
        self.outputs.append(oh.make_tensor_value_info(name, dtype, None))

    def quantized(self, value: str, scale: float, zero: int) -> None:
        """End a layer in int8."""
        s, z = self.const(f"{value}_qs", np.float32(scale)), self.const(f"{value}_qz", np.int8(zero))  # type: ignore[arg-type]
        self.output(self.node("QuantizeLinear", (value, s, z), f"{value}_q"), TensorProto.INT8)

    def converted(self, at: int, sample: Sample, kind: str, _: bool) -> None:
        """Add a change of the width of codes."""
        wide = kind == "widen"
        before, after = (np.int8, np.int16)[:: 1 if wide else -1]
        name = self.input(f"x{at}", sample.hwc, TensorProto.INT8 if wide else TensorProto.INT16)
        value = self.dequantized(name, 0.0213172 if wide else 1.7e-4, 5 if wide else 0, before)
        s = self.const(f"{value}_qs", np.float32(1.7e-4 if wide else 0.0213172))  # type: ignore[arg-type]
        z = self.const(f"{value}_qz", np.asarray(0 if wide else 5, after))
        self.output(
            self.node("QuantizeLinear", (value, s, z), f"{value}_q"), TensorProto.INT16 if wide else TensorProto.INT8
        )

    def weights(self, sample: Sample, shape: Sequence[int]) -> np.ndarray:
        return np.clip(self.rng.normal(0, 16, shape), -127, 127).astype(np.int8)

    def add(self, at: int, sample: Sample) -> None:
        """Add the layer number `at`."""
        name, is_float = f"x{at}", sample.kind.endswith("_f32")
        kind = sample.kind.removesuffix("_f32")
        shape = (1, sample.hwc[2], *sample.hwc[:2]) if len(sample.hwc) == 3 else (1, *sample.hwc)
        if kind == "fc" and len(sample.hwc) == 2:
            shape = sample.hwc
        if kind in _SPECIAL:
            _SPECIAL[kind](self, at, sample, kind, is_float)
            return
        if kind.endswith("rs"):
            self.shifted(at, sample, kind.removesuffix("rs"), shape)
            return
        if kind == "quantize":
            self.quantized(self.input(name, shape, TensorProto.FLOAT), 0.02, 3)
            return
        if is_float:
            name = f"{CALM if kind in ('gelu', 'erf') else RECTIFIED if kind in _WEIGHTED else 'x'}{at}"
        self.input(name, shape, TensorProto.FLOAT if is_float else TensorProto.INT8)
        zero = -128 if at % 2 or kind in ("avg_pool", "max_pool", "mean") else 5
        x = name if is_float else self.dequantized(name, 0.02, zero, np.int8)
        if kind == "dequantize":
            self.output(x, TensorProto.FLOAT)
            return
        y, scale = self._layer(at, sample, kind, x, shape, is_float)
        if is_float:
            self.output(y, TensorProto.FLOAT)
        else:
            self.quantized(y, scale, -128)

    def _layer(
        self, at: int, sample: Sample, kind: str, x: str, shape: Sequence[int], is_float: bool
    ) -> tuple[str, float]:
        out = f"y{at}"
        if kind in ("conv", "dwconv", "fc", "convw8"):
            return self._weighted(at, sample, kind, x, is_float), 0.02 * 0.01 * 60
        if kind in ("add", "sub", "mul", "add_any", "sub_any"):
            other, ties = f"z{at}", not kind.endswith("_any")  # simple ratios of scales make ties
            self.input(other, shape, TensorProto.FLOAT if is_float else TensorProto.INT8)
            z = other if is_float else self.dequantized(other, 0.03 if ties else 0.0217, -7, np.int8)
            return self.node(kind.removesuffix("_any").capitalize(), (x, z), out), 0.04 if ties else 0.0371
        if kind in ("avg_pool", "max_pool"):
            op = "AveragePool" if kind == "avg_pool" else "MaxPool"
            return self.node(op, (x,), out, kernel_shape=sample.k, strides=(sample.stride,) * 2), 0.02
        if kind == "mean":
            return self.mean(x, out, (2, 3)), 0.02
        op = {"sigmoid": "Sigmoid", "softmax": "Softmax", "relu": "Relu", "tanh": "Tanh", "gelu": "Gelu", "exp": "Exp",
              "sqrt": "Sqrt", "erf": "Erf"}[kind]  # fmt: skip
        return self.node(op, (x,), out), 1 / 256

    def mean(self, value: str, output: str, axes: tuple[int, ...]) -> str:
        """Add the mean over `axes`, which stay with one entry."""
        return self.node("ReduceMean", (value, self.const(f"{output}_a", np.array(axes, np.int64))), output, keepdims=1)

    def edge(self, name: str, shape: Sequence[int], is_float: bool) -> str:
        """Add an input of the model, in int8 with its DequantizeLinear where it is not `is_float`."""
        self.input(name, shape, TensorProto.FLOAT if is_float else TensorProto.INT8)
        return name if is_float else self.dequantized(name, 0.02, 5, np.int8)

    def end(self, value: str, is_float: bool, scale: float = 0.05) -> None:
        """End a layer in the form that it began in."""
        if is_float:
            self.output(value, TensorProto.FLOAT)
        else:
            self.quantized(value, scale, 3)

    def norm(self, at: int, sample: Sample, kind: str, is_float: bool) -> None:
        """Add a layer norm of the rows of a matrix."""
        n = sample.hwc[1]
        x = self.edge(f"x{at}", (1, *sample.hwc), is_float)
        parts = [self.const(f"{v}{at}", self.rng.normal(1, 0.2, n).astype(np.float32)) for v in ("g", "b")]
        self.end(self.node("LayerNormalization", (x, *parts), f"y{at}", axis=-1), is_float)

    def product(self, at: int, sample: Sample, kind: str, is_float: bool) -> None:
        """Add a product of two activations, the second one as it is, or transposed."""
        (m, k, n), heads, turned = sample.hwc, sample.out_c, kind.endswith("t")
        a = self.edge(f"x{at}", (heads, m, k), is_float)
        b = self.edge(f"z{at}", (heads, n, k) if turned else (heads, k, n), is_float)
        if turned:
            b = self.node("Transpose", (b,), f"z{at}_t", perm=[0, 2, 1])
        self.end(self.node("MatMul", (a, b), f"y{at}"), is_float, 0.2)

    def moved(self, at: int, sample: Sample, kind: str, is_float: bool) -> None:
        """Add a transposition of a matrix, or a copy of it."""
        self.input(f"x{at}", (1, *sample.hwc), element := TensorProto.FLOAT if is_float else TensorProto.INT8)
        if kind == "transpose":
            y = self.node("Transpose", (f"x{at}",), f"y{at}", perm=[0, 2, 1])
        else:
            y = self.node("Flatten", (f"x{at}",), f"y{at}", axis=1)
        self.output(y, element)

    def gather(self, at: int, sample: Sample, kind: str, is_float: bool) -> None:
        """Add a lookup of rows in a table of 100."""
        rows, n = sample.hwc
        self.input(f"x{at}", (1, rows), TensorProto.INT64)
        table = self.rng.integers(-100, 100, (100, n)).astype(np.float32 if is_float else np.int8)
        y = self.node("Gather", (self.const(f"w{at}", table), f"x{at}"), f"y{at}", axis=0)
        self.output(y, TensorProto.FLOAT if is_float else TensorProto.INT8)

    def reduced(self, at: int, sample: Sample, kind: str, is_float: bool) -> None:
        """Add the mean of each column of a matrix."""
        x = self.edge(f"x{at}", (1, *sample.hwc), is_float)
        self.end(self.mean(x, f"y{at}", (1,)), is_float)

    def gru(self, at: int, sample: Sample, kind: str, is_float: bool) -> None:
        """Add a GRU in one or two directions."""
        (seq, n, hidden), dirs = sample.hwc, sample.out_c
        x = self.edge(f"x{at}", (seq, 1, n), True)
        shapes = {"w": (dirs, 3 * hidden, n), "r": (dirs, 3 * hidden, hidden), "b": (dirs, 6 * hidden)}
        parts = [self.const(f"{v}{at}", self.rng.normal(0, 0.3, s).astype(np.float32)) for v, s in shapes.items()]
        more = {
            "direction": "bidirectional" if dirs == 2 else "forward",
            "linear_before_reset": 1,
            "hidden_size": hidden,
        }
        self.output(self.node("GRU", (x, *parts), f"y{at}", **more), TensorProto.FLOAT)

    def dynamic(self, at: int, sample: Sample, kind: str, is_float: bool) -> None:
        """Add a dense layer of integers whose input is quantised as it comes."""
        names = [f"x{at}_{part}" for part in ("q", "s", "z")]
        x = self.edge(f"x{at}", sample.hwc, True)
        self.nodes.append(oh.make_node("DynamicQuantizeLinear", [x], names, name=f"n_x{at}_q"))
        w = self.const(f"w{at}", self.weights(sample, (sample.hwc[1], sample.out_c)))
        zero = self.const(f"w{at}_z", np.int8(0))  # type: ignore[arg-type]
        scale = self.node("Mul", (names[1], self.const(f"w{at}_s", np.float32(0.01))), f"y{at}_s")  # type: ignore[arg-type]
        sums = self.node("MatMulInteger", (names[0], w, names[2], zero), f"y{at}_i")
        y = self.node("Mul", (self.node("Cast", (sums,), f"y{at}_c", to=TensorProto.FLOAT), scale), f"y{at}")
        self.output(y, TensorProto.FLOAT)

    def shift(self, value: str, output: str, channels: int = 0) -> str:
        """Add a RequantShift, of each channel of an image or of all alike."""
        shape = (channels, 1, 1) if channels else ()
        parts = [self.const(f"{output}_{v}", np.full(shape, n, np.float32)) for v, n in (("m", 514.0), ("a", 0.0))]
        values = {"div": 65536.0, "n_levels_out": 256.0, "signed": 0.0}
        tensors = {name: oh.make_tensor(name, TensorProto.FLOAT, (), [number]) for name, number in values.items()}
        return self.node("RequantShift", (value, *parts), output, **tensors)

    def shifted(self, at: int, sample: Sample, kind: str, shape: Sequence[int]) -> None:
        """Add a layer of integers kept in floats, from codes to codes."""
        x = self.edge(f"x{at}", shape, True)
        if not sample.planar:
            x = self.shift(x, f"x{at}_q")
        if kind == "add":
            z = self.shift(self.edge(f"z{at}", shape, True), f"z{at}_q")
            y = self.node("Add", (x, z), f"y{at}")
        elif kind == "fc":
            w = self.const(f"w{at}", self.weights(sample, (sample.out_c, sample.hwc[0])).astype(np.float32) // 3)
            y = self.node("Gemm", (x, w), f"y{at}", transB=1)
        else:
            group = sample.hwc[2] if kind == "dwconv" else 1
            taps = (sample.out_c, sample.hwc[2] // group, *sample.k)
            w = self.const(f"w{at}", (self.weights(sample, taps) // 3).astype(np.float32))
            y = self.node("Conv", (x, w), f"y{at}", group=group, kernel_shape=sample.k, strides=(sample.stride,) * 2,
                          pads=sample.pads)  # fmt: skip
        self.output(self.shift(y, f"y{at}_q", sample.out_c if kind in ("conv", "dwconv") else 0), TensorProto.FLOAT)

    def _weighted(self, at: int, sample: Sample, kind: str, x: str, is_float: bool) -> str:
        c, taps = sample.hwc[-1], sample.k
        shape: tuple[int, ...] = (
            (sample.out_c, c) if kind == "fc" else (sample.out_c, 1 if kind == "dwconv" else c, *taps)
        )
        weights = self.weights(sample, shape)
        scale = (self.rng.uniform(0.5, 1.5, sample.out_c) * 0.01).astype(np.float32)
        if kind == "convw8":
            w = self.dequantized(self.const(f"w{at}", weights), np.float32(0.01), 0, np.int8)
            b = self.const(f"b{at}", self.rng.normal(0, 1, sample.out_c).astype(np.float32))
        elif is_float:
            w = self.const(f"w{at}", (weights * 0.01).astype(np.float32))
            b = self.const(f"b{at}", self.rng.normal(0, 1, sample.out_c).astype(np.float32))
        else:
            zeros = np.zeros(sample.out_c, np.int32)
            kind_of, zero_of, bias_zero = np.int8, zeros, zeros
            if sample.wide:  # from -120 to 135, with one zero point for all
                weights = (weights.astype(np.int16) + 120).clip(0, 255).astype(np.uint8)
                weights[:2] = 255
                scale, kind_of, zero_of, bias_zero = scale[0], np.uint8, np.uint8(120), np.int32(0)
            w = self.dequantized(self.const(f"w{at}", weights), scale, zero_of, kind_of)
            bias = self.rng.integers(-500, 500, sample.out_c, dtype=np.int32)
            b = self.dequantized(self.const(f"b{at}", bias), np.float32(0.02) * scale, bias_zero, np.int32)
        if kind == "fc":
            return self.node("Gemm", (x, w, b), f"y{at}", transB=1)
        more = {"kernel_shape": taps, "strides": (sample.stride,) * 2, "pads": sample.pads}
        more["dilations"] = (sample.dilation,) * 2
        return self.node("Conv", (x, w, b), f"y{at}", group=c if kind == "dwconv" else 1, **more)


_SPECIAL = {
    "layer_norm": _Builder.norm, "matmul": _Builder.product, "matmult": _Builder.product, "transpose": _Builder.moved,
    "flat": _Builder.moved, "gather": _Builder.gather, "reduce": _Builder.reduced, "gru": _Builder.gru,
    "dynamic": _Builder.dynamic, "widen": _Builder.converted, "narrow": _Builder.converted,
}  # fmt: skip


def model_of(samples: Sequence[Sample]) -> onnx.ModelProto:
    """Return a model in which the layers stand side by side."""
    builder = _Builder()
    for at, sample in enumerate(samples):
        builder.add(at, sample)
    graph = oh.make_graph(builder.nodes, "layers", builder.inputs, builder.outputs, builder.consts)
    if samples[0].sixteen:
        _widen(graph)
    opset = 21 if any(s.sixteen or s.kind in _WIDTHS for s in samples) else 20
    return oh.make_model(graph, opset_imports=[oh.make_opsetid("", opset)], ir_version=10)


def _widen(graph: onnx.GraphProto) -> None:
    """Make the int8 codes between layers int16, with zero point 0; weights stay int8."""
    consts = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type in ("QuantizeLinear", "DequantizeLinear") and node.input[0] not in consts:
            consts[node.input[2]].CopyFrom(onnx.numpy_helper.from_array(np.int16(0), node.input[2]))  # type: ignore[arg-type]
    for edge in (*graph.input, *graph.output):
        if edge.type.tensor_type.elem_type == TensorProto.INT8:
            edge.type.tensor_type.elem_type = TensorProto.INT16


def groups(samples: Sequence[Sample], room_bytes: int, most: int) -> list[list[Sample]]:
    """Return the samples cut into models: of one layout and size of codes, at most `most`, activations that fit."""
    found: list[list[Sample]] = []
    for planar, sixteen in ((False, False), (True, False), (False, True)):
        current: list[Sample] = []
        like = (s for s in samples if s.planar == planar and s.sixteen == sixteen)
        for sample in (s for s in like if s.bytes <= room_bytes):
            if len(current) == most or sum(s.bytes for s in current) + sample.bytes > room_bytes:
                found.append(current)
                current = []
            current.append(sample)
        found += [current] if current else []
    return found
