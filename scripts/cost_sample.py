"""What one measured layer is (scripts/cost_layers.py has them all, scripts/cost_models.py makes models of them)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

SAME = (1, 1, 1, 1)
LATER = (0, 0, 1, 1)  # what TensorFlow's SAME pads at stride 2
PLAIN = (0, 0, 0, 0)


@dataclass(frozen=True)
class Sample:
    """One layer. `hwc` is the input, (elements,) where the shape does not matter, (rows, columns) of a matrix, (time,
    inputs, hidden) of a GRU, (m, k, n) of a product; `wide`: weights that need 16 bits beside another one; `planar`: an
    image in NCHW; `sixteen`: codes of 16 bits between layers; `zero`: the zero point of weights that take all codes of
    uint8; `signed`: floats as many negative ones as others; `sparse`: mostly zeros, as deep layers read; `one`: a scale
    for all weights of a layer."""

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
    zero: int | None = None
    signed: bool = False
    sparse: bool = False
    one: bool = False

    @property
    def bytes(self) -> int:
        """Bytes of its activations, roughly."""
        pixels = self.hwc[0] * self.hwc[1] if len(self.hwc) == 3 else 1
        size = int(np.prod(self.hwc)) + pixels // self.stride**2 * (self.out_c or self.hwc[-1])
        return size * (4 if self.kind.endswith("f32") or self.sixteen else 2)

    @property
    def macs(self) -> int:
        """Multiply-accumulates, roughly; 0 of a layer that has none."""
        kind, size = self.kind.removesuffix("_f32"), int(np.prod(self.hwc))
        if kind.startswith(("conv", "dwconv")):
            taps = self.k[0] * self.k[1] * (self.hwc[2] if kind.startswith("conv") else 1)
            return self.hwc[0] * self.hwc[1] // self.stride**2 * self.out_c * taps
        if kind in ("gru", "lstm"):
            return self.out_c * self.hwc[0] * (3 if kind == "gru" else 4) * self.hwc[2] * (self.hwc[1] + self.hwc[2])
        if kind.startswith("matmul"):
            return size * self.out_c
        return size * self.out_c if kind in ("fc", "fcrs", "dynamic") else 0


def conv(h: int, w: int, c: int, out_c: int, **more: object) -> Iterator[Sample]:
    """Yield a convolution, with narrow and with wide weights."""
    for wide in (False, True):
        yield Sample("conv", (h, w, c), out_c, wide=wide, **more)  # type: ignore[arg-type]
