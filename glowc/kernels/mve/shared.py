"""What families of Helium variants share: the CPUs that they are for, and the operands that they take."""

from __future__ import annotations

from dataclasses import dataclass, replace

from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant, Prepared
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

FAST = KernelVariant("mve", also=frozenset({"mve-fp"}), rank=20)
_LEAST = 2.0**-40
GROUP = 4  # output channels
_CACHED_BYTES = 24 << 10  # of weights that a data cache keeps
_PAIR = 2  # pixels that read weights once


def in_blocks(group_bytes: int, outputs: int, pixels: int) -> bool:
    """Say whether some outputs of all pixels are computed before the next ones: a data cache does not keep the weights.

    `group_bytes` are those of the constants of four outputs.
    """
    return -(-outputs // GROUP) * group_bytes > _CACHED_BYTES and pixels > _PAIR


def overlap_bytes(instr: Instr) -> int:
    """Return 0 where outputs over inputs would keep blocks of channels from being computed one after the other."""
    return 0 if instr.plan.reads_weights_once else 1


def are_codes(instr: Instr, *roles: str) -> bool:
    """Say whether operands are int8."""
    return all(instr.operand(role).type.dtype is DType.S8 for role in roles)


def has_codes(instr: Instr) -> bool:
    """Say whether a layer is one of int8 inputs, weights and outputs."""
    return are_codes(instr, "in", "weights", "out")


def has_centred_codes(instr: Instr) -> bool:
    """Say whether a layer is one of int8 whose weights have zero point 0."""
    return has_codes(instr) and instr.int_("w_zp") == 0


def is_clamped(instr: Instr) -> bool:
    """Say whether not all int8 codes are allowed."""
    return instr.int_("out_min") > -128 or instr.int_("out_max") < 127


def is_moderate(*scales: float) -> bool:
    """Say whether quotients of products of codes and scales are far from the ends of float32."""
    return all(_LEAST < abs(scale) < 1 / _LEAST for scale in scales)


def accepts_rows(instr: Instr) -> bool:
    """Accept adjacent operands, and rows of them of which one may be the same for all rows of the output."""
    rank = instr.int_("rank")
    return rank in (1, 2) and instr.int_(f"a{rank - 1}") == instr.int_(f"b{rank - 1}") == 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PairwisePlan(Plan):
    """Of a kernel with two operands: rank 1, adjacent elements, or rank 2, rows of them that may be repeated."""

    rank: int


def prepare_pairwise(_: Arrays, instr: Instr) -> Prepared:
    """Return the plan of a kernel with two operands."""
    return Prepared(plan=PairwisePlan(rank=instr.int_("rank")))


PAIRWISE = replace(FAST, in_place=True, accepts=accepts_rows, prepare=prepare_pairwise)
