"""What templates that A64 and A32 share need to know of the core."""

from __future__ import annotations

from dataclasses import dataclass

from glowc.kernels.base import Prepared
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays


@dataclass(frozen=True, slots=True, kw_only=True)
class CorePlan(Plan):
    """`a32`: the core is one of A32, whose codes end by glow_a32.h."""

    a32: bool


def prepare_core(_: Arrays, instr: Instr) -> Prepared:
    """Return the plan of a kernel that differs by core only."""
    return Prepared(plan=CorePlan(a32=instr.isa == "a32"))
