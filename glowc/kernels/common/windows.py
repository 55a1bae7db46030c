"""What variants ask of the windows of a layer, and kernels that go through them alike on several instruction sets.

Depthwise convolutions of planar inputs, channel by channel: what is read first where an image comes as planes
(templates/kernels/common/_planes.j2). conv_transpose of float32: the outputs of a place together, over the taps that
reach it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.shapes import Conv
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_MOST_TAPS = 9
_MOST_PLANE_TAPS = 25  # of a window: each is printed
_MOST_OUTPUTS = 8  # sums that stay in registers
_MOST_LISTED = 64  # listed on the stack


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


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanesPlan(Plan):
    """Windows of `k_h` x `k_w`, whose taps are printed; `mult`: output channels of an input channel."""

    k_h: int
    k_w: int
    mult: int


def _accepts_planes(instr: Instr) -> bool:
    """Accept float32 or int8 planes, and windows of few taps."""
    kinds = {instr.operand(role).type.dtype for role in ("in", "weights", "out")}
    shape = Conv.of(instr)
    small = shape.taps <= _MOST_PLANE_TAPS
    return kinds in ({DType.F32}, {DType.S8}) and shape.in_ch != 1 and shape.in_c > 1 and small


def _prepare_planes(_: Arrays, instr: Instr) -> Prepared:
    shape = Conv.of(instr)
    return Prepared(plan=PlanesPlan(path="planes", k_h=shape.k_h, k_w=shape.k_w, mult=shape.out_c // shape.in_c))


def planar(isa: str) -> KernelVariant:
    """Return the variant of an instruction set; weights stay as they are."""
    return KernelVariant(
        isa, form="planar", rank=5, template="{}_planar", header="glow_reach.h",
        accepts=_accepts_planes, prepare=_prepare_planes,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class TransposedPlan(Plan):
    """`outputs` are summed together, of windows with so many `taps`; `nhwc`: channels are adjacent."""

    outputs: int
    taps: int
    nhwc: bool


def _transposed_taps(instr: Instr) -> int:
    return instr.int_("k_d") * instr.int_("k_h") * instr.int_("k_w")


def accepts_transposed(instr: Instr) -> bool:
    """Accept float32, and windows whose taps the stack holds."""
    return instr.operand("in").type.dtype is DType.F32 and _transposed_taps(instr) <= _MOST_LISTED


def prepare_transposed(_: Arrays, instr: Instr) -> Prepared:
    """Return the plan; factors stay as they are."""
    nhwc = bool(instr.int_("nhwc"))
    outputs = min(instr.int_("per_out"), _MOST_OUTPUTS)
    path = "nhwc" if nhwc else "planar"
    return Prepared(plan=TransposedPlan(path=path, outputs=outputs, taps=_transposed_taps(instr), nhwc=nhwc))


def transposed(plain: KernelVariant) -> KernelVariant:
    """Return the variant of an instruction set."""
    return replace(plain, accepts=accepts_transposed, prepare=prepare_transposed, header="")
