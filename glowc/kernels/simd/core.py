"""What kernels that A64 and A32 share need to know of the core."""

from __future__ import annotations

from dataclasses import dataclass

from glowc.kernels.base import Prepared
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays


@dataclass(frozen=True, slots=True)
class Core:
    """How an instruction set multiplies codes.

    `a32`: the core is one of A32, whose codes end by glow_a32.h. `paired`: products are those of 16 bits, of which two
    may be added. `group`: inputs of which the weights of an output stand together in a stream.
    """

    a32: bool = False
    paired: bool = False
    group: int = 1


CORES = {
    "a32": Core(a32=True, paired=True),
    "a64": Core(paired=True),
    "dot": Core(group=4),
    "i8mm": Core(),
}
"""By instruction set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CorePlan(Plan):
    """`a32`: the core is one of A32."""

    a32: bool


def prepare_core(_: Arrays, __: Instr, *, a32: bool) -> Prepared:
    """Return the plan of a kernel that differs by core only."""
    return Prepared(plan=CorePlan(a32=a32))
