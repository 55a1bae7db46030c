"""Sums and products of two tensors of int16 codes around 0, by rows; those of TensorFlow Lite by functions of the
instruction set (common/pairs_q31.c.j2).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.common.rows import accepts_dense_rows, are_centred
from glowc.kernels.features import Stated
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_MOST_PLACES = 30  # by which sums of 31 bits are divided in 32


@dataclass(frozen=True, slots=True, kw_only=True)
class PairsPlan(Plan):
    """`ends` of the codes: 0, all of them; 1, those that are not negative; 2, others. `family` of functions."""

    ends: int
    family: str


def prepare(family: str, _: Arrays, instr: Instr) -> Prepared:
    """Say between which ends the codes are."""
    ends = {(-32768, 32767): 0, (0, 32767): 1}.get((instr.int_("out_min"), instr.int_("out_max")), 2)
    return Prepared(plan=PairsPlan(ends=ends, family=family))


def accepts(instr: Instr) -> bool:
    """Accept codes of 16 bits around 0."""
    return accepts_dense_rows(instr) and are_centred(instr)


def _accepts_fixed(instr: Instr) -> bool:
    """Accept the same where the result is divided, and an operand is, or has the factor 1/2."""
    terms = [instr.int_(name) for name in ("a_shift", "b_shift") if name in instr.params]
    right = all(-_MOST_PLACES <= shift <= 0 for shift in (*terms, instr.int_("out_shift") + 1))
    return accepts(instr) and right


def fixed_variants(
    isas: tuple[str, ...], family: str, rank: int, *, sums: float, products: float
) -> Mapping[str, tuple[KernelVariant, ...]]:
    """Return those with the functions of glow_FAMILY_pairs16.h, which take so many instructions an element."""
    plain = KernelVariant(
        isas[0], rank=rank, header=f"glow_{family}_pairs16.h", in_place=True, accepts=_accepts_fixed,
        prepare=partial(prepare, family), template="common/pairs_q31",
    )  # fmt: skip
    return {
        kernel: tuple(replace(plain, isa=isa, stated=Stated(outputs=outputs)) for isa in isas)
        for kernel, outputs in (("add_s16q31", sums), ("mul_s16q31", products))
    }
