"""conv_transpose of float32: the outputs of a place together, over the taps that reach it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant, Prepared
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_MOST_OUTPUTS = 8  # sums that stay in registers
_MOST_TAPS = 64  # listed on the stack


@dataclass(frozen=True, slots=True, kw_only=True)
class TransposedPlan(Plan):
    """`outputs` are summed together, of windows with so many `taps`; `nhwc`: channels are adjacent."""

    outputs: int
    taps: int
    nhwc: bool


def _taps(instr: Instr) -> int:
    return instr.int_("k_d") * instr.int_("k_h") * instr.int_("k_w")


def accepts(instr: Instr) -> bool:
    """Accept float32, and windows whose taps the stack holds."""
    return instr.operand("in").type.dtype is DType.F32 and _taps(instr) <= _MOST_TAPS


def prepare(_: Arrays, instr: Instr) -> Prepared:
    """Return the plan; factors stay as they are."""
    nhwc = bool(instr.int_("nhwc"))
    outputs = min(instr.int_("per_out"), _MOST_OUTPUTS)
    path = "nhwc" if nhwc else "planar"
    return Prepared(plan=TransposedPlan(path=path, outputs=outputs, taps=_taps(instr), nhwc=nhwc))


def transposed(plain: KernelVariant) -> KernelVariant:
    """Return the variant of an instruction set."""
    return replace(plain, accepts=accepts, prepare=prepare, header="")
