"""What variants ask of the windows of a layer."""

from __future__ import annotations

from dataclasses import dataclass

from glowc.kernels.base import Prepared
from glowc.kernels.shapes import Conv
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_MOST_TAPS = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class TapsPlan(Plan):
    """The taps of whole windows one by one: rows and columns; 0, where there are too many."""

    k_h: int = 0
    k_w: int = 0

    @property
    def taps(self) -> tuple[tuple[int, int, int], ...]:
        """The row, the column and the number of each."""
        return tuple((n // self.k_w, n % self.k_w, n) for n in range(self.k_h * self.k_w))


def taps_plan(instr: Instr) -> TapsPlan:
    """Return the plan of a layer that has windows."""
    shape = Conv.of(instr)
    return TapsPlan(k_h=shape.k_h, k_w=shape.k_w) if 1 < shape.taps <= _MOST_TAPS else TapsPlan()


def prepare_taps(_: Arrays, instr: Instr) -> Prepared:
    """Constants stay; say which taps there are."""
    return Prepared(plan=taps_plan(instr))


def is_point(shape: Conv) -> bool:
    """Say whether each output reads one pixel of adjacent channels, which lies inside of the image."""
    one = shape.k_h == shape.k_w == 1 and shape.pad_top == shape.pad_left == 0
    inside = (shape.out_h - 1) * shape.stride_h < shape.in_h and (shape.out_w - 1) * shape.stride_w < shape.in_w
    return one and inside and shape.in_ch == 1
