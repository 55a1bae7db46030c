"""Depthwise convolutions of planar inputs, channel by channel: what is read first where an image comes as planes."""

from __future__ import annotations

from dataclasses import dataclass

from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.shapes import Conv
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_MOST_TAPS = 25  # of a window: each is printed


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanesPlan(Plan):
    """Windows of `k_h` x `k_w`, whose taps are printed; `mult`: output channels of an input channel."""

    k_h: int
    k_w: int
    mult: int


def _accepts(instr: Instr) -> bool:
    """Accept float32 or int8 planes, and windows of few taps."""
    kinds = {instr.operand(role).type.dtype for role in ("in", "weights", "out")}
    shape = Conv.of(instr)
    small = shape.taps <= _MOST_TAPS
    return kinds in ({DType.F32}, {DType.S8}) and shape.in_ch != 1 and shape.in_c > 1 and small


def _prepare(_: Arrays, instr: Instr) -> Prepared:
    shape = Conv.of(instr)
    return Prepared(plan=PlanesPlan(path="planes", k_h=shape.k_h, k_w=shape.k_w, mult=shape.out_c // shape.in_c))


def planar(isa: str) -> KernelVariant:
    """Return the variant of an instruction set; weights stay as they are."""
    return KernelVariant(
        isa, form="planar", rank=5, template="{}_planar", header="glow_reach.h", accepts=_accepts, prepare=_prepare
    )
