"""What variants of attend_f32 share: four rows at a time, of some heads of a group (templates/kernels/common)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from glowc.kernels.base import KernelVariant, Prepared
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_MOST = 4  # heads whose products are in registers


@dataclass(frozen=True, slots=True, kw_only=True)
class AttendPlan(Plan):
    """`family` of the header's functions, the kind of the caches, and the heads that are computed `together`."""

    family: str
    codes: str
    together: int


def _accepts(instr: Instr) -> bool:
    """Accept values of whole vectors."""
    return int(instr.params["value"]) % 4 == 0


def by_fours(variant: KernelVariant, family: str) -> KernelVariant:
    """Return the variant of an instruction set whose functions have that name."""

    def prepare(_: Arrays, instr: Instr) -> Prepared:
        group = int(instr.params["group"])
        together = max(n for n in range(1, _MOST + 1) if group % n == 0)
        kind = instr.operand("k").type.dtype.value
        return Prepared(plan=AttendPlan(family=f"glow_{family}", codes=kind, together=together))

    header, template = f"glow_{family}_attend.h", "common/attend_f32"
    return replace(variant, header=header, template=template, accepts=_accepts, prepare=prepare)
