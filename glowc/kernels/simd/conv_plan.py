"""What the template of conv_s8 prints by on A64 and A32."""

from __future__ import annotations

from dataclasses import dataclass

from glowc.kernels.common.constants import LayerPlan
from glowc.kernels.simd.conv_block import ConvBlock
from glowc.kernels.simd.ending import Ending
from glowc.kernels.simd.stream import CHUNK


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvPlan(ConvBlock, LayerPlan):
    """What the template prints by.

    `path` is that of `conv.path_of`. A step takes `grain` inputs of each of `pixels` pixels; a block has `outputs`,
    those after whole ones `narrow`; `few`: there are fewer outputs than the only block has. `span`: a block may hold
    pixels of several rows. `rest`: after whole steps some inputs are left. `twice`: a loop has two steps. `pairs`: two
    products fit 16 bits. `shifted`: the weights have a zero point, the shifts of their codes stand for the biases.
    rows and pixels: windows of `k_h` x `k_w`, `slots` padded rows, `reach` columns from the first of a window to the
    last. rows: `groups` planes of `grain` channels, `apart` bytes between columns, of a `stride`; `single`: each column
    is a run of its own. pixels: a row of a window is gathered in `pieces` of `piece` bytes, or lies in the padded row
    where that is all (`lies`); a window has `width` bytes, its block `steps`.
    """

    isa: str
    pixels: int
    outputs: int
    grain: int
    ending: Ending
    pairs: bool
    shifted: bool
    span: bool
    few: bool
    narrow: int
    rest: bool
    twice: bool
    k_h: int = 0
    k_w: int = 0
    slots: int = 0
    reach: int = 0
    stride: int = 0
    groups: int = 0
    apart: int = 0
    single: bool = False
    pieces: int = 0
    piece: int = 0
    width: int = 0
    steps: int = 0

    @property
    def run_count(self) -> int:
        """The runs of a window: its rows in each plane, or their columns."""
        return self.k_h * self.groups * (self.k_w if self.single else 1)

    @property
    def lies(self) -> bool:
        """True when a window lies in a padded row, which stays until its block is done."""
        return self.path == "pixels" and self.k_h == self.pieces == 1 and not self.span

    @property
    def windows_bytes(self) -> int:
        """The bytes after a block of inputs, for copied windows and for what copies write after the last of either."""
        return CHUNK // 2 * self.pixels if self.lies else self.pixels * self.width + CHUNK

    @property
    def copies(self) -> tuple[tuple[int, int, int], ...]:
        """The copies of 16 bytes that gather a window: its row, the piece of that, the place in the piece."""
        pieces = [(ky, kx) for ky in range(self.k_h) for kx in range(self.pieces)]
        return tuple((ky, kx, at) for ky, kx in pieces for at in range(0, self.piece, CHUNK))
