"""What kernels that A64 and A32 share need to know of the core."""

from __future__ import annotations

from dataclasses import dataclass, replace

from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.common.assembly import Printed, joined
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


def both(plain: KernelVariant) -> tuple[KernelVariant, KernelVariant]:
    """Return a variant for A64, and the same for A32."""
    return plain, replace(plain, isa="a32")


def code_limits(p: Printed, point: str, odd: str, *, a32: bool) -> str:
    """Return zero point and limits of eight codes for `requant`; `odd`: of ties, for A32."""
    if a32:
        limits = f"{point}, {odd}, {p['out_min']}, {p['out_max']}"
        return joined([f"const glow_a32_limits_t limits = glow_a32_limits({limits});"])
    return joined(
        [
            f"const int16x8_t zp = vdupq_n_s16((int16_t){point});",
            f"const int8x8_t lo = vdup_n_s8((int8_t){p['out_min']});",
            f"const int8x8_t hi = vdup_n_s8((int8_t){p['out_max']});",
        ]
    )


def requant(sums: str, odd: str, *, a32: bool) -> str:
    """Return the call that makes eight codes of sums: two vectors of sums, two of scales."""
    return f"glow_a32_requant_s8x8({sums}, &limits, {odd})" if a32 else f"glow_requant_s8x8({sums}, zp, lo, hi)"


@dataclass(frozen=True, slots=True, kw_only=True)
class CorePlan(Plan):
    """`a32`: the core is one of A32."""

    a32: bool

    def limits(self, p: Printed, point: str, odd: str) -> str:
        """Return zero point and limits of codes."""
        return code_limits(p, point, odd, a32=self.a32)

    def requant(self, sums: str, odd: str) -> str:
        """Return the call that makes eight codes."""
        return requant(sums, odd, a32=self.a32)


def prepare_core(_: Arrays, __: Instr, *, a32: bool) -> Prepared:
    """Return the plan of a kernel that differs by core only."""
    return Prepared(plan=CorePlan(a32=a32))
