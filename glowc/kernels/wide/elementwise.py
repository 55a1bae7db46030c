"""Elements and rows on x86-64: of float32 by vectors (glow_wide_elementary.h), sums of codes (glow_wide_add.h)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.common.reals import accepts_function, accepts_softmax
from glowc.kernels.common.rows import RowPlan, accepts_rows, steps
from glowc.kernels.wide.codes import X86
from glowc.program.ir import Instr
from glowc.program.kernel import Arrays


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPlan(RowPlan):
    """`fused`: the formula of add_s8f, whose codes have the zero point `zero`."""

    fused: bool
    zero: int = 0


_FLOATS = KernelVariant("wide", rank=10, also=X86, header="glow_wide_elementary.h", in_place=True)


def _powers(instr: Instr) -> int:
    """Bytes: those of exp of a row, of which the logarithm of softmax needs the sum alone."""
    return 4 * instr.int_("n") if instr.params["log"] else 0


def _accepts_pairs(instr: Instr, dtype: DType, most: int) -> bool:
    """Accept rows of elements of a type along the last of so many axes at most."""
    same = all(instr.operand(role).type.dtype is dtype for role in ("a", "b", "out"))
    return same and instr.int_("rank") <= most and accepts_rows(instr)


def _prepare_row(_: Arrays, instr: Instr) -> Prepared:
    a_step, b_step = steps(instr)
    return Prepared(plan=RowPlan(a_step=a_step, b_step=b_step))


def _prepare_add(_: Arrays, instr: Instr) -> Prepared:
    a_step, b_step = steps(instr)
    return Prepared(plan=AddPlan(a_step=a_step, b_step=b_step, fused=False))


def _prepare_fused(_: Arrays, instr: Instr) -> Prepared:
    a_step, b_step = steps(instr)
    return Prepared(plan=AddPlan(a_step=a_step, b_step=b_step, fused=True, zero=-instr.int_("half")))


_BINARY = replace(_FLOATS, header="", accepts=partial(_accepts_pairs, dtype=DType.F32, most=1), prepare=_prepare_row)
_ADD = replace(
    _FLOATS, header="glow_wide_add.h", template="add_s8", accepts=partial(_accepts_pairs, dtype=DType.S8, most=2),
)  # fmt: skip

VARIANTS = {
    "add_s8": (replace(_ADD, prepare=_prepare_add),),
    "add_s8f": (replace(_ADD, prepare=_prepare_fused),),
    "binary": (_BINARY,),
    "layer_norm_f32": (_FLOATS,),
    "layer_norm_stats_f32": (replace(_FLOATS, template="layer_norm_f32"),),
    "softmax_f32": (replace(_FLOATS, accepts=accepts_softmax, scratch_bytes=_powers),),
    "unary": (replace(_FLOATS, accepts=accepts_function),),
}
