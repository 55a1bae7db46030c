"""Arithmetic of two operands of float32 on A64 and A32 (runtime_c/simd/glow_neon_f32.h)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.common.assembly import Printed
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_LEAST = 8  # elements of a row


@dataclass(frozen=True, slots=True, kw_only=True)
class PairsPlan(Plan):
    """`limited`: there are bounds; steps: an operand goes on along the last axis, or is one number for all."""

    limited: bool
    a_step: int
    b_step: int

    def four(self, p: Printed, at: str) -> str:
        """Return the results of four elements from `at` on, of rows or of one number for all of a row."""
        steps = {"a": self.a_step, "b": self.b_step}
        x, y = (f"vld1q_f32({name}_row + {at})" if step else f"{name}_all" for name, step in steps.items())
        value = f"v{p['op']}q_f32({x}, {y})"
        return f"glow_limited_f32x4({value}, {p['act_min']}, {p['act_max']})" if self.limited else value


def prepare(_: Arrays, instr: Instr) -> Prepared:
    """Return the plan; there are no constants to arrange."""
    last = instr.int_("rank") - 1
    a_step, b_step = (instr.int_(f"{name}{last}") for name in "ab")
    return Prepared(plan=PairsPlan(limited=bool(instr.int_("clamp")), a_step=a_step, b_step=b_step))


def _accepts(instr: Instr, *operations: str) -> bool:
    """Accept float32 arithmetic on rows of at least eight."""
    if instr.params["op"] not in operations or instr.operand("out").type.dtype is not DType.F32:
        return False
    last = instr.int_("rank") - 1
    steps = {instr.int_(f"{name}{last}") for name in "ab"}
    return last >= 0 and 1 in steps and steps <= {0, 1} and instr.int_(f"d{last}") >= _LEAST


_A64 = KernelVariant(
    "a64", rank=20, in_place=True, header="glow_neon_f32.h", prepare=prepare,
    accepts=lambda instr: _accepts(instr, "add", "sub", "mul", "div"),
)  # fmt: skip
_A32 = replace(_A64, isa="a32", accepts=lambda instr: _accepts(instr, "add", "sub", "mul"))

VARIANTS = {"binary": (_A64, _A32)}
